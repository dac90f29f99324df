//! A condition before it is stamped with time and generation.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// The three values of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tri {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Nobody can say.
    Unknown,
}

impl Tri {
    /// As the API writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }

    /// As the API writes it; everything odd is unknown.
    pub fn parse(text: &str) -> Self {
        match text {
            "True" => Self::True,
            "False" => Self::False,
            _ => Self::Unknown,
        }
    }
}

/// A condition before it is stamped with time and generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The condition's type.
    pub kind: &'static str,
    /// Its status.
    pub status: Tri,
    /// Its reason.
    pub reason: Cow<'static, str>,
    /// Its message.
    pub message: String,
}

impl Finding {
    /// A finding that holds; nothing more is to be said.
    pub fn yes(kind: &'static str, reason: &'static str) -> Self {
        Self::new(kind, Tri::True, reason, "")
    }

    /// A finding that does not hold.
    pub fn no(kind: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(kind, Tri::False, reason, message)
    }

    /// A finding that nobody can make.
    pub fn unknown(kind: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(kind, Tri::Unknown, reason, message)
    }

    /// Any finding.
    pub fn new(
        kind: &'static str,
        status: Tri,
        reason: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            status,
            reason: reason.into(),
            message: message.into(),
        }
    }

    /// What was last written under that type, to be kept.
    pub fn kept(kind: &'static str, existing: &[Condition]) -> Option<Self> {
        let old = windlass_conditions::get(existing, kind)?;
        Some(Self::new(
            kind,
            Tri::parse(&old.status),
            old.reason.clone(),
            old.message.clone(),
        ))
    }

    /// The condition to write: the transition time moves only when the status does.
    pub fn stamp(&self, existing: &[Condition], generation: i64, now: Timestamp) -> Condition {
        let new = Condition {
            type_: self.kind.to_owned(),
            status: self.status.as_str().to_owned(),
            reason: self.reason.to_string(),
            message: self.message.clone(),
            last_transition_time: Time(now),
            observed_generation: Some(generation),
        };
        windlass_conditions::carried(existing, new)
    }
}

/// Names joined for a sentence; more than three are cut.
pub fn listed(names: &[&str]) -> String {
    windlass_conditions::listed(names, 3)
}
