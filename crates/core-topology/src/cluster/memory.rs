//! What the controller remembers between reconciles: answers of the API server, rotations of templates, and what was read of settled Clusters.
//!
//! All of it can be lost. A read or a trial is then repeated, and the count of rotations starts again.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::Value;
use windlass_api::core::ClusterClass;
use windlass_api_ext::rollouts::ClusterClassRevision;
use windlass_controller_runtime::{ObjectKey, Stored as _};
use windlass_topology::Error;
use windlass_topology::blueprint::Class;
use windlass_topology::hooks::PlanAnswer;
use windlass_topology::model::{TemplateRef, text};
use windlass_topology::revision::{self, Contents};
use windlass_topology::trial::{Pair, Rotation, Rotations, Trial};

use super::observe::Identity;

/// More than one process manages at a time. Beyond it, everything is asked again.
const MOST: usize = 50_000;

const RESOURCE_VERSION: &str = "/metadata/resourceVersion";

/// The memory of one controller.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Trials that showed no change, by the uid of the template.
    same: Mutex<HashMap<String, Pair>>,
    /// Rotations by the uid of the Cluster and the place in its topology.
    rotations: Mutex<HashMap<String, BTreeMap<String, Rotations>>>,
    /// Objects in another version than the cached one, by uid and version.
    versions: Mutex<HashMap<(String, String), Arc<Value>>>,
    /// What counts of the templates of classes, by class and template.
    relevant: Mutex<HashMap<(ObjectKey, TemplateRef), Relevant>>,
    /// Classes as they were read last, by namespace and name.
    classes: Mutex<HashMap<ObjectKey, Read>>,
    /// Revisions of classes as they were read last, by namespace and name.
    revisions: Mutex<HashMap<ObjectKey, ReadRevision>>,
    /// What was read of a Cluster when nothing was left to do for it, by its uid.
    settled: Mutex<HashMap<String, Identity>>,
    /// Upgrade plans of extensions, by the uid of the Cluster, and since when.
    plans: Mutex<HashMap<String, (PlanAnswer, Timestamp)>>,
}

/// A class as it is cached, and what was read of it.
#[derive(Debug)]
struct Read {
    object: Arc<ClusterClass>,
    class: Arc<Class>,
}

/// A template and its class as they were read last, and what counts of the template.
#[derive(Debug)]
struct Relevant {
    object: Arc<Value>,
    class: Arc<Class>,
    counts: Arc<Value>,
}

/// A revision as it is cached, and what was read of it.
#[derive(Debug)]
struct ReadRevision {
    object: Arc<ClusterClassRevision>,
    /// None if it has other contents than its name stands for.
    read: Option<revision::Read>,
}

impl Memory {
    /// A class as all its Clusters use it. It is read once after each change.
    pub(super) fn class(&self, key: &ObjectKey, object: &Arc<ClusterClass>) -> Result<Arc<Class>, Error> {
        if let Some(read) = self.classes.lock().get(key)
            && Arc::ptr_eq(&read.object, object)
        {
            return Ok(read.class.clone());
        }
        let class = Arc::new(Class::read(&object.to_json())?);
        let read = Read {
            object: object.clone(),
            class: class.clone(),
        };
        insert(&mut self.classes.lock(), key.clone(), read);
        Ok(class)
    }

    /// What counts of a template of a class: the same object as before unless something of it has changed.
    pub(super) fn relevant(
        &self,
        key: &ObjectKey,
        class: &Arc<Class>,
        reference: &TemplateRef,
        object: Arc<Value>,
    ) -> Arc<Value> {
        let mut all = self.relevant.lock();
        let place = (key.clone(), reference.clone());
        let before = all.get(&place);
        if let Some(known) = before
            && Arc::ptr_eq(&known.object, &object)
            && Arc::ptr_eq(&known.class, class)
        {
            return known.counts.clone();
        }
        let Some(value) = revision::relevant(&class.spec, reference, &object) else {
            return object;
        };
        let same = before.filter(|known| *known.counts == value);
        let relevant = same.map_or_else(|| Arc::new(value), |known| known.counts.clone());
        let known = Relevant {
            object,
            class: class.clone(),
            counts: relevant.clone(),
        };
        insert(&mut all, place, known);
        relevant
    }

