//! What one reconcile wrote and which unready caches it read. The driver looks at it when the reconcile is over.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::cache::Store;
use crate::guard::Need;
use crate::object::{Gvk, ObjectKey};

/// Notes of one reconcile. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Journal(Arc<Mutex<Notes>>);

#[derive(Default)]
struct Notes {
    wrote: Vec<Wrote>,
    unsure: Vec<Unsure>,
    unready: Vec<Arc<Store>>,
    lock: Option<Lock>,
}

/// The object that is only written as it was seen.
struct Lock {
    gvk: Gvk,
    key: ObjectKey,
    version: String,
    /// As our last write left it.
    generation: Option<i64>,
}

/// A write that was answered.
#[derive(Clone, Debug)]
pub(crate) struct Wrote {
    pub(crate) gvk: Gvk,
    pub(crate) key: ObjectKey,
    pub(crate) need: Need,
}

/// A write that was not answered: it may have happened.
#[derive(Clone, Debug)]
pub(crate) struct Unsure {
    pub(crate) gvk: Gvk,
    pub(crate) key: ObjectKey,
    pub(crate) url: String,
}

impl Lock {
    fn is_on(&self, gvk: &Gvk, key: &ObjectKey) -> bool {
        self.gvk.group == gvk.group && self.gvk.kind == gvk.kind && self.key == *key
    }
}

impl Journal {
    /// From now on the object is only written if it still has this resourceVersion, or the one that our last write gave it.
    pub(crate) fn lock(&self, gvk: &Gvk, key: &ObjectKey, version: &str) {
        self.0.lock().lock = Some(Lock {
            gvk: gvk.clone(),
            key: key.clone(),
            version: version.to_owned(),
            generation: None,
        });
    }

    /// The resourceVersion that a write to the object must name, if it is locked.
    pub(crate) fn locked(&self, gvk: &Gvk, key: &ObjectKey) -> Option<String> {
        let notes = self.0.lock();
        let lock = notes.lock.as_ref()?;
        lock.is_on(gvk, key).then(|| lock.version.clone())
    }

    /// A locked object got a new resourceVersion, and perhaps a new generation, by a write of our own.
    pub(crate) fn relock(&self, gvk: &Gvk, key: &ObjectKey, version: &str, generation: Option<i64>) {
        let mut notes = self.0.lock();
        if let Some(lock) = notes.lock.as_mut().filter(|lock| lock.is_on(gvk, key)) {
            version.clone_into(&mut lock.version);
            lock.generation = generation;
        }
    }

    /// The generation that our own writes gave the locked object.
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
