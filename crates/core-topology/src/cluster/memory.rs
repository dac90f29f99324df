//! What the controller remembers between reconciles: answers of the API server, and rotations of templates.
//!
//! All of it can be lost. A trial is then repeated, and the count of rotations starts again.

use std::collections::{BTreeMap, HashMap};

use parking_lot::Mutex;
use windlass_topology::trial::{Rotation, Rotations, Trial};

/// More than one process manages at a time. Beyond it, everything is asked again.
const MOST: usize = 50_000;

/// The memory of one controller.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Trials that showed no change, by the uid of the template.
    same: Mutex<HashMap<String, Same>>,
    /// Rotations by the uid of the Cluster and the place in its topology.
    rotations: Mutex<HashMap<String, BTreeMap<String, Rotations>>>,
}

/// A trial that showed no change.
#[derive(Debug, PartialEq, Eq)]
struct Same {
    version: String,
    intent: String,
}

impl Same {
    fn of(trial: &Trial) -> Self {
        Self {
            version: trial.version.clone(),
            intent: trial.fingerprint(),
        }
    }
}

impl Memory {
    /// Whether this intent is known to change nothing in this version of the template.
    pub(super) fn is_same(&self, trial: &Trial) -> bool {
        self.same.lock().get(&trial.uid) == Some(&Same::of(trial))
    }

    pub(super) fn found_same(&self, trial: &Trial) {
        insert(&mut self.same.lock(), trial.uid.clone(), Same::of(trial));
    }

    /// The rotations of a Cluster's templates.
    pub(super) fn rotations(&self, cluster: &str) -> BTreeMap<String, Rotations> {
        self.rotations.lock().get(cluster).cloned().unwrap_or_default()
    }

    pub(super) fn rotated(&self, cluster: &str, rotation: &Rotation) {
        let mut all = self.rotations.lock();
        let mut of_cluster = all.remove(cluster).unwrap_or_default();
        of_cluster.entry(rotation.place.clone()).or_default().add(rotation);
        insert(&mut all, cluster.to_owned(), of_cluster);
    }

    /// Forgets a Cluster that is being deleted.
    pub(super) fn forget(&self, cluster: &str) {
        self.rotations.lock().remove(cluster);
    }
}

fn insert<V>(map: &mut HashMap<String, V>, key: String, value: V) {
    if map.len() >= MOST {
        map.clear();
    }
    map.insert(key, value);
}
