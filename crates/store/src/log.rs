//! Writes a data folder: each group of changes is one frame at the end of the log, synced before it is acknowledged.
//!
//! When the log has grown as large as the stored objects, a new log starts, all objects are written beside it as a base, and
//! older files are removed. After a failed write the log is truncated. If that is not certain, the log is abandoned for a new
//! one. The header of the new log has the revision that it follows, so that remains of the old one are ignored.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::base;
use crate::codec::{FILE_HEADER, FileHeader, Framer, Kind};
use crate::error::StorageError;
use crate::files::{Files, Growing};
use crate::load::{CLOSED, Position, UNFINISHED, base_name, closed_text, log_name};
use crate::record::{Event, Record};

/// A shorter log needs no base.
const WORTH_A_BASE: u64 = 64 << 20;
/// The file that finds out whether there is room again.
const PROBE: &str = "base-0";
/// A buffer larger than this is not kept.
const KEPT_BUFFER: usize = 4 << 20;

/// The end of the log.
#[derive(Debug)]
pub(crate) struct Log {
    files: Arc<dyn Files>,
    /// The path for messages.
    path: PathBuf,
    sequence: u64,
    salt: u32,
    /// `None` if the contents of the file are uncertain.
    file: Option<Box<dyn Growing>>,
    /// The length that is known to be on disk.
    length: u64,
    since_base: u64,
    base_bytes: u64,
    /// The least length of logs since the base before the next base.
    smallest: u64,
    /// The same limit after a failure.
    worth: u64,
    making: Option<Making>,
    buffer: Vec<u8>,
    /// The length of the largest write that has failed since the last success.
    failed: usize,
}

/// A base in progress.
#[derive(Debug)]
struct Making {
    thread: JoinHandle<io::Result<u64>>,
    stop: Arc<AtomicBool>,
    /// The length of logs that it replaces.
    covers: u64,
}

/// Creates the file of a log, which is complete or absent.
pub(crate) fn create(files: &dyn Files, name: &str, header: &FileHeader) -> io::Result<Box<dyn Growing>> {
    let unfinished = format!("{name}{UNFINISHED}");
    let mut file = files.create(&unfinished)?;
    file.write(&header.encode(Kind::Log))?;
    file.sync()?;
    files.rename(&unfinished, name)?;
    files.sync()?;
    Ok(file)
}

impl Log {
    /// Continues at the end of a folder: truncates incomplete frames and removes obsolete files.
    ///
    /// A killed process may have written data without syncing it. The system shows this data to the next process, which shows it
    /// to clients. So everything found is synced first, and names before the removal of the files that they replace.
    pub(crate) fn resume(
        files: Arc<dyn Files>,
        path: PathBuf,
        at: &Position,
        smallest: Option<u64>,
    ) -> io::Result<Self> {
        let mut file = files.resume(&log_name(at.sequence))?;
        file.cut(at.length)?;
        file.sync()?;
        files.sync()?;
        let mut stale = at.leftovers.clone();
        if files.names()?.iter().any(|name| name == CLOSED) {
            stale.push(CLOSED.to_owned());
        }
        for name in &stale {
            files.remove(name)?;
        }
        if !stale.is_empty() {
            files.sync()?;
        }
        let smallest = smallest.unwrap_or(WORTH_A_BASE);
        Ok(Self {
            files,
            path,
            sequence: at.sequence,
            salt: at.salt,
            file: Some(file),
            length: at.length,
            since_base: at.since_base,
            base_bytes: at.base_bytes,
            smallest,
            worth: smallest,
            making: None,
            buffer: Vec::new(),
            failed: 0,
        })
    }

    fn error(&self, error: &io::Error) -> StorageError {
        StorageError::new(&self.path, error)
    }