    /// A revision of a class as all its Clusters use it. It is read once. None if it has other contents than its name stands for.
    pub(crate) fn revision(
        &self,
        key: &ObjectKey,
        object: &Arc<ClusterClassRevision>,
    ) -> Result<Option<revision::Read>, Error> {
        if let Some(known) = self.revisions.lock().get(key)
            && Arc::ptr_eq(&known.object, object)
        {
            return Ok(known.read.clone());
        }
        let (contents, class) = (contents(object), object.spec.class_name.as_str());
        let read = if contents.name(class) == key.name {
            Some(contents.read(&key.namespace, class, &key.name)?)
        } else {
            None
        };
        let known = ReadRevision {
            object: object.clone(),
            read: read.clone(),
        };
        let mut revisions = self.revisions.lock();
        // Those that are gone are in no cache any more.
        revisions.retain(|_, known| Arc::strong_count(&known.object) > 1);
        insert(&mut revisions, key.clone(), known);
        Ok(read)
    }

    /// Forgets a class that is gone.
    pub(super) fn forget_class(&self, key: &ObjectKey) {
        self.relevant.lock().retain(|(class, _), _| class != key);
        self.classes.lock().remove(key);
    }

    /// The trials of these templates that showed no change, by the uid of the template.
    pub(super) fn same<'a>(&self, templates: impl Iterator<Item = &'a Value>) -> BTreeMap<String, Pair> {
        let same = self.same.lock();
        let uids = templates.map(|template| text(template, "/metadata/uid"));
        let known = uids.filter_map(|uid| Some((uid.to_owned(), same.get(uid)?.clone())));
        known.collect()
    }

    pub(super) fn found_same(&self, trial: &Trial) {
        insert(&mut self.same.lock(), trial.uid.clone(), trial.pair.clone());
    }

    /// A cached object in another version, if it has been read since its last change.
    pub(super) fn in_version(&self, cached: &Value, version: &str) -> Option<Arc<Value>> {
        let place = (text(cached, "/metadata/uid").to_owned(), version.to_owned());
        let known = self.versions.lock().get(&place).cloned();
        let changed = |known: &Arc<Value>| text(known, RESOURCE_VERSION) != text(cached, RESOURCE_VERSION);
        known.filter(|known| !changed(known))
    }

    pub(super) fn read_in_version(&self, object: &Arc<Value>, version: &str) {
        let place = (text(object, "/metadata/uid").to_owned(), version.to_owned());
        insert(&mut self.versions.lock(), place, object.clone());
    }

    /// The rotations of a Cluster's templates.
    pub(super) fn rotations(&self, cluster: &str) -> BTreeMap<String, Rotations> {
        self.rotations.lock().get(cluster).cloned().unwrap_or_default()
    }

    pub(super) fn rotated(&self, cluster: &str, rotation: &Rotation, at: Timestamp) {
        let mut all = self.rotations.lock();
        let mut of_cluster = all.remove(cluster).unwrap_or_default();
        of_cluster.entry(rotation.place.clone()).or_default().add(rotation, at);
        insert(&mut all, cluster.to_owned(), of_cluster);
    }

    /// The upgrade plan that an extension has given last, and when.
    pub(super) fn upgrade_plan(&self, cluster: &str) -> Option<(PlanAnswer, Timestamp)> {
        self.plans.lock().get(cluster).cloned()
    }

    /// Remembers an upgrade plan; none that could not be had.
    pub(super) fn planned(&self, cluster: &str, known: &(PlanAnswer, Timestamp)) {
        if known.0.answer.is_ok() {
            insert(&mut self.plans.lock(), cluster.to_owned(), known.clone());
        }
    }

    /// Whether nothing was left to do for a Cluster when the same was read of it.
    pub(super) fn is_settled(&self, cluster: &str, read: &Identity) -> bool {
        !cluster.is_empty() && self.settled.lock().get(cluster) == Some(read)
    }

    /// Remembers that nothing is left to do for a Cluster of which this was read.
    pub(super) fn settled(&self, cluster: &str, read: &Identity) {
        insert(&mut self.settled.lock(), cluster.to_owned(), read.clone());
    }

    /// Forgets a Cluster that is being deleted.
    pub(super) fn forget(&self, cluster: &str) {
        self.settled.lock().remove(cluster);
        self.plans.lock().remove(cluster);
        self.rotations.lock().remove(cluster);
    }
}

/// What a revision keeps.
fn contents(object: &ClusterClassRevision) -> Contents {
    Contents {
        class: object.spec.class.clone(),
        variables: object.spec.variables.clone(),
        templates: object.spec.templates.clone(),
    }
}

fn insert<K: Eq + Hash, V>(map: &mut HashMap<K, V>, key: K, value: V) {
    if map.len() >= MOST {
        map.clear();
    }
    map.insert(key, value);
}
