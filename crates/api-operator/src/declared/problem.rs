//! What is wrong with a declaration.

use std::fmt;

use crate::reasons;

/// A field that cannot be acted on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The field: `spec.manager.syncPeriod`.
    pub field: String,
    /// What is wrong with it, and what was expected.
    pub message: String,
}

impl Problem {
    /// The reason of a condition that tells this problem.
    pub fn reason(&self) -> &'static str {
        if self.field == "spec.version" {
            reasons::INCORRECT_VERSION_FORMAT
        } else if self.field.starts_with("spec.fetchConfig") {
            reasons::FETCH_CONFIG_VALIDATION_ERROR
        } else {
            reasons::SPEC_VALIDATION_ERROR
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// Everything that is wrong with a declaration: one problem at least.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// The problems, in the order of the fields; `Ok` without any.
    pub(super) fn check(problems: Vec<Problem>) -> Result<(), Self> {
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Self(problems))
        }
    }

    /// The problems.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.0.iter()
    }

    /// The reason of a condition that tells the problems: that of the first.
    pub fn reason(&self) -> &'static str {
        self.0.first().map_or(reasons::SPEC_VALIDATION_ERROR, Problem::reason)
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = std::slice::Iter<'a, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
