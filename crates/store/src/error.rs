//! Errors of the store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::log::is_full;
use crate::record::Record;

/// Why a commit failed. None of its writes is visible.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CommitError {
    /// A precondition did not hold. `current` has the stored object.
    #[error("precondition of write {index} failed")]
    Conflict {
        /// The index of the write in the transaction.
        index: usize,
        /// The stored object, if any.
        current: Option<Arc<Record>>,
    },
    /// The disk refused.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// The disk refused a commit.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct StorageError {
    /// The folder, the error of the operating system, and the remedy.
    pub message: String,
    /// The disk is full: the request can be repeated once there is room.
    pub full: bool,
}

impl StorageError {
    /// The error for a store in memory that has as many bytes as it may.
    pub(crate) fn full() -> Self {
        Self {
            message: "etcdserver: mvcc: database space exceeded; delete objects, and others can be written again"
                .to_owned(),
            full: true,
        }
    }

    pub(crate) fn new(folder: &Path, error: &std::io::Error) -> Self {
        let full = is_full(error);
        let advice = if full {
            "make room there, and writes go on"
        } else {
            "nothing is lost, and each write tries again; see to the disk"
        };
        Self {
            message: format!("data folder {} cannot be written: {error}; {advice}", folder.display()),
            full,
        }
    }

    /// The store takes no writes any more.
    pub fn closed() -> Self {
        Self {
            message: "the store is closed: the server is stopping".to_owned(),
            full: false,
        }
    }
}

/// Why a data folder could not be opened. The folder is left as it was found.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder was written by another format version.
    #[error(
        "data folder {} has format {found:?}, this program reads {expected:?}: {}, or choose another folder",
        path.display(),
        advice(found)
    )]
    Format {
        /// The data folder.
        path: PathBuf,
        /// The format in the marker file.
        found: String,
        /// The format of this program.
        expected: &'static str,
    },
    /// The folder has data but no marker.
    #[error(
        "{} is not a data folder of this program: it holds {holds:?} but no {marker:?} file; choose an empty folder (or remove this one, if it is what an interrupted restore left)",
        path.display()
    )]
    Foreign {
        /// The data folder.
        path: PathBuf,
        /// An existing file.
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
    /// The folder has a marker, but its data is missing or damaged.
    #[error("data folder {} is damaged: {reason}; nothing in it was changed: move it away and restore a snapshot, or start with an empty one", path.display())]
    Damaged {
        /// The data folder.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The operating system refused.
    #[error("data folder {} {what}{}", path.display(), io_advice(source))]
    Io {
        /// The data folder.
        path: PathBuf,
        /// The operation that failed.
        what: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
}

fn advice(found: &str) -> &'static str {
    let number = |text: &str| text.strip_prefix("windlass store ").and_then(|n| n.parse::<u64>().ok());
    match (number(found), number(crate::folder::FORMAT)) {
        (Some(found), Some(ours)) if found > ours => {
            "a newer version of the program wrote it, so use that or a newer one"
        }
        (Some(_), _) => {
            "a version of the program from before its first release wrote it, so use that, or apply its objects again"
        }
        _ => "use the program that wrote it",
    }
}

fn io_advice(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
            ": its files must be readable and writable for the user who runs this"
        }
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => ": make room there and start again",
        _ => "",
    }
}

/// Why a snapshot was not saved or restored. Existing data is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The data folder cannot be used.
    #[error(transparent)]
    Folder(#[from] OpenError),
    /// The file to write exists.
    #[error("{} exists: choose another name, or remove it first", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The folder to restore into is not empty.
    #[error("{} is not empty (it holds {holds:?}): a snapshot is restored into an empty folder, so choose another or move this one away", path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
        /// What was found there.
        holds: String,
    },
    /// The file is not a complete snapshot.
    #[error("{} is not a whole snapshot: {reason}; use another copy of it", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The snapshot is of another version.
    #[error("{} is a snapshot of another format version ({found:?}): use the version of the program that saved it, or a newer one", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The first bytes.
        found: String,
    },
    /// The operating system refused.
    #[error("{} cannot be {what}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operation that failed.
        what: &'static str,
        /// The error of the operating system.
        source: std::io::Error,
    },
}
