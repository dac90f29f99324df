//! The public interface of the store.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::sync::{mpsc, oneshot};

use crate::durable::{self, Request};
use crate::error::{CommitError, OpenError, StorageError};
use crate::memory::Memory;
use crate::record::{Change, Event, Expect, Key, Record, Write};
use crate::trouble::Trouble;
use crate::watcher::{Expired, Watcher};

/// The time between two attempts while the data folder cannot be written.
const RETRY: Duration = Duration::from_secs(5);

/// Limits of the history for watches and continued lists, of which only bytes count that nothing else keeps in memory; and of the objects.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Changes of one resource.
    pub log_events: usize,
    /// Bytes of one resource.
    pub log_bytes: usize,
    /// Bytes of all resources.
    pub all_log_bytes: usize,
    /// Bytes of all objects of a store in memory. A write that goes beyond them is refused as by a full disk. A store in a folder has the
    /// limit of its disk.
    pub object_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            log_events: 20_000,
            log_bytes: 16 << 20,
            all_log_bytes: 48 << 20,
            object_bytes: usize::MAX,
        }
    }
}

impl Limits {
    /// Limits for one of thousands of small stores in a process.
    pub fn small() -> Self {
        Self {
            log_events: 100,
            log_bytes: 64 << 10,
            all_log_bytes: 64 << 10,
            object_bytes: 128 << 20,
        }
    }
}

/// A list query.
#[derive(Debug, Clone, Copy)]
pub struct ListQuery<'a> {
    /// Resource and group.
    pub resource: &'a str,
    /// Only objects in this namespace.
    pub namespace: Option<&'a str>,
    /// Only objects after this namespace and name.
    pub after: Option<(&'a str, &'a str)>,
    /// The revision of the list; the current one if unset.
    pub at: Option<u64>,
}

/// Objects in order, as they were at one revision.
#[derive(Debug, Clone)]
pub struct Page {
    /// The revision.
    pub revision: u64,
    /// The objects.
    pub items: Vec<Arc<Record>>,
}

/// How much a store has of a resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sizes {
    /// The number of objects.
    pub objects: usize,
    /// The bytes of their encodings.
    pub bytes: usize,
    /// The bytes that only its history keeps in memory.
    pub history: usize,
}

/// The history of a resource up to a revision, and the number of watchers.
pub(crate) struct Taken {
    pub(crate) revision: u64,
    pub(crate) events: Vec<Arc<Event>>,
    pub(crate) followers: usize,
}

/// Objects, and the log of their changes. A clone is another handle to the same store.
#[derive(Debug, Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) memory: RwLock<Memory>,
    feeds: Mutex<Vec<mpsc::UnboundedSender<Arc<Event>>>>,
    writer: Mutex<Option<mpsc::UnboundedSender<Request>>>,
    durable: bool,
    pub(crate) trouble: Trouble,
    finished: Mutex<Option<std::thread::JoinHandle<()>>>,
}

impl Store {
    /// A store that lives as long as the process.
    pub fn memory(limits: Limits) -> Self {
        Self {
            shared: Arc::new(Shared {
                memory: RwLock::new(Memory::new(1, limits)),
                feeds: Mutex::new(Vec::new()),
                writer: Mutex::new(None),
                durable: false,
                trouble: Trouble::default(),
                finished: Mutex::new(None),
            }),
        }
    }

    /// Opens or creates a data folder.
    pub fn open(folder: &Path, limits: Limits) -> Result<Self, OpenError> {
        Self::open_with(folder, limits, None)
    }

    /// [`Store::open`] with the log size at which the first base is written.
    pub fn open_with(folder: &Path, limits: Limits, compact_after: Option<u64>) -> Result<Self, OpenError> {
        let (disk, memory) = durable::open(folder, limits, compact_after)?;
        Self::start(disk, memory).map_err(|source| OpenError::Io {
            path: folder.to_path_buf(),
            what: "has no thread to write it".to_owned(),
            source,
        })
    }

