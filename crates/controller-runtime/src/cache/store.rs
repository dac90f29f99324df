//! The cached objects of one kind, with indexes, subscribers and the versions that the own-writes guard waits for.

mod change;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Debug;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use tokio::sync::watch;
use windlass_api::codec::{Codec, Stored};
use windlass_api::labels::CLUSTER_NAME;

use super::events::Name;
use super::unreadable::Unreadable;
use crate::guard::{Latch, Need};
use crate::object::{Gvk, ObjectKey, key_of};
use crate::tracking::is_lost;

pub use change::Change;
pub(crate) use change::{AnyChange, AnyObject, typed, typed_ref};

/// The error for a list that is older than the cache. The list was not accepted.
#[derive(Debug, thiserror::Error)]
#[error("the server's list of resourceVersion {list} is older than what was seen before ({seen})")]
pub struct StaleList {
    list: u64,
    seen: u64,
}

/// A whole list, as far as it can be decoded.
#[derive(Default)]
pub(crate) struct List {
    pub(crate) objects: Vec<AnyObject>,
    /// The listed objects that cannot be decoded.
    pub(super) undecoded: Vec<Name>,
    /// Whether the name of a listed object cannot be read. It may be any of the cached ones.
    pub(crate) has_nameless: bool,
}

/// Called with every change.
pub(crate) type Subscriber = Arc<dyn Fn(&AnyChange) + Send + Sync>;
type IndexFn = Box<dyn Fn(&dyn Stored) -> Vec<String> + Send + Sync>;
/// Decodes an object of the store's kind.
type Decode = fn(&[u8]) -> serde_json::Result<AnyObject>;

/// The objects of one kind, without their type: [`Cache`](super::Cache) restores it.
pub(crate) struct Store {
    gvk: Gvk,
    decode: Decode,
    state: RwLock<State>,
    /// Held while subscribers are called, so that each one sees all changes in order from the moment it subscribed.
    subscribers: Mutex<Vec<Subscriber>>,
    memos: Mutex<HashMap<ObjectKey, Vec<(String, Memo)>>>,
    /// The resourceVersions of decoded objects without managed fields, until they are stored.
    marks: Mutex<HashMap<ObjectKey, Option<String>>>,
    synced: watch::Sender<bool>,
}

/// A record of the last apply by one field manager to one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Memo {
    /// Hash of the applied object.
    pub(crate) desired: [u8; 16],
    /// Hash of its text, if it was a typed object.
    pub(crate) text: Option<[u8; 16]>,
    /// The uid of the object.
    pub(crate) uid: String,
    /// Its resourceVersion after the apply.
    pub(crate) version: String,
    /// Hash of the stored object after an apply that changed nothing, although a comparison had shown a difference.
    pub(crate) live: Option<[u8; 16]>,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<String, BTreeMap<String, AnyObject>>,
    owners: HashMap<String, BTreeSet<ObjectKey>>,
    clusters: HashMap<ObjectKey, BTreeSet<ObjectKey>>,
    custom: Vec<CustomIndex>,
    unreadable: Unreadable,
    /// The objects without managed fields.
    lost: BTreeSet<ObjectKey>,
    version: u64,
    waiting: Vec<Waiting>,
    /// Whether no list or event can be expected. Then no write waits for the store.
    is_stopped: bool,
}

struct CustomIndex {
    name: &'static str,
    values: IndexFn,
    keys: HashMap<String, BTreeSet<ObjectKey>>,
}

struct Waiting {
    key: ObjectKey,
    need: Need,
    latch: Arc<Latch>,
}

impl Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("gvk", &self.gvk).finish_non_exhaustive()
    }
}

impl Store {
    /// A store whose objects are decoded as `T`.
    pub(crate) fn of<T: Codec>(gvk: Gvk) -> Self {
        Self::new(gvk, T::decode_stored)
    }

    fn new(gvk: Gvk, decode: Decode) -> Self {
        Self {
            gvk,
            decode,
            state: RwLock::default(),
            subscribers: Mutex::default(),
            memos: Mutex::default(),
            marks: Mutex::default(),
            synced: watch::Sender::new(false),
        }
    }

    /// Decodes an object of the kind.
    pub(crate) fn decode(&self, json: &[u8]) -> serde_json::Result<AnyObject> {
        let object = (self.decode)(json)?;
        if is_lost(json) {
            let meta = object.metadata();
            self.marks.lock().insert(key_of(meta), meta.resource_version.clone());
        }
        Ok(object)
    }

    /// Whether an object was decoded without managed fields.
    fn take_mark(&self, object: &dyn Stored) -> bool {
        let mut marks = self.marks.lock();
        let meta = object.metadata();
        !marks.is_empty()
            && marks
                .remove(&key_of(meta))
                .is_some_and(|version| version == meta.resource_version)
    }

