//! Errors of the store.

use std::path::PathBuf;
use std::sync::Arc;

use crate::record::Record;

/// Why a commit was not made. Nothing of it is visible.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CommitError {
    /// A precondition did not hold; what is stored instead is in `current`.
    #[error("precondition of write {index} failed")]
    Conflict {
        /// Which write of the transaction.
        index: usize,
        /// What is stored now, if anything.
        current: Option<Arc<Record>>,
    },
    /// The disk refused.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// The disk refused to take a commit.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the data folder cannot be written: {message}")]
pub struct StorageError {
    /// What the operating system or the database said.
    pub message: String,
    /// The disk is full: the request can be repeated once there is room.
    pub full: bool,
}

impl StorageError {
    pub(crate) fn new(error: &(dyn std::error::Error + 'static)) -> Self {
        let mut message = error.to_string();
        let mut full = false;
        let mut next = Some(error);
        while let Some(e) = next {
            if let Some(io) = e.downcast_ref::<std::io::Error>() {
                full |= io.kind() == std::io::ErrorKind::StorageFull;
            }
            next = e.source();
        }
        if message.contains("os error 28") {
            full = true;
        }
        if full && !message.contains("space") {
            message = format!("no space left on device ({message})");
        }
        Self { message, full }
    }

    pub(crate) fn closed() -> Self {
        Self {
            message: "the store is closed".to_owned(),
            full: false,
        }
    }
}

/// Why a data folder could not be opened. The folder is left as it was found.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder was written by another format version.
    #[error(
        "data folder {} has format {found:?}, this program reads {expected:?}: use the program version that wrote it, or another folder",
        path.display()
    )]
    Format {
        /// The data folder.
        path: PathBuf,
        /// What the marker file says.
        found: String,
        /// What this program writes.
        expected: &'static str,
    },
    /// There is data, but no marker that says what it is.
    #[error(
        "{} is not a data folder of this program: it holds {holds:?} but no {marker:?} file; choose an empty folder",
        path.display()
    )]
    Foreign {
        /// The data folder.
        path: PathBuf,
        /// A file found there.
        holds: String,
        /// The marker's name.
        marker: &'static str,
    },
    /// Another process has the folder open.
    #[error("data folder {} is in use by another process: stop it, or choose another folder", path.display())]
    InUse {
        /// The data folder.
        path: PathBuf,
    },
    /// The folder says it holds data, but the data is gone or damaged.
    #[error("data folder {} is damaged: {reason}; restore it from a backup, or move it away and start anew", path.display())]
    Damaged {
        /// The data folder.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The operating system refused.
    #[error("data folder {}: {what}: {source}", path.display())]
    Io {
        /// The data folder.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// What the operating system said.
        source: std::io::Error,
    },
}
