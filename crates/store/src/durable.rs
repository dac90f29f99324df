//! The durable variant: one writer that gathers requests into one synced frame of the log.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};

use crate::error::{CommitError, OpenError};
use crate::files::{Files, Folder};
use crate::folder::{self, Found};
use crate::load::{self, FIRST_REVISION, Wrong};
use crate::log::Log;
use crate::memory::Memory;
use crate::record::{Change, Event, Key, Record, Write};
use crate::store::{Limits, Shared, evaluate};

/// The limit of requests in a frame.
const GATHER: usize = 512;
/// A frame of this size accepts no more requests.
const GATHER_BYTES: usize = 8 << 20;

/// One transaction and its caller.
pub(crate) struct Request {
    pub(crate) writes: Vec<Write>,
    pub(crate) answer: oneshot::Sender<Answer>,
}

type Answer = Result<Vec<Arc<Record>>, CommitError>;

impl Request {
    fn bytes(&self) -> usize {
        let drafts = self.writes.iter().map(|write| match &write.change {
            Change::Put(draft) | Change::Delete(Some(draft)) => draft.value.len(),
            Change::Delete(None) | Change::Check => 0,
        });
        drafts.sum()
    }
}

/// The log, and the lock of its folder.
pub(crate) struct Disk {
    log: Log,
    _lock: Option<folder::Lock>,
}

/// The error for a folder that cannot be read.
pub(crate) fn open_error(folder: &Path, wrong: Wrong) -> OpenError {
    let path = folder.to_path_buf();
    match wrong {
        Wrong::Io { what, source } => OpenError::Io {
            path,
            what: format!("cannot be used: {what}"),
            source,
        },
        Wrong::Damaged(reason) => OpenError::Damaged { path, reason },
    }
}

/// Opens a data folder and reads all of it.
pub(crate) fn open(folder: &Path, limits: Limits, smallest: Option<u64>) -> Result<(Disk, Memory), OpenError> {
    folder::make(folder)?;
    let lock = folder::lock(folder)?;
    if folder::inspect(folder)? == Found::Fresh {
        folder::begin(folder, FIRST_REVISION)?;
    }
    let files = Arc::new(Folder(folder.to_path_buf()));
    open_files(files, folder, limits, smallest, Some(lock))
}

/// Opens the files of an initialized folder.
pub(crate) fn open_files(
    files: Arc<dyn Files>,
    folder: &Path,
    limits: Limits,
    smallest: Option<u64>,
    lock: Option<folder::Lock>,
) -> Result<(Disk, Memory), OpenError> {
    let (memory, position) = load::load(&*files, limits).map_err(|wrong| open_error(folder, wrong))?;
    let log = Log::resume(files, folder.to_path_buf(), &position, smallest)
        .map_err(folder::io(folder, "cannot be written"))?;
    Ok((Disk { log, _lock: lock }, memory))
}

/// The writer: gathers waiting requests, writes them, publishes them, answers.
pub(crate) fn run(mut disk: Disk, mut requests: mpsc::UnboundedReceiver<Request>, shared: &Weak<Shared>) {
    while let Some(first) = requests.blocking_recv() {
        let Some(shared) = shared.upgrade() else {
            break;
        };
        let mut bytes = first.bytes();
        let mut batch = vec![first];
        while batch.len() < GATHER && bytes < GATHER_BYTES {
            match requests.try_recv() {
                Ok(request) => {
                    bytes += request.bytes();
                    batch.push(request);
                }
                Err(_) => break,
            }
        }
        commit_batch(&mut disk.log, &shared, batch);
        let revision = shared.memory.read().revision;
        disk.log.tend(revision, || shared.memory.read().records());
    }
    disk.log.close();
}

fn commit_batch(log: &mut Log, shared: &Shared, batch: Vec<Request>) {
    // Only this thread changes the memory, so that reads here are still valid when the batch is applied.
    let from = shared.memory.read().revision;
    let mut pending: HashMap<Key, Option<Arc<Record>>> = HashMap::new();
    let mut events: Vec<Arc<Event>> = Vec::new();
    let mut answers: Vec<(oneshot::Sender<Answer>, Answer)> = Vec::with_capacity(batch.len());
    {
        let memory = shared.memory.read();
        for request in batch {
            let revision = events.last().map_or(from, |e| e.revision());
            let made = evaluate(request.writes, revision, |key| match pending.get(key) {
                Some(record) => record.clone(),
                None => memory.get(key).cloned(),
            });
            let answer = made.map(|made| {
                let records = made.iter().map(|e| Arc::clone(&e.record)).collect();
                for event in made {
                    let now = (!event.deleted).then(|| Arc::clone(&event.record));
                    pending.insert(event.record.key.clone(), now);
                    events.push(event);
                }
                records
            });
            answers.push((request.answer, answer));
        }
    }
    let to = events.last().map_or(from, |last| last.revision());
    // While writes fail, a batch without changes finds out whether they still do.
    if !events.is_empty() || shared.trouble.error().is_some() {
        let written = if events.is_empty() {
            log.probe(from)
        } else {
            log.append(from, to, &events)
        };
        match written {
            Ok(()) => {
                shared.trouble.ended(log.path());
                let mut memory = shared.memory.write();
                shared.publish(&mut memory, &events);
            }
            Err(error) => {
                shared.trouble.failed(&error, Instant::now());
                // Even a read-only transaction may depend on an unwritten one.
                for (_, answer) in answers.iter_mut().filter(|_| !events.is_empty()) {
                    *answer = Err(CommitError::Storage(error.clone()));
                }
            }
        }
    }
    for (to, answer) in answers {
        let _ = to.send(answer);
    }
}
