//! How the demo fails.

use std::error::Error;

use windlass_manager::ManagerError;

/// Why the demo did not reach its end.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The management cluster could not start.
    #[error(transparent)]
    Manager(#[from] ManagerError),
    /// Something else failed.
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
        /// Which step.
        what: String,
        /// The conditions that explain it, a line each.
        lines: Vec<String>,
        /// What the user can do.
        hint: String,
    },
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

    /// A failure that says everything itself.
    pub(crate) fn plain(what: impl Into<String>) -> Self {
        Self::Failed {
            what: what.into(),
            source: None,
        }
    }

    /// What the user can do.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Manager(error) => error.hint(),
            Self::TooLate { hint, .. } => Some(hint.clone()),
            Self::Failed { .. } | Self::Output(_) => None,
        }
    }

    /// What explains it, line by line.
    pub fn lines(&self) -> &[String] {
        match self {
            Self::TooLate { lines, .. } => lines,
            _ => &[],
        }
    }
}