    /// The kind, for logs.
    pub(crate) fn kind(&self) -> &str {
        &self.gvk.kind
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<AnyObject> {
        let state = self.state.read();
        state.objects.get(&key.namespace)?.get(&key.name).cloned()
    }

    pub(crate) fn list(&self, namespace: &str) -> Vec<AnyObject> {
        let state = self.state.read();
        state
            .objects
            .get(namespace)
            .map(|objects| objects.values().cloned().collect())
            .unwrap_or_default()
    }

    pub(crate) fn all(&self) -> Vec<AnyObject> {
        let state = self.state.read();
        state
            .objects
            .values()
            .flat_map(|objects| objects.values().cloned())
            .collect()
    }

    pub(crate) fn by_owner(&self, uid: &str) -> Vec<AnyObject> {
        let state = self.state.read();
        state.resolve(state.owners.get(uid))
    }

    pub(crate) fn by_cluster(&self, cluster: &ObjectKey) -> Vec<AnyObject> {
        let state = self.state.read();
        state.resolve(state.clusters.get(cluster))
    }

    pub(crate) fn by_index(&self, name: &str, value: &str) -> Vec<AnyObject> {
        let state = self.state.read();
        let index = state.custom.iter().find(|index| index.name == name);
        state.resolve(index.and_then(|index| index.keys.get(value)))
    }

    pub(crate) fn add_index(&self, name: &'static str, values: IndexFn) {
        let mut state = self.state.write();
        if state.custom.iter().any(|index| index.name == name) {
            return;
        }
        let mut index = CustomIndex {
            name,
            values,
            keys: HashMap::new(),
        };
        for object in state.objects.values().flat_map(BTreeMap::values) {
            index.insert(&**object);
        }
        state.custom.push(index);
    }

    /// Calls `f` for every object that exists, and then for every change, in order.
    pub(crate) fn subscribe(&self, f: Subscriber) {
        let mut subscribers = self.subscribers.lock();
        for object in self.all() {
            f(&Change {
                old: None,
                new: Some(object),
            });
        }
        subscribers.push(f);
    }

    /// Stores an added or changed object. One that has lost its managed fields counts as added: the controllers that applied it have to
    /// do so again before a field of it has to go.
    pub(crate) fn apply(&self, object: AnyObject) {
        let subscribers = self.subscribers.lock();
        let (old, met) = {
            let mut state = self.state.write();
            let old = state.insert(object.clone(), self.take_mark(&*object));
            let version = version_of(object.metadata());
            state.version = state.version.max(version);
            (old, state.take_met())
        };
        Self::release(met);
        Self::tell(&subscribers, &Change { old, new: Some(object) });
    }

    /// Removes an object.
    pub(crate) fn delete(&self, key: &ObjectKey, version: Option<u64>) {
        let subscribers = self.subscribers.lock();
        let (old, met) = {
            let mut state = self.state.write();
            let old = state.remove(key);
            state.version = state.version.max(version.unwrap_or(0));
            (old, state.take_met())
        };
        self.memos.lock().remove(key);
        Self::release(met);
        if let Some(old) = old {
            Self::tell(
                &subscribers,
                &Change {
                    old: Some(old),
                    new: None,
                },
            );
        }
    }

    /// Replaces all objects by a whole list: objects that are not in it are deleted. Objects in it that cannot be decoded stay as they
    /// were: what cannot be read is not gone. Marks the store as synced. A list that is
    /// older than the cache is refused unless `force` is set. With `force`, the server has gone back in time, and nothing waits for
    /// versions that it has forgotten.
    pub(crate) fn replace(&self, list: List, version: u64, force: bool) -> Result<(), StaleList> {
        let subscribers = self.subscribers.lock();
        let mut changes = Vec::new();
        let met = {
            let mut state = self.state.write();
            if version < state.version && !force {
                return Err(StaleList {
                    list: version,
                    seen: state.version,
                });
            }
            let mut gone = state.keys();
            for new in list.objects {
                let key = key_of(new.metadata());
                gone.remove(&key);
                let same = state.find(&key).is_some_and(|old| {
                    let (old, new) = (old.metadata(), new.metadata());
                    old.resource_version == new.resource_version && old.uid == new.uid
                });
                if same {
                    continue;
                }
                let old = state.insert(new.clone(), self.take_mark(&*new));
                changes.push(Change { old, new: Some(new) });
            }
            let (missed, kept): (Vec<_>, Vec<_>) = list.undecoded.iter().partition(|name| state.misses(name));
            for name in kept {
                gone.remove(&name.key);
            }
            if list.has_nameless {
                gone.clear();
            }
            for key in gone {
                self.memos.lock().remove(&key);
                let old = state.remove(&key);
                changes.push(Change { old, new: None });
            }
            let went_back = version < state.version;
            state.unreadable = Unreadable::default();
            for name in missed {
                state.unreadable.add(name, self.holds_clusters());
            }
            state.version = version;
            state.is_stopped = false;
            if went_back {
                // The server gives versions again that the records have.
                self.memos.lock().clear();
                state.take_all()
            } else {
                state.take_met()
            }
        };
        self.synced.send_replace(true);
        Self::release(met);
        for change in &changes {
            Self::tell(&subscribers, change);
        }
        Ok(())
    }

    /// Records a change of an object that cannot be decoded. The last version that could be stays.
    pub(super) fn undecodable(&self, name: &Name) {
        {
            let mut state = self.state.write();
            if state.misses(name) {
                state.unreadable.add(name, self.holds_clusters());
            }
        }
        self.saw(name.version.unwrap_or(0));
    }

    fn holds_clusters(&self) -> bool {
        self.gvk.group == "cluster.x-k8s.io" && self.gvk.kind == "Cluster"
    }

    /// An object of a cluster that exists, and of which no version could be decoded.
    pub(crate) fn unreadable(&self, cluster: &ObjectKey) -> Option<ObjectKey> {
        self.state.read().unreadable.of(cluster).cloned()
    }

    /// Records a bookmark.
    pub(crate) fn saw(&self, version: u64) {
        let met = {
            let mut state = self.state.write();
            state.version = state.version.max(version);
            state.take_met()
        };
        Self::release(met);
    }

    fn tell(subscribers: &[Subscriber], change: &AnyChange) {
        for subscriber in subscribers {
            subscriber(change);
        }
    }

    fn release(met: Vec<Arc<Latch>>) {
        for latch in met {
            latch.release();
        }
    }
}

/// Functions for the driver and the writer.
impl Store {
    pub(crate) fn gvk(&self) -> &Gvk {
        &self.gvk
    }

