//! A condition with its type, before it is stamped with time and generation.

use std::borrow::Cow;
use std::ops::Deref;

use jiff::Timestamp;
use windlass_conditions::{Condition, Draft, Status};

/// A condition with its type, before it is stamped with time and generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The condition's type.
    pub kind: &'static str,
    /// What it says.
    pub draft: Draft,
}

impl Deref for Finding {
    type Target = Draft;

    fn deref(&self) -> &Draft {
        &self.draft
    }
}

impl Finding {
    /// A finding that holds; nothing more is to be said.
    pub fn yes(kind: &'static str, reason: &'static str) -> Self {
        Self::new(kind, Status::True, reason, "")
    }

    /// A finding that does not hold.
    pub fn no(kind: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(kind, Status::False, reason, message)
    }

    /// A finding that is not known.
    pub fn unknown(kind: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(kind, Status::Unknown, reason, message)
    }

    /// Any finding.
    pub fn new(
        kind: &'static str,
        status: Status,
        reason: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            draft: Draft::new(status, reason, message),
        }
    }

    /// What was last written under that type, to be kept.
    pub fn kept(kind: &'static str, existing: &[Condition]) -> Option<Self> {
        let draft = Draft::of(windlass_conditions::get(existing, kind)?);
        Some(Self { kind, draft })
    }

    /// The condition to write: the transition time moves only when the status does.
    pub fn stamp(&self, existing: &[Condition], generation: i64, now: Timestamp) -> Condition {
        self.draft.clone().stamp(self.kind, existing, Some(generation), now)
    }
}

/// Names joined for a sentence; more than three are cut.
pub fn listed(names: &[&str]) -> String {
    windlass_conditions::listed(names, 3)
}
