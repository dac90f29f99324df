//! Errors of the demo.

use std::error::Error;

use windlass_manager::ManagerError;

/// Why the demo did not finish.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The management cluster could not start.
    #[error(transparent)]
    Manager(#[from] ManagerError),
    /// Another failure.
    #[error("{what}")]
    Failed {
        /// What failed.
        what: String,
        /// The cause.
        #[source]
        source: Option<Box<dyn Error + Send + Sync>>,
    },
    /// A step did not finish in time.
    #[error("{what}")]
    TooLate {
        /// The step.
        what: String,
        /// The conditions that explain it, a line each.
        lines: Vec<String>,
        /// The remedy for the user.
        hint: String,
    },
    /// The user stopped it.
    #[error("interrupted")]
    Interrupted,
    /// Output could not be written.
    #[error("cannot write the output")]
    Output(#[from] std::io::Error),
}

impl DemoError {
    /// A failure with a cause.
    pub(crate) fn failed(what: impl Into<String>, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Failed {
            what: what.into(),
            source: Some(source.into()),
        }
    }

    /// A failure whose text needs no cause.
    pub(crate) fn plain(what: impl Into<String>) -> Self {
        Self::Failed {
            what: what.into(),
            source: None,
        }
    }

    /// The remedy for the user.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Manager(error) => error.hint(),
            Self::TooLate { hint, .. } => Some(hint.clone()),
            Self::Failed { .. } | Self::Interrupted | Self::Output(_) => None,
        }
    }

    /// More lines that explain the error.
    pub fn lines(&self) -> &[String] {
        match self {
            Self::TooLate { lines, .. } => lines,
            _ => &[],
        }
    }
}