    pub(crate) fn start(disk: durable::Disk, memory: Memory) -> std::io::Result<Self> {
        let (tx, rx) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            memory: RwLock::new(memory),
            feeds: Mutex::new(Vec::new()),
            writer: Mutex::new(Some(tx)),
            durable: true,
            trouble: Trouble::default(),
            finished: Mutex::new(None),
        });
        let weak = Arc::downgrade(&shared);
        let thread = std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || durable::run(disk, rx, &weak))?;
        *shared.finished.lock() = Some(thread);
        Ok(Self { shared })
    }

    /// Stops accepting writes, waits for running ones, and releases the data folder. Reads continue.
    pub async fn close(&self) {
        self.shared.writer.lock().take();
        let thread = self.shared.finished.lock().take();
        if let Some(thread) = thread {
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }

    /// The error of the last write, if the data folder could not be written.
    pub fn trouble(&self) -> Option<StorageError> {
        self.shared.trouble.error()
    }

    /// Tries to write while the data folder cannot be written, for ever. A process at rest writes nothing else, and would not notice that
    /// there is room again.
    pub async fn keep_trying(&self) {
        loop {
            self.shared.trouble.began().await;
            self.until_written().await;
        }
    }

    /// Tries to write until it succeeds.
    pub(crate) async fn until_written(&self) {
        while self.trouble().is_some() {
            tokio::time::sleep(RETRY).await;
            // Nothing is changed. While writes fail, the writer tries nevertheless.
            if self.commit(Vec::new()).await.is_err() {
                return;
            }
        }
    }

    /// Whether objects survive the process.
    pub fn is_durable(&self) -> bool {
        self.shared.durable
    }

    /// The revision of the last change.
    pub fn revision(&self) -> u64 {
        self.shared.memory.read().revision
    }

    /// One object.
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Arc<Record>> {
        self.shared.memory.read().find(resource, namespace, name).cloned()
    }

    /// Objects in order.
    pub fn list(&self, query: &ListQuery<'_>) -> Result<Page, Expired> {
        self.shared.memory.read().list(query)
    }

    /// The objects of a namespace that have all of these labels, in order. The first time, an index is made of one of the labels; then only
    /// objects that have it are looked at. For labels that the program itself asks for.
    pub fn labelled(&self, resource: &str, namespace: &str, labels: &BTreeMap<String, String>) -> Vec<Arc<Record>> {
        loop {
            let found = self.shared.memory.read().labelled(resource, namespace, labels);
            if let Some(found) = found {
                return found;
            }
            self.shared.memory.write().index(resource, labels);
        }
    }

    /// The number of a resource's objects.
    pub fn count(&self, resource: &str) -> usize {
        self.sizes(resource).objects
    }

    /// How much there is of a resource. This looks at no object.
    pub fn sizes(&self, resource: &str) -> Sizes {
        self.shared.memory.read().sizes(resource)
    }

    /// Whether the weights of a resource's objects, in a namespace or in all, are more than `most` together. Nothing is copied, and no object
    /// is looked at once they are more.
    pub fn is_more(
        &self,
        resource: &str,
        namespace: Option<&str>,
        most: usize,
        weigh: impl Fn(&Record) -> usize,
    ) -> bool {
        self.shared.memory.read().is_more(resource, namespace, most, weigh)
    }

    /// The resources that have objects.
    pub fn resources(&self) -> Vec<Arc<str>> {
        self.shared.memory.read().resources()
    }

    /// The objects of a resource, and a watcher of all later changes.
    pub fn list_and_watch(&self, resource: &Arc<str>, namespace: Option<&str>) -> (Page, Watcher) {
        let mut memory = self.shared.memory.write();
        let changed = memory.subscribe(resource);
        let page = memory
            .list(&ListQuery {
                resource,
                namespace,
                after: None,
                at: None,
            })
            .unwrap_or_else(|_| Page {
                revision: memory.revision,
                items: Vec::new(),
            });
        let watcher = Watcher::new(self.clone(), Arc::clone(resource), page.revision, changed);
        (page, watcher)
    }

    /// A watcher of the changes after a revision.
    pub fn watch(&self, resource: &Arc<str>, after: u64) -> Result<Watcher, Expired> {
        let mut memory = self.shared.memory.write();
        memory.known_after(resource, after)?;
        let changed = memory.subscribe(resource);
        drop(memory);
        Ok(Watcher::new(self.clone(), Arc::clone(resource), after, changed))
    }

    pub(crate) fn events_after(&self, resource: &str, after: u64) -> Result<Taken, Expired> {
        let memory = self.shared.memory.read();
        Ok(Taken {
            revision: memory.revision,
            events: memory.events_after(resource, after)?,
            followers: memory.followers(resource),
        })
    }

    /// All later changes of all resources, in order and without loss. For indexes outside of the store.
    pub fn feed(&self) -> mpsc::UnboundedReceiver<Arc<Event>> {
        let (tx, rx) = mpsc::unbounded_channel();
        let _order = self.shared.memory.write();
        self.shared.feeds.lock().push(tx);
        rx
    }

    /// Carries out all writes, each at its own revision, or none. Returns the records as stored or, for deletions, as in their
    /// event; checks return nothing.
    pub async fn commit(&self, writes: Vec<Write>) -> Result<Vec<Arc<Record>>, CommitError> {
        if !self.shared.durable {
            let mut memory = self.shared.memory.write();
            let events = evaluate(writes, memory.revision, |key| memory.get(key).cloned())?;
            if !memory.has_room_for(&events) {
                return Err(StorageError::full().into());
            }
            self.shared.publish(&mut memory, &events);
            return Ok(events.iter().map(|e| Arc::clone(&e.record)).collect());
        }
        let (tx, rx) = oneshot::channel();
        {
            let writer = self.shared.writer.lock();
            let Some(writer) = writer.as_ref() else {
                return Err(StorageError::closed().into());
            };
            if writer.send(Request { writes, answer: tx }).is_err() {
                return Err(StorageError::closed().into());
            }
        }
        rx.await.unwrap_or_else(|_| Err(StorageError::closed().into()))
    }
}

