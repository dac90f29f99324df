//! The data folder: its marker, and what may be in it.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::error::OpenError;

/// The file that says what the folder is.
pub(crate) const MARKER: &str = "windlass-store-format";
/// What it says.
pub(crate) const FORMAT: &str = "windlass store 1";
/// The database.
pub(crate) const DATABASE: &str = "objects.redb";
/// The database while it is being made: without meaning, and safe to remove.
pub(crate) const UNFINISHED: &str = "objects.redb.new";

/// What a folder was found to be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing was stored in it yet.
    Fresh,
    /// It holds a database of this format.
    Database(PathBuf),
}

fn io(path: &Path, what: &'static str) -> impl FnOnce(std::io::Error) -> OpenError {
    let path = path.to_path_buf();
    move |source| OpenError::Io { path, what, source }
}

/// Looks at a folder, making it when it is missing: for its owner only, as objects hold secrets.
pub(crate) fn inspect(folder: &Path) -> Result<Found, OpenError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(folder).map_err(io(folder, "cannot be made"))?;
    let marker = folder.join(MARKER);
    let database = folder.join(DATABASE);
    match fs::read_to_string(&marker) {
        Ok(text) if text.trim_end() == FORMAT => {}
        Ok(text) => {
            return Err(OpenError::Format {
                path: folder.to_path_buf(),
                found: text.trim_end().chars().take(80).collect(),
                expected: FORMAT,
            });
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            // The database is named last: without a marker it is not ours.
            if database.exists() {
                return Err(OpenError::Foreign {
                    path: folder.to_path_buf(),
                    holds: DATABASE.to_owned(),
                    marker: MARKER,
                });
            }
            return Ok(Found::Fresh);
        }
        Err(e) => return Err(io(folder, "its marker cannot be read")(e)),
    }
    let unfinished = folder.join(UNFINISHED).exists();
    // Looked for last: it may get its name just now, and then the unfinished one is not there any more.
    if database.exists() {
        Ok(Found::Database(database))
    } else if unfinished {
        Ok(Found::Fresh)
    } else {
        // The marker is written when there is something to name.
        Err(OpenError::Damaged {
            path: folder.to_path_buf(),
            reason: format!("{DATABASE} is missing"),
        })
    }
}

/// Keeps others from making a database in a folder, until it is dropped.
pub(crate) fn lock(folder: &Path) -> Result<fs::File, OpenError> {
    let handle = fs::File::open(folder).map_err(io(folder, "cannot be read"))?;
    match handle.try_lock() {
        Ok(()) => Ok(handle),
        Err(fs::TryLockError::WouldBlock) => Err(OpenError::InUse {
            path: folder.to_path_buf(),
        }),
        Err(fs::TryLockError::Error(error)) => Err(io(folder, "cannot be locked")(error)),
    }
}

/// Takes away what a crash left behind of a database that was never finished: the marker first, which promises one.
pub(crate) fn clear(folder: &Path) -> Result<(), OpenError> {
    for name in [MARKER, UNFINISHED] {
        match fs::remove_file(folder.join(name)) {
            Ok(()) => sync(folder)?,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(io(folder, "cannot be cleared of a database that was never finished")(e)),
        }
    }
    Ok(())
}

/// Writes the marker so that it is whole or absent after a crash.
pub(crate) fn write_marker(folder: &Path) -> Result<(), OpenError> {
    let unfinished = folder.join(format!("{MARKER}.new"));
    let mut file = fs::File::create(&unfinished).map_err(io(folder, "cannot be written"))?;
    file.write_all(FORMAT.as_bytes())
        .and_then(|()| file.write_all(b"\n"))
        .and_then(|()| file.sync_all())
        .map_err(io(folder, "cannot be written"))?;
    fs::rename(&unfinished, folder.join(MARKER)).map_err(io(folder, "cannot be written"))?;
    sync(folder)
}

/// Gives the finished database its name.
pub(crate) fn name_database(folder: &Path) -> Result<(), OpenError> {
    fs::rename(folder.join(UNFINISHED), folder.join(DATABASE)).map_err(io(folder, "cannot be written"))?;
    sync(folder)
}

fn sync(folder: &Path) -> Result<(), OpenError> {
    fs::File::open(folder)
        .and_then(|f| f.sync_all())
        .map_err(io(folder, "cannot be synced"))
}
