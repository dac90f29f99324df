//! The data folder: its marker and its permitted contents.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use crate::codec::{FileHeader, Kind};
use crate::error::OpenError;
use crate::files::{Files as _, Folder};
use crate::load::{FIRST, UNFINISHED, is_ours, log_name};

/// The file with the format of the folder.
pub(crate) const MARKER: &str = "windlass-store-format";
/// Its content.
pub(crate) const FORMAT: &str = "windlass store 2";
/// The data file of earlier formats.
const EARLIER: &str = "objects.redb";

/// The result of inspecting a folder.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// No data yet.
    Fresh,
    /// It holds data of this format.
    Data,
}

pub(crate) fn io(path: &Path, what: &'static str) -> impl FnOnce(std::io::Error) -> OpenError {
    let path = path.to_path_buf();
    move |source| OpenError::Io {
        path,
        what: what.to_owned(),
        source,
    }
}

/// Creates a missing folder and its parents, accessible only by its owner, because objects contain secrets. The parents are
/// synced as well, so that the folder is durable.
pub(crate) fn make(folder: &Path) -> Result<(), OpenError> {
    let here = |path: &Path| path.as_os_str().is_empty();
    let missing: Vec<&Path> = folder.ancestors().take_while(|at| !here(at) && !at.exists()).collect();
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    let made = builder.create(folder).and_then(|()| {
        let around = missing.into_iter().filter_map(Path::parent);
        around
            .map(|at| if here(at) { Path::new(".") } else { at })
            .try_for_each(|at| Folder(at.to_path_buf()).sync())
    });
    made.map_err(io(folder, "cannot be made"))
}

/// Inspects a folder.
pub(crate) fn inspect(folder: &Path) -> Result<Found, OpenError> {
    let names = Folder(folder.to_path_buf())
        .names()
        .map_err(io(folder, "cannot be read"))?;
    match fs::read_to_string(folder.join(MARKER)) {
        Ok(text) if text.trim_end() == FORMAT => {}
        Ok(text) => {
            return Err(OpenError::Format {
                path: folder.to_path_buf(),
                found: text.trim_end().chars().take(80).collect(),
                expected: FORMAT,
            });
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            // The log gets its name last: without a marker the file is not ours.
            let data = |name: &&String| (is_ours(name) && !name.ends_with(UNFINISHED)) || *name == EARLIER;
            if let Some(holds) = names.iter().find(data) {
                return Err(OpenError::Foreign {
                    path: folder.to_path_buf(),
                    holds: holds.clone(),
                    marker: MARKER,
                });
            }
            return Ok(Found::Fresh);
        }
        Err(e) => return Err(io(folder, "has a marker that cannot be read")(e)),
    }
    let has = |wanted: &dyn Fn(&str) -> bool| names.iter().any(|name| wanted(name));
    let unfinished = format!("{}{UNFINISHED}", log_name(FIRST));
    if has(&|name| is_ours(name) && !name.ends_with(UNFINISHED)) || !has(&|name| name == unfinished) {
        // Missing files are reported when they are read.
        return Ok(Found::Data);
    }
    Ok(Found::Fresh)
}

/// The lock of a folder, until dropped.
#[derive(Debug)]
pub(crate) struct Lock(fs::File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing is not enough while a starting child process has a copy of the handle.
        let _ = self.0.unlock();
    }
}

/// Locks a folder.
pub(crate) fn lock(folder: &Path) -> Result<Lock, OpenError> {
    let handle = fs::File::open(folder).map_err(io(folder, "cannot be read"))?;
    match handle.try_lock() {
        Ok(()) => Ok(Lock(handle)),
        Err(fs::TryLockError::WouldBlock) => Err(OpenError::InUse {
            path: folder.to_path_buf(),
        }),
        Err(fs::TryLockError::Error(error)) => Err(io(folder, "cannot be locked")(error)),
    }
}

/// Initializes a new, locked folder: a log that follows a revision, and the marker. The log gets its name last, so that after a
/// crash it is either complete or absent.
pub(crate) fn begin(folder: &Path, revision: u64) -> Result<(), OpenError> {
    let files = Folder(folder.to_path_buf());
    let cannot = || io(folder, "cannot be written");
    let name = log_name(FIRST);
    let unfinished = format!("{name}{UNFINISHED}");
    let header = FileHeader::new(FIRST, revision).encode(Kind::Log);
    let mut log = files.create(&unfinished).map_err(cannot())?;
    log.write(&header).and_then(|()| log.sync()).map_err(cannot())?;
    write_marker(folder).map_err(cannot())?;
    files.sync().map_err(cannot())?;
    files
        .rename(&unfinished, &name)
        .and_then(|()| files.sync())
        .map_err(cannot())
}

/// Writes the marker atomically.
fn write_marker(folder: &Path) -> std::io::Result<()> {
    let unfinished = folder.join(format!("{MARKER}{UNFINISHED}"));
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(&unfinished)?;
    file.write_all(FORMAT.as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    fs::rename(&unfinished, folder.join(MARKER))
}