impl Shared {
    /// Publishes changes to readers, watchers and feeds.
    pub(crate) fn publish(&self, memory: &mut Memory, events: &[Arc<Event>]) {
        let mut feeds = self.feeds.lock();
        for event in events {
            memory.apply(event);
            feeds.retain(|f| f.send(Arc::clone(event)).is_ok());
        }
    }
}

/// Checks a transaction against the stored objects and converts it to changes.
pub(crate) fn evaluate(
    writes: Vec<Write>,
    revision: u64,
    current: impl Fn(&Key) -> Option<Arc<Record>>,
) -> Result<Vec<Arc<Event>>, CommitError> {
    let mut events: Vec<Arc<Event>> = Vec::with_capacity(writes.len());
    let mut revision = revision;
    for (index, write) in writes.into_iter().enumerate() {
        let Write { key, expect, change } = write;
        let earlier = events.iter().rev().find(|e| e.record.key == key);
        let have = match earlier {
            Some(e) => (!e.deleted).then(|| Arc::clone(&e.record)),
            None => current(&key),
        };
        let holds = match (expect, &have) {
            (Expect::Absent, None) => true,
            (Expect::Revision(want), Some(have)) => have.revision == want,
            _ => false,
        };
        if !holds {
            return Err(CommitError::Conflict { index, current: have });
        }
        let event = match (change, have) {
            (Change::Check, _) => continue,
            (Change::Put(draft), have) => {
                revision += 1;
                Event {
                    record: Arc::new(Record::from_draft(key, revision, draft)),
                    previous: have,
                    deleted: false,
                }
            }
            (Change::Delete(last), Some(have)) => {
                revision += 1;
                Event {
                    record: Arc::new(match last {
                        Some(last) => Record::from_draft(key, revision, last),
                        None => have.deleted_at(revision),
                    }),
                    previous: Some(have),
                    deleted: true,
                }
            }
            (Change::Delete(_), None) => return Err(CommitError::Conflict { index, current: None }),
        };
        events.push(Arc::new(event));
    }
    Ok(events)
}
