//! The writes of one reconcile and the unsynced caches that it read. The driver evaluates them after the reconcile.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::cache::Store;
use crate::guard::{Effect, Need};
use crate::object::{Gvk, ObjectKey};

/// The journal of one reconcile. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Journal(Arc<Mutex<Notes>>);

#[derive(Default)]
struct Notes {
    wrote: Vec<Wrote>,
    unsure: Vec<Unsure>,
    unready: Vec<Arc<Store>>,
    lock: Option<Lock>,
}

/// The object that is written only if it is unchanged since it was read.
struct Lock {
    gvk: Gvk,
    key: ObjectKey,
    version: String,
    /// The generation after this reconcile's last write.
    generation: Option<i64>,
}

/// A write with an answer.
#[derive(Clone, Debug)]
pub(crate) struct Wrote {
    pub(crate) gvk: Gvk,
    pub(crate) key: ObjectKey,
    pub(crate) need: Need,
}

/// A write without an answer: it may have happened.
#[derive(Clone, Debug)]
pub(crate) struct Unsure {
    pub(crate) gvk: Gvk,
    pub(crate) key: ObjectKey,
    pub(crate) url: String,
}

impl Wrote {
    /// What the event of the write shows.
    pub(crate) fn effect(&self) -> Effect {
        Effect {
            key: self.key.clone(),
            need: self.need.clone(),
        }
    }
}

impl Lock {
    fn is_on(&self, gvk: &Gvk, key: &ObjectKey) -> bool {
        self.gvk.group == gvk.group && self.gvk.kind == gvk.kind && self.key == *key
    }
}

impl Journal {
    /// Locks the object: from now on, it is written only if it still has this resourceVersion, or the one from this reconcile's
    /// last write.
    pub(crate) fn lock(&self, gvk: &Gvk, key: &ObjectKey, version: &str) {
        self.0.lock().lock = Some(Lock {
            gvk: gvk.clone(),
            key: key.clone(),
            version: version.to_owned(),
            generation: None,
        });
    }

    /// The resourceVersion that a write to the object must carry, if it is locked.
    pub(crate) fn locked(&self, gvk: &Gvk, key: &ObjectKey) -> Option<String> {
        let notes = self.0.lock();
        let lock = notes.lock.as_ref()?;
        lock.is_on(gvk, key).then(|| lock.version.clone())
    }

    /// Records the resourceVersion, and perhaps generation, that a write of this reconcile gave a locked object.
    pub(crate) fn relock(&self, gvk: &Gvk, key: &ObjectKey, version: &str, generation: Option<i64>) {
        let mut notes = self.0.lock();
        if let Some(lock) = notes.lock.as_mut().filter(|lock| lock.is_on(gvk, key)) {
            version.clone_into(&mut lock.version);
            lock.generation = generation;
        }
    }

    /// The generation after this reconcile's own writes to the locked object.
    pub(crate) fn generation(&self) -> Option<i64> {
        self.0.lock().lock.as_ref()?.generation
    }

    pub(crate) fn wrote(&self, gvk: &Gvk, key: &ObjectKey, need: Need) {
        self.0.lock().wrote.push(Wrote {
            gvk: gvk.clone(),
            key: key.clone(),
            need,
        });
    }

    pub(crate) fn unsure(&self, gvk: &Gvk, key: &ObjectKey, url: String) {
        self.0.lock().unsure.push(Unsure {
            gvk: gvk.clone(),
            key: key.clone(),
            url,
        });
    }

    pub(crate) fn read_unready(&self, store: Arc<Store>) {
        self.0.lock().unready.push(store);
    }

    pub(crate) fn take_wrote(&self) -> Vec<Wrote> {
        std::mem::take(&mut self.0.lock().wrote)
    }

    pub(crate) fn take_unsure(&self) -> Vec<Unsure> {
        std::mem::take(&mut self.0.lock().unsure)
    }

    pub(crate) fn take_unready(&self) -> Vec<Arc<Store>> {
        std::mem::take(&mut self.0.lock().unready)
    }
}
