//! The durable variant: one writer that gathers requests into one synced commit.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition};
use tokio::sync::{mpsc, oneshot};

use crate::error::{CommitError, OpenError, StorageError};
use crate::folder::{self, Found};
use crate::header_codec::{decode, decode_key, encode, encode_key};
use crate::memory::Memory;
use crate::record::{Event, Key, Record, Write};
use crate::store::{Limits, Shared, evaluate};

const OBJECTS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("objects");
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const REVISION: &str = "revision";
/// The most requests that one commit gathers.
const GATHER: usize = 512;
/// Memory for pages: all reads are served by the store itself, so little is of use.
const CACHE_BYTES: usize = 8 << 20;

/// One transaction, and who waits for it.
pub(crate) struct Request {
    pub(crate) writes: Vec<Write>,
    pub(crate) answer: oneshot::Sender<Answer>,
}

type Answer = Result<Vec<Arc<Record>>, CommitError>;

/// The database, which is opened again after an error.
pub(crate) struct Disk {
    path: PathBuf,
    database: Option<Database>,
}

/// Opens a data folder and reads all of it.
pub(crate) fn open(folder: &Path, limits: Limits) -> Result<(Disk, Memory), OpenError> {
    let damaged = |reason: String| OpenError::Damaged {
        path: folder.to_path_buf(),
        reason,
    };
    let database = match folder::inspect(folder)? {
        Found::Database(path) => open_file(&path, false).map_err(|e| open_error(folder, e))?,
        Found::Fresh => make(folder)?,
    };
    let memory = load(&database, limits).map_err(damaged)?;
    let disk = Disk {
        path: folder.join(folder::DATABASE),
        database: Some(database),
    };
    Ok((disk, memory))
}

/// Makes the database of a fresh folder, unless somebody else does.
fn make(folder: &Path) -> Result<Database, OpenError> {
    let _alone = folder::lock(folder)?;
    // Somebody else may have made it between the look and the lock.
    if let Found::Database(path) = folder::inspect(folder)? {
        return open_file(&path, false).map_err(|e| open_error(folder, e));
    }
    folder::clear(folder)?;
    let unfinished = folder.join(folder::UNFINISHED);
    let database = open_file(&unfinished, true).map_err(|e| open_error(folder, e))?;
    initialize(&database).map_err(|e| OpenError::Damaged {
        path: folder.to_path_buf(),
        reason: e.message,
    })?;
    folder::write_marker(folder)?;
    folder::name_database(folder)?;
    Ok(database)
}

fn open_file(path: &Path, create: bool) -> Result<Database, DatabaseError> {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    if create {
        builder.create(path)
    } else {
        builder.open(path)
    }
}

fn open_error(folder: &Path, error: DatabaseError) -> OpenError {
    let path = folder.to_path_buf();
    match error {
        DatabaseError::DatabaseAlreadyOpen => OpenError::InUse { path },
        DatabaseError::Storage(redb::StorageError::Io(source))
            if source.kind() != std::io::ErrorKind::InvalidData
                && source.kind() != std::io::ErrorKind::UnexpectedEof =>
        {
            OpenError::Io {
                path,
                what: "the database cannot be opened",
                source,
            }
        }
        other => OpenError::Damaged {
            path,
            reason: other.to_string(),
        },
    }
}

fn initialize(database: &Database) -> Result<(), StorageError> {
    write(database, 1, &[])
}

fn load(database: &Database, limits: Limits) -> Result<Memory, String> {
    let text = |e: &dyn std::error::Error| e.to_string();
    let tx = database.begin_read().map_err(|e| text(&e))?;
    let meta = tx.open_table(META).map_err(|e| text(&e))?;
    let revision = meta
        .get(REVISION)
        .map_err(|e| text(&e))?
        .ok_or("it has no revision")?
        .value();
    let mut memory = Memory::new(revision, limits);
    let mut names: HashMap<String, Arc<str>> = HashMap::new();
    let objects = tx.open_table(OBJECTS).map_err(|e| text(&e))?;
    for row in objects.iter().map_err(|e| text(&e))? {
        let (key, value) = row.map_err(|e| text(&e))?;
        let Some((resource, namespace, name)) = decode_key(key.value()) else {
            return Err("a key is unreadable".to_owned());
        };
        let resource = names.entry(resource.to_owned()).or_insert_with(|| Arc::from(resource));
        let key = Key::new(resource, namespace, name);
        let Some(record) = decode(key.clone(), value.value()) else {
            return Err(format!("the object {key:?} is unreadable"));
        };
        memory.load(record);
    }
    Ok(memory)
}

