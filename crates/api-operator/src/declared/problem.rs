//! Problems in the spec of a provider object.

use std::fmt;

use crate::reasons;

/// An invalid field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The field: `spec.manager.syncPeriod`.
    pub field: String,
    /// The problem and the expectation.
    pub message: String,
}

impl Problem {
    /// The condition reason for this problem.
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

/// All problems of a provider object. There is at least one.
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

    /// The condition reason for the problems: that of the first one.
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
