//! A folder in memory that fails on demand and loses unsynced data on a crash.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read};
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Files, Growing};

/// The result of a write operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Works,
    /// Writes a part, then the disk is full.
    Full,
    /// Fails after writing an unknown part.
    Broken,
    /// The process ends in the middle: later operations have no effect.
    Killed,
}

#[derive(Debug, Default, Clone)]
struct Inode {
    now: Vec<u8>,
    synced: Vec<u8>,
}

type Content = Arc<Mutex<Inode>>;

#[derive(Debug, Default)]
struct State {
    names: BTreeMap<String, Content>,
    synced: BTreeMap<String, Content>,
    fates: VecDeque<Fate>,
    dead: bool,
}

impl State {
    fn fate(&mut self) -> io::Result<()> {
        if self.dead {
            return Err(io::Error::other("there is no power"));
        }
        match self.fates.pop_front().unwrap_or(Fate::Works) {
            Fate::Works => Ok(()),
            Fate::Full => Err(io::ErrorKind::StorageFull.into()),
            Fate::Broken => Err(io::Error::other("the disk is broken")),
            Fate::Killed => {
                self.dead = true;
                Err(io::Error::other("the process is gone"))
            }
        }
    }
}

/// The folder. A clone is a handle to the same folder.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fake(Arc<Mutex<State>>);

impl Fake {
    /// Sets the results of the next operations.
    pub(crate) fn script(&self, fates: impl IntoIterator<Item = Fate>) {
        self.0.lock().fates = fates.into_iter().collect();
    }

    /// Lets all later operations fail.
    pub(crate) fn die(&self) {
        self.0.lock().dead = true;
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.0.lock().dead
    }

    /// The folder for the next process, after the process was killed: the system keeps unsynced data.
    pub(crate) fn after_kill(&self) -> Self {
        let mut state = self.0.lock();
        state.dead = true;
        let mut copies: Vec<(Content, Content)> = Vec::new();
        let mut copied = |names: &BTreeMap<String, Content>| -> BTreeMap<String, Content> {
            let mut copy = |content: &Content| {
                if let Some((_, copy)) = copies.iter().find(|(of, _)| Arc::ptr_eq(of, content)) {
                    return Arc::clone(copy);
                }
                let copy = Arc::new(Mutex::new(content.lock().clone()));
                copies.push((Arc::clone(content), Arc::clone(&copy)));
                copy
            };
            names
                .iter()
                .map(|(name, content)| (name.clone(), copy(content)))
                .collect()
        };
        let out = State {
            names: copied(&state.names),
            synced: copied(&state.synced),
            ..State::default()
        };
        Self(Arc::new(Mutex::new(out)))
    }

    /// The folder after a crash; `choose` selects one of the possible results.
    pub(crate) fn after_crash(&self, mut choose: impl FnMut(usize) -> usize) -> Self {
        let state = self.0.lock();
        let mut names = BTreeMap::new();
        for name in state.names.keys().chain(state.synced.keys()) {
            let (now, synced) = (state.names.get(name), state.synced.get(name));
            let same = match (now, synced) {
                (Some(a), Some(b)) => Arc::ptr_eq(a, b),
                _ => false,
            };
            let kept = if same || choose(2) == 0 { synced } else { now };
            if let Some(content) = kept
                && !names.contains_key(name)
            {
                names.insert(name.clone(), content.clone());
            }
        }
        let mut out = State::default();
        for (name, content) in names {
            let inode = content.lock();
            let (old, new) = (&inode.synced, &inode.now);
            let bytes = match choose(4) {
                1 => new.clone(),
                // A part of the unsynced data is on disk.
                2 if new.len() > old.len() => new[..old.len() + choose(new.len() - old.len())].to_vec(),
                // The unsynced data has its length, but with a hole.
                3 if new.len() > old.len() => {
                    let mut bytes = new.clone();
                    let from = old.len() + choose(new.len() - old.len());
                    let to = from + choose(bytes.len() - from + 1);
                    bytes[from..to].fill(0);
                    bytes
                }
                _ => old.clone(),
            };
            let content = Arc::new(Mutex::new(Inode {
                now: bytes.clone(),
                synced: bytes,
            }));
            out.names.insert(name.clone(), Arc::clone(&content));
            out.synced.insert(name, content);
        }
        Self(Arc::new(Mutex::new(out)))
    }
}

#[derive(Debug)]
struct FakeFile {
    content: Content,
    folder: Fake,
}

impl Files for Fake {
    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.0.lock().names.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> io::Result<(Box<dyn Read + Send>, u64)> {
        let state = self.0.lock();
        let content = state.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        let bytes = content.lock().now.clone();
        let length = bytes.len() as u64;
        Ok((Box::new(io::Cursor::new(bytes)), length))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn Growing>> {
        let mut state = self.0.lock();
        state.fate()?;
        let content = Content::default();
        state.names.insert(name.to_owned(), Arc::clone(&content));
        Ok(Box::new(FakeFile {
            content,
            folder: self.clone(),
        }))
    }

    fn resume(&self, name: &str) -> io::Result<Box<dyn Growing>> {
        let content = Arc::clone(self.0.lock().names.get(name).ok_or(io::ErrorKind::NotFound)?);
        Ok(Box::new(FakeFile {
            content,
            folder: self.clone(),
        }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.0.lock();
        state.fate()?;
        let content = state.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.names.insert(to.to_owned(), content);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.0.lock();
        state.fate()?;
        state
            .names
            .remove(name)
            .map(drop)
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.0.lock();
        state.fate()?;
        state.synced = state.names.clone();
        Ok(())
    }
}

impl Growing for FakeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.folder.0.lock();
        let was_dead = state.dead;
        let fate = state.fate();
        let part = match fate {
            Ok(()) => bytes.len(),
            Err(_) if was_dead => 0,
            Err(_) => bytes.len() / 2,
        };
        self.content.lock().now.extend_from_slice(&bytes[..part]);
        fate
    }

    fn sync(&mut self) -> io::Result<()> {
        self.folder.0.lock().fate()?;
        let mut content = self.content.lock();
        content.synced = content.now.clone();
        Ok(())
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.folder.0.lock().fate()?;
        let length = usize::try_from(length).map_err(io::Error::other)?;
        self.content.lock().now.resize(length, 0);
        Ok(())
    }
}