fn write(database: &Database, revision: u64, events: &[Arc<Event>]) -> Result<(), StorageError> {
    let mut tx = database.begin_write().map_err(|e| StorageError::new(&e))?;
    tx.set_durability(redb::Durability::Immediate)
        .map_err(|e| StorageError::new(&e))?;
    {
        let mut meta = tx.open_table(META).map_err(|e| StorageError::new(&e))?;
        meta.insert(REVISION, revision).map_err(|e| StorageError::new(&e))?;
        let mut objects = tx.open_table(OBJECTS).map_err(|e| StorageError::new(&e))?;
        for event in events {
            let key = encode_key(&event.record.key);
            if event.deleted {
                objects.remove(key.as_slice()).map_err(|e| StorageError::new(&e))?;
            } else {
                objects
                    .insert(key.as_slice(), encode(&event.record).as_slice())
                    .map_err(|e| StorageError::new(&e))?;
            }
        }
    }
    tx.commit().map_err(|e| StorageError::new(&e))
}

impl Disk {
    /// Commits; after a failure looks whether the disk has it all the same.
    fn commit(&mut self, from: u64, to: u64, events: &[Arc<Event>]) -> Result<(), StorageError> {
        if self.database.is_none() {
            self.reopen(from)?;
        }
        let Some(database) = &self.database else {
            return Err(StorageError::closed());
        };
        let Err(error) = write(database, to, events) else {
            return Ok(());
        };
        tracing::error!(%error, "cannot commit");
        self.database = None;
        match self.reopen_at() {
            // The commit had reached the disk before the error.
            Ok(revision) if revision == to => Ok(()),
            _ => Err(error),
        }
    }

    fn reopen(&mut self, expected: u64) -> Result<(), StorageError> {
        let revision = self.reopen_at()?;
        if revision == expected {
            return Ok(());
        }
        self.database = None;
        Err(StorageError {
            message: format!("the database is at revision {revision}, expected {expected}: restart to read it again"),
            full: false,
        })
    }

    fn reopen_at(&mut self) -> Result<u64, StorageError> {
        let database = open_file(&self.path, false).map_err(|e| StorageError::new(&e))?;
        let tx = database.begin_read().map_err(|e| StorageError::new(&e))?;
        let meta = tx.open_table(META).map_err(|e| StorageError::new(&e))?;
        let revision = meta
            .get(REVISION)
            .map_err(|e| StorageError::new(&e))?
            .map_or(0, |v| v.value());
        drop(meta);
        drop(tx);
        self.database = Some(database);
        Ok(revision)
    }
}

/// The writer: gathers what is waiting, commits it, makes it visible, answers.
pub(crate) fn run(mut disk: Disk, mut requests: mpsc::UnboundedReceiver<Request>, shared: &Weak<Shared>) {
    while let Some(first) = requests.blocking_recv() {
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let mut batch = vec![first];
        while batch.len() < GATHER {
            match requests.try_recv() {
                Ok(request) => batch.push(request),
                Err(_) => break,
            }
        }
        commit_batch(&mut disk, &shared, batch);
    }
}

fn commit_batch(disk: &mut Disk, shared: &Shared, batch: Vec<Request>) {
    // Only this thread changes memory, so what is read here still holds when the batch is applied.
    let from = shared.memory.read().revision;
    let mut pending: HashMap<Key, Option<Arc<Record>>> = HashMap::new();
    let mut events: Vec<Arc<Event>> = Vec::new();
    let mut answers: Vec<(oneshot::Sender<Answer>, Answer)> = Vec::new();
    {
        let memory = shared.memory.read();
        for request in batch {
            let revision = events.last().map_or(from, |e| e.revision());
            let made = evaluate(&request.writes, revision, |key| match pending.get(key) {
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
    if let Some(last) = events.last() {
        let to = last.revision();
        match disk.commit(from, to, &events) {
            Ok(()) => {
                let mut memory = shared.memory.write();
                shared.publish(&mut memory, &events);
            }
            Err(error) => {
                for (_, answer) in &mut answers {
                    *answer = Err(CommitError::Storage(error.clone()));
                }
            }
        }
    }
    for (to, answer) in answers {
        let _ = to.send(answer);
    }
}