    pub(crate) fn is_synced(&self) -> bool {
        *self.synced.borrow()
    }

    pub(crate) fn synced(&self) -> watch::Receiver<bool> {
        self.synced.subscribe()
    }

    /// Whether the cache meets `need` now.
    pub(crate) fn has_seen(&self, key: &ObjectKey, need: &Need) -> bool {
        self.state.read().is_met(key, need)
    }

    /// Releases `latch` when the cache meets `need`: at once, or later.
    pub(crate) fn when(&self, key: &ObjectKey, need: Need, latch: Arc<Latch>) {
        {
            let mut state = self.state.write();
            if !state.is_met(key, &need) {
                state.waiting.push(Waiting {
                    key: key.clone(),
                    need,
                    latch,
                });
                return;
            }
        }
        latch.release();
    }

    /// Releases all that wait, until the next list: the server does not serve the kind in this version, or the kind is watched in
    /// another one.
    pub(crate) fn stop(&self) {
        let met = {
            let mut state = self.state.write();
            state.is_stopped = true;
            state.take_met()
        };
        Self::release(met);
    }

    /// uid and resourceVersion of an object.
    pub(crate) fn identity(&self, key: &ObjectKey) -> Option<(String, String)> {
        let object = self.get(key)?;
        let meta = object.metadata();
        Some((meta.uid.clone()?, meta.resource_version.clone()?))
    }

    /// Whether the API server has lost the managers of an object's fields.
    pub(crate) fn is_lost(&self, key: &ObjectKey) -> bool {
        self.state.read().lost.contains(key)
    }

    pub(crate) fn value(&self, key: &ObjectKey) -> Option<Value> {
        Some(self.get(key)?.to_json())
    }

    pub(crate) fn memo(&self, key: &ObjectKey, slot: &str) -> Option<Memo> {
        let memos = self.memos.lock();
        let (_, memo) = memos.get(key)?.iter().find(|(s, _)| s == slot)?;
        Some(memo.clone())
    }

    pub(crate) fn remember(&self, key: &ObjectKey, slot: &str, memo: Memo) {
        let mut memos = self.memos.lock();
        let of_object = memos.entry(key.clone()).or_default();
        match of_object.iter_mut().find(|(s, _)| s == slot) {
            Some((_, old)) => *old = memo,
            None => of_object.push((slot.to_owned(), memo)),
        }
    }

    pub(crate) fn version(&self) -> u64 {
        self.state.read().version
    }

    pub(crate) fn len(&self) -> usize {
        self.state.read().objects.values().map(BTreeMap::len).sum()
    }
}

impl State {
    fn find(&self, key: &ObjectKey) -> Option<&AnyObject> {
        self.objects.get(&key.namespace)?.get(&key.name)
    }