    /// Writes the changes from one revision to another. After an error they are not part of the log.
    pub(crate) fn append(&mut self, from: u64, to: u64, events: &[Arc<Event>]) -> Result<(), StorageError> {
        if self.file.is_none() {
            self.begin(from).map_err(|e| self.error(&e))?;
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut framer = Framer::batch(&mut buffer, from, to);
        for event in events {
            framer.event(event);
        }
        let done = if framer.finish(self.salt) {
            self.write(&buffer)
        } else {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "the change is too large"))
        };
        buffer.clear();
        buffer.shrink_to(KEPT_BUFFER);
        self.buffer = buffer;
        done.map_err(|error| self.error(&error))
    }

    /// Finds out whether what could not be written could be written now, without a change: a file of that length, and an empty frame.
    pub(crate) fn probe(&mut self, revision: u64) -> Result<(), StorageError> {
        let name = format!("{PROBE}{UNFINISHED}");
        let room = self.files.create(&name).and_then(|mut file| {
            file.write(&vec![0; self.failed])?;
            file.sync()
        });
        let _ = self.files.remove(&name);
        room.map_err(|error| self.error(&error))?;
        self.append(revision, revision, &[])
    }

    /// The folder, for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(file) = &mut self.file else {
            return Err(io::Error::other("the log is not open"));
        };
        self.failed = self.failed.max(bytes.len());
        if let Err(error) = file.write(bytes) {
            // No part of it may be found after a restart.
            let cut = file.cut(self.length).and_then(|()| file.sync());
            if cut.is_err() || !is_full(&error) {
                self.file = None;
            }
            return Err(error);
        }
        if let Err(error) = file.sync() {
            // The system's cached data of this file is unreliable after an error.
            let _ = file.cut(self.length);
            self.file = None;
            return Err(error);
        }
        self.failed = 0;
        self.length += bytes.len() as u64;
        self.since_base += bytes.len() as u64;
        Ok(())
    }

    /// Starts the next log.
    fn begin(&mut self, revision: u64) -> io::Result<()> {
        let header = FileHeader::new(self.sequence + 1, revision);
        self.file = Some(create(&*self.files, &log_name(header.sequence), &header)?);
        self.sequence = header.sequence;
        self.salt = header.salt;
        self.length = FILE_HEADER as u64;
        self.since_base += self.length;
        Ok(())
    }

    /// Writes a base when it is due; `records` returns all objects at the revision.
    pub(crate) fn tend(&mut self, revision: u64, records: impl FnOnce() -> Vec<Arc<Record>>) {
        self.finish_making(false);
        if self.making.is_some() || self.since_base < self.worth.max(self.base_bytes) {
            return;
        }
        let covers = self.since_base;
        if let Err(error) = self.begin(revision) {
            tracing::warn!(%error, folder = %self.path.display(), "cannot start a new log");
            // The new log may exist nevertheless, and then later frames in the old one are ignored.
            self.file = None;
            self.worth = self.since_base + self.smallest;
            return;
        }
        let records = records();
        let (files, sequence) = (Arc::clone(&self.files), self.sequence);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("store-base".to_owned())
            .spawn(move || make_base(&*files, sequence, revision, &records, &stopped));
        match thread {
            Ok(thread) => self.making = Some(Making { thread, stop, covers }),
            Err(error) => {
                tracing::warn!(%error, "cannot start a thread");
                self.worth = self.since_base + self.smallest;
            }
        }
    }

    fn finish_making(&mut self, wait: bool) {
        let Some(making) = self.making.take_if(|m| wait || m.thread.is_finished()) else {
            return;
        };
        if wait {
            making.stop.store(true, Ordering::Relaxed);
        }
        let made = making
            .thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("it panicked")));
        match made {
            Ok(length) => {
                self.base_bytes = length;
                self.since_base -= making.covers;
                self.worth = self.smallest;
            }
            Err(_) if wait => {}
            Err(error) => {
                tracing::warn!(%error, folder = %self.path.display(), "cannot write a base: the log keeps growing");
                self.worth = self.since_base + self.smallest;
            }
        }
    }

    /// Stops running work and records the end of the log. The record only serves to detect a truncated log later.
    pub(crate) fn close(&mut self) {
        self.finish_making(true);
        if self.file.take().is_none() {
            return;
        }
        let unfinished = format!("{CLOSED}{UNFINISHED}");
        let written = self.files.create(&unfinished).and_then(|mut file| {
            file.write(closed_text(self.sequence, self.length).as_bytes())?;
            file.sync()?;
            self.files.rename(&unfinished, CLOSED)?;
            self.files.sync()
        });
        if let Err(error) = written {
            tracing::debug!(%error, folder = %self.path.display(), "cannot write the end marker of the log");
        }
    }
}

/// Whether the disk or a limit is full: a later attempt may succeed.
pub(crate) fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// Writes a base, then removes the files that it replaces.
fn make_base(
    files: &dyn Files,
    sequence: u64,
    revision: u64,
    records: &[Arc<Record>],
    stop: &AtomicBool,
) -> io::Result<u64> {
    let header = FileHeader::new(sequence, revision);
    let length = base::write(files, &base_name(sequence), Kind::Base, &header, records, stop)?;
    let old = |name: &String| {
        let number = |prefix| name.strip_prefix(prefix).and_then(|n: &str| n.parse::<u64>().ok());
        number("log-").or_else(|| number("base-")).is_some_and(|n| n < sequence)
    };
    // Remaining files are ignored, and the next start removes them.
    for name in files.names()?.iter().filter(|n| old(n)) {
        let _ = files.remove(name);
    }
    let _ = files.sync();
    Ok(length)
}
