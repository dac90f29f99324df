//! What one reconcile wrote and which unready caches it read. The driver looks at it when the reconcile is over.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::cache::AnyStore;
use crate::guard::Need;
use crate::object::{Gvk, ObjectKey};

/// Notes of one reconcile. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Journal(Arc<Mutex<Notes>>);

#[derive(Default)]
struct Notes {
    wrote: Vec<Wrote>,
    unsure: Vec<Unsure>,
    unready: Vec<Arc<dyn AnyStore>>,
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

impl Journal {
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

    pub(crate) fn read_unready(&self, store: Arc<dyn AnyStore>) {
        self.0.lock().unready.push(store);
    }

    pub(crate) fn take_wrote(&self) -> Vec<Wrote> {
        std::mem::take(&mut self.0.lock().wrote)
    }

    pub(crate) fn take_unsure(&self) -> Vec<Unsure> {
        std::mem::take(&mut self.0.lock().unsure)
    }

    pub(crate) fn take_unready(&self) -> Vec<Arc<dyn AnyStore>> {
        std::mem::take(&mut self.0.lock().unready)
    }
}