    fn keys(&self) -> BTreeSet<ObjectKey> {
        self.objects
            .iter()
            .flat_map(|(namespace, objects)| {
                objects.keys().map(|name| ObjectKey {
                    namespace: namespace.clone(),
                    name: name.clone(),
                })
            })
            .collect()
    }

    fn resolve(&self, keys: Option<&BTreeSet<ObjectKey>>) -> Vec<AnyObject> {
        keys.into_iter()
            .flatten()
            .filter_map(|key| self.find(key).cloned())
            .collect()
    }

    /// Whether no version of an object is known.
    fn misses(&self, name: &Name) -> bool {
        let known = self.find(&name.key).and_then(|old| old.metadata().uid.as_deref());
        known != Some(&name.uid)
    }

    /// Gives the object before. `None` also when the new one has lost its managed fields.
    fn insert(&mut self, object: AnyObject, is_lost: bool) -> Option<AnyObject> {
        let key = key_of(object.metadata());
        let was_lost = self.lost.contains(&key);
        let old = self.remove(&key);
        if is_lost {
            self.lost.insert(key.clone());
        }
        for uid in owner_uids(object.metadata()) {
            self.owners.entry(uid.to_owned()).or_default().insert(key.clone());
        }
        if let Some(cluster) = cluster_of(object.metadata()) {
            self.clusters.entry(cluster).or_default().insert(key.clone());
        }
        for index in &mut self.custom {
            index.insert(&*object);
        }
        self.objects.entry(key.namespace).or_default().insert(key.name, object);
        old.filter(|_| was_lost || !is_lost)
    }

    fn remove(&mut self, key: &ObjectKey) -> Option<AnyObject> {
        self.unreadable.remove(key);
        let objects = self.objects.get_mut(&key.namespace)?;
        let old = objects.remove(&key.name)?;
        self.lost.remove(key);
        if objects.is_empty() {
            self.objects.remove(&key.namespace);
        }
        for uid in owner_uids(old.metadata()) {
            forget(&mut self.owners, uid, key);
        }
        if let Some(cluster) = cluster_of(old.metadata()) {
            forget(&mut self.clusters, &cluster, key);
        }
        for index in &mut self.custom {
            for value in (index.values)(&*old) {
                forget(&mut index.keys, value.as_str(), key);
            }
        }
        Some(old)
    }

    fn is_met(&self, key: &ObjectKey, need: &Need) -> bool {
        if self.is_stopped {
            return true;
        }
        match need {
            Need::Version(version) => self.version >= *version,
            Need::Gone(uid) => self
                .find(key)
                .is_none_or(|object| object.metadata().uid.as_deref() != Some(uid)),
        }
    }

    /// All that wait, met or not.
    fn take_all(&mut self) -> Vec<Arc<Latch>> {
        let waiting = std::mem::take(&mut self.waiting);
        waiting.into_iter().map(|w| w.latch).collect()
    }

    fn take_met(&mut self) -> Vec<Arc<Latch>> {
        if self.waiting.is_empty() {
            return Vec::new();
        }
        let waiting = std::mem::take(&mut self.waiting);
        let (met, open): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|w| self.is_met(&w.key, &w.need));
        self.waiting = open;
        met.into_iter().map(|w| w.latch).collect()
    }
}

impl CustomIndex {
    fn insert(&mut self, object: &dyn Stored) {
        let key = key_of(object.metadata());
        for value in (self.values)(object) {
            self.keys.entry(value).or_default().insert(key.clone());
        }
    }
}

fn forget<K, Q>(index: &mut HashMap<K, BTreeSet<ObjectKey>>, value: &Q, key: &ObjectKey)
where
    K: std::borrow::Borrow<Q> + Eq + std::hash::Hash,
    Q: Eq + std::hash::Hash + ?Sized,
{
    if let Some(keys) = index.get_mut(value) {
        keys.remove(key);
        if keys.is_empty() {
            index.remove(value);
        }
    }
}

fn owner_uids(meta: &ObjectMeta) -> impl Iterator<Item = &str> {
    meta.owner_references.iter().flatten().map(|owner| owner.uid.as_str())
}

fn cluster_of(meta: &ObjectMeta) -> Option<ObjectKey> {
    let name = meta.labels.as_ref()?.get(CLUSTER_NAME)?;
    Some(ObjectKey {
        namespace: meta.namespace.clone().unwrap_or_default(),
        name: name.clone(),
    })
}

/// The resourceVersion as a number; 0 if it is not a number.
fn version_of(meta: &ObjectMeta) -> u64 {
    meta.resource_version
        .as_deref()
        .and_then(|v| v.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests;
