//! Saves a data folder to one file, and restores it.
//!
//! A snapshot is the state at one revision. It is read from the files of the folder, with or without a running writer: only
//! complete frames are read, and frames are only appended.
//!
//! A restored folder continues far beyond the revision of the snapshot ([`beyond`]): clients may have seen later revisions, also
//! of a folder that was restored before, and no revision is used twice. Objects keep their resourceVersions.

use std::io::Read as _;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::base;
use crate::codec::{FileHeader, Kind, Names};
use crate::durable::open_error;
use crate::error::{OpenError, SnapshotError};
use crate::files::{Files as _, Folder};
use crate::folder::{self, Found};
use crate::load::{self, FIRST, Frames, UNFINISHED, Wrong, base_name, is_ours};
use crate::memory::Memory;
use crate::store::Limits;

/// The least number of revisions that a restored folder skips.
const LEAP: u64 = 1_000_000_000;
/// The number of attempts to read files that change meanwhile.
const TRIES: usize = 5;

/// The contents of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// The revision of the objects.
    pub revision: u64,
    /// The number of objects.
    pub objects: usize,
    /// The length of the file.
    pub bytes: u64,
}

const NO_HISTORY: Limits = Limits {
    log_events: 0,
    log_bytes: 0,
    all_log_bytes: 0,
    object_bytes: usize::MAX,
};

fn split(file: &Path) -> Result<(Folder, String), SnapshotError> {
    let name = file.file_name().and_then(|n| n.to_str());
    let parent = file.parent().filter(|p| !p.as_os_str().is_empty());
    match name {
        Some(name) => Ok((Folder(parent.unwrap_or(Path::new(".")).to_path_buf()), name.to_owned())),
        None => Err(SnapshotError::Io {
            path: file.to_path_buf(),
            what: "used",
            source: std::io::Error::new(std::io::ErrorKind::InvalidInput, "it names no file"),
        }),
    }
}

fn failed(file: &Path, what: &'static str) -> impl FnOnce(std::io::Error) -> SnapshotError {
    let path = file.to_path_buf();
    move |source| SnapshotError::Io { path, what, source }
}

/// Saves a data folder to a new file, also while a process uses it.
pub fn save(folder: &Path, file: &Path) -> Result<Summary, SnapshotError> {
    let (place, name) = split(file)?;
    if file.symlink_metadata().is_ok() {
        return Err(SnapshotError::Exists {
            path: file.to_path_buf(),
        });
    }
    let memory = read(folder)?;
    let records = memory.records();
    let header = FileHeader::new(0, memory.revision);
    let bytes = base::write(
        &place,
        &name,
        Kind::Snapshot,
        &header,
        &records,
        &AtomicBool::new(false),
    )
    .map_err(failed(file, "written"))?;
    Ok(Summary {
        revision: memory.revision,
        objects: records.len(),
        bytes,
    })
}

fn read(folder: &Path) -> Result<Memory, OpenError> {
    if folder::inspect(folder)? == Found::Fresh {
        return Err(OpenError::Io {
            path: folder.to_path_buf(),
            what: "holds nothing yet: start a server on it first".to_owned(),
            source: std::io::ErrorKind::NotFound.into(),
        });
    }
    let files = Folder(folder.to_path_buf());
    let mut tried = 0;
    loop {
        tried += 1;
        match load::load(&files, NO_HISTORY) {
            Ok((memory, _)) => return Ok(memory),
            // Files may have been replaced between listing and opening them.
            Err(wrong) if tried == TRIES => return Err(open_error(folder, wrong)),
            Err(_) => {}
        }
    }
}

/// Reads a complete snapshot.
fn read_file(file: &Path) -> Result<(Memory, u64), SnapshotError> {
    let (place, name) = split(file)?;
    let (mut input, bytes) = place.open(&name).map_err(failed(file, "read"))?;
    let mut magic = [0; 15];
    let known = b"windlass snap 1";
    if input.read_exact(&mut magic).is_ok() && magic != *known && magic.starts_with(b"windlass snap ") {
        return Err(SnapshotError::Format {
            path: file.to_path_buf(),
            found: String::from_utf8_lossy(&magic).into_owned(),
        });
    }
    let mut names = Names::new();
    let memory = Frames::open(&place, &name, Kind::Snapshot)
        .and_then(|mut frames| load::read_base(&mut frames, NO_HISTORY, &mut names))
        .map_err(|wrong| match wrong {
            Wrong::Io { source, .. } => failed(file, "read")(source),
            Wrong::Damaged(reason) => SnapshotError::Damaged {
                path: file.to_path_buf(),
                reason,
            },
        })?;
    Ok((memory, bytes))
}

/// The first revision of a folder restored at this time (since 1970).
///
/// No server makes a change in every microsecond. So the time in microseconds is beyond all revisions that any server
/// has used after the snapshot. If the clock is implausible, a large jump is used.
fn beyond(revision: u64, now: Duration) -> u64 {
    let now = u64::try_from(now.as_micros()).unwrap_or_default();
    if now > revision {
        now
    } else {
        revision.saturating_add(LEAP)
    }
}

/// Restores a snapshot into an empty or missing folder.
pub fn restore(file: &Path, folder: &Path) -> Result<Summary, SnapshotError> {
    let (memory, bytes) = read_file(file)?;
    folder::make(folder)?;
    let _alone = folder::lock(folder)?;
    let files = Folder(folder.to_path_buf());
    let found = files.names().map_err(folder::io(folder, "cannot be read"))?;
    let nothing = |name: &String| name.ends_with(UNFINISHED) && is_ours(name);
    if let Some(holds) = found.into_iter().find(|name| !nothing(name)) {
        return Err(SnapshotError::NotEmpty {
            path: folder.to_path_buf(),
            holds,
        });
    }
    let records = memory.records();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let revision = beyond(memory.revision, now);
    let header = FileHeader::new(FIRST, revision);
    let base = base_name(FIRST);
    let made = base::write(&files, &base, Kind::Base, &header, &records, &AtomicBool::new(false))
        .map_err(folder::io(folder, "cannot be written"))
        .and_then(|_| folder::begin(folder, revision));
    if let Err(error) = made {
        // The folder was empty before.
        for name in files.names().unwrap_or_default() {
            if is_ours(&name) || name.starts_with(folder::MARKER) {
                let _ = files.remove(&name);
            }
        }
        return Err(error.into());
    }
    Ok(Summary {
        revision: memory.revision,
        objects: records.len(),
        bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restored_folder_goes_on_beyond_all_that_was_given() {
        let check = |revision, seconds, expect| assert_eq!(beyond(revision, Duration::from_secs(seconds)), expect);
        check(700, 1_800_000_000, 1_800_000_000_000_000);
        // The same snapshot once more, ten seconds later.
        check(700, 1_800_000_010, 1_800_000_010_000_000);
        // A snapshot of the restored folder.
        check(1_800_000_010_000_300, 1_800_000_020, 1_800_000_020_000_000);
        // A wrong clock.
        check(700, 0, 1_000_000_700);
        check(1_800_000_010_000_300, 1_700_000_000, 1_800_001_010_000_300);
    }
}
