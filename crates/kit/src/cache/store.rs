//! The objects of one kind as the API server last told them, with indexes, subscribers and the own-writes guard's needs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Debug;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use parking_lot::{Mutex, RwLock};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::watch;
use windlass_api::labels::CLUSTER_NAME;

use crate::guard::{Latch, Need};
use crate::object::{Dynamic, Gvk, LAST_APPLIED, Object, ObjectKey, key_of};

/// What can be cached: typed kinds and [`Dynamic`] objects.
pub trait Cached: DeserializeOwned + Clone + Debug + Send + Sync + 'static {
    /// The object's metadata.
    fn meta(&self) -> &ObjectMeta;
    /// Drops what nobody reads.
    fn strip(&mut self);
    /// The object as JSON; `null` when it cannot be encoded.
    fn to_value(&self) -> Value;
}

impl<K: Object> Cached for K {
    fn meta(&self) -> &ObjectMeta {
        kube::Resource::meta(self)
    }

    fn strip(&mut self) {
        let meta = self.meta_mut();
        meta.managed_fields = None;
        if let Some(annotations) = &mut meta.annotations {
            annotations.remove(LAST_APPLIED);
        }
    }

    fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

impl Cached for Dynamic {
    fn meta(&self) -> &ObjectMeta {
        self.metadata()
    }

    // Decoding has dropped it already.
    fn strip(&mut self) {}

    fn to_value(&self) -> Value {
        self.value().clone()
    }
}

/// One change of a cached object: only `new` when it was added, only `old` when it was deleted.
#[derive(Clone, Debug)]
pub struct Change<T> {
    /// Before.
    pub old: Option<Arc<T>>,
    /// After.
    pub new: Option<Arc<T>>,
}

impl<T> Change<T> {
    /// The newer of the two.
    pub fn object(&self) -> Option<&Arc<T>> {
        self.new.as_ref().or(self.old.as_ref())
    }
}

/// A list is older than what was seen before, and was not taken over.
#[derive(Debug, thiserror::Error)]
#[error("the server's list of resourceVersion {list} is older than what was seen before ({seen})")]
pub struct StaleList {
    list: u64,
    seen: u64,
}

type Subscriber<T> = Arc<dyn Fn(&Change<T>) + Send + Sync>;
type IndexFn<T> = fn(&T) -> Vec<String>;

/// The objects of one kind.
pub(crate) struct Store<T> {
    gvk: Gvk,
    /// Drops more than what nobody ever reads.
    trim: Option<fn(&mut T)>,
    state: RwLock<State<T>>,
    /// Held while subscribers are called, so that each one sees all changes in order from the moment it subscribed.
    subscribers: Mutex<Vec<Subscriber<T>>>,
    memos: Mutex<HashMap<ObjectKey, Vec<(String, Memo)>>>,
    synced: watch::Sender<bool>,
}

/// What is remembered of the last apply of one field manager to one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Memo {
    /// Hash of what was applied.
    pub(crate) desired: [u8; 16],
    /// The object it was applied to.
    pub(crate) uid: String,
    /// Its resourceVersion after that.
    pub(crate) version: String,
    /// Hash of what was there after that, when the apply changed nothing although it looked as if it would.
    pub(crate) live: Option<[u8; 16]>,
}

struct State<T> {
    objects: BTreeMap<String, BTreeMap<String, Arc<T>>>,
    owners: HashMap<String, BTreeSet<ObjectKey>>,
    clusters: HashMap<ObjectKey, BTreeSet<ObjectKey>>,
    custom: Vec<CustomIndex<T>>,
    version: u64,
    waiting: Vec<Waiting>,
}

struct CustomIndex<T> {
    name: &'static str,
    values: IndexFn<T>,
    keys: HashMap<String, BTreeSet<ObjectKey>>,
}

struct Waiting {
    key: ObjectKey,
    need: Need,
    latch: Arc<Latch>,
}

impl<T> Debug for Store<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("gvk", &self.gvk).finish_non_exhaustive()
    }
}

impl<T: Cached> Store<T> {
    pub(crate) fn new(gvk: Gvk) -> Self {
        Self {
            gvk,
            trim: None,
            state: RwLock::new(State {
                objects: BTreeMap::new(),
                owners: HashMap::new(),
                clusters: HashMap::new(),
                custom: Vec::new(),
                version: 0,
                waiting: Vec::new(),
            }),
            subscribers: Mutex::new(Vec::new()),
            memos: Mutex::new(HashMap::new()),
            synced: watch::Sender::new(false),
        }
    }

    /// Objects are trimmed before they are kept.
    pub(crate) fn trimmed(mut self, trim: fn(&mut T)) -> Self {
        self.trim = Some(trim);
        self
    }

    fn reduce(&self, object: &mut T) {
        object.strip();
        if let Some(trim) = self.trim {
            trim(object);
        }
    }

    /// The kind, for logs.
    pub(crate) fn kind(&self) -> &str {
        &self.gvk.kind
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<Arc<T>> {
        let state = self.state.read();
        state.objects.get(&key.namespace)?.get(&key.name).cloned()
    }

    pub(crate) fn list(&self, namespace: &str) -> Vec<Arc<T>> {
        let state = self.state.read();
        state
            .objects
            .get(namespace)
            .map(|objects| objects.values().cloned().collect())
            .unwrap_or_default()
    }

    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        let state = self.state.read();
        state
            .objects
            .values()
            .flat_map(|objects| objects.values().cloned())
            .collect()
    }

    pub(crate) fn by_owner(&self, uid: &str) -> Vec<Arc<T>> {
        let state = self.state.read();
        state.resolve(state.owners.get(uid))
    }

    pub(crate) fn by_cluster(&self, cluster: &ObjectKey) -> Vec<Arc<T>> {
        let state = self.state.read();
        state.resolve(state.clusters.get(cluster))
    }

    pub(crate) fn by_index(&self, name: &str, value: &str) -> Vec<Arc<T>> {
        let state = self.state.read();
        let index = state.custom.iter().find(|index| index.name == name);
        state.resolve(index.and_then(|index| index.keys.get(value)))
    }

    pub(crate) fn add_index(&self, name: &'static str, values: IndexFn<T>) {
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
            index.insert(object);
        }
        state.custom.push(index);
    }

    /// Calls `f` for every object there is, and then for every change, in order.
    pub(crate) fn subscribe(&self, f: Subscriber<T>) {
        let mut subscribers = self.subscribers.lock();
        for object in self.all() {
            f(&Change {
                old: None,
                new: Some(object),
            });
        }
        subscribers.push(f);
    }

    /// Takes over an added or changed object.
    pub(crate) fn apply(&self, mut object: T) {
        self.reduce(&mut object);
        let subscribers = self.subscribers.lock();
        let object = Arc::new(object);
        let (old, met) = {
            let mut state = self.state.write();
            let old = state.insert(object.clone());
            let version = version_of(object.meta());
            state.version = state.version.max(version);
            (old, state.take_met())
        };
        Self::release(met);
        Self::tell(&subscribers, &Change { old, new: Some(object) });
    }

    /// Takes over a deletion.
    pub(crate) fn delete(&self, object: &T) {
        let subscribers = self.subscribers.lock();
        let key = key_of(object.meta());
        let (old, met) = {
            let mut state = self.state.write();
            let old = state.remove(&key);
            state.version = state.version.max(version_of(object.meta()));
            (old, state.take_met())
        };
        self.memos.lock().remove(&key);
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

    /// Takes over a whole list: objects that are not in it are deleted. Marks the store as synced. A list that is older than
    /// what was seen before is refused unless `force` is set.
    pub(crate) fn replace(&self, objects: Vec<T>, version: u64, force: bool) -> Result<(), StaleList> {
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
            for mut object in objects {
                self.reduce(&mut object);
                let key = key_of(object.meta());
                gone.remove(&key);
                let same = state.find(&key).is_some_and(|old| {
                    old.meta().resource_version == object.meta().resource_version && old.meta().uid == object.meta().uid
                });
                if same {
                    continue;
                }
                let new = Arc::new(object);
                let old = state.insert(new.clone());
                changes.push(Change { old, new: Some(new) });
            }
            for key in gone {
                self.memos.lock().remove(&key);
                let old = state.remove(&key);
                changes.push(Change { old, new: None });
            }
            state.version = version;
            state.take_met()
        };
        self.synced.send_replace(true);
        Self::release(met);
        for change in &changes {
            Self::tell(&subscribers, change);
        }
        Ok(())
    }

    /// Takes over a bookmark.
    pub(crate) fn saw(&self, version: u64) {
        let met = {
            let mut state = self.state.write();
            state.version = state.version.max(version);
            state.take_met()
        };
        Self::release(met);
    }

    fn tell(subscribers: &[Subscriber<T>], change: &Change<T>) {
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

/// What the driver and the writer need of a store without knowing its type.
pub(crate) trait AnyStore: Send + Sync {
    fn gvk(&self) -> &Gvk;
    fn is_synced(&self) -> bool;
    fn synced(&self) -> watch::Receiver<bool>;
    /// Releases `latch` when `need` is met: at once, or later.
    fn when(&self, key: &ObjectKey, need: Need, latch: Arc<Latch>);
    /// uid and resourceVersion of an object.
    fn identity(&self, key: &ObjectKey) -> Option<(String, String)>;
    fn value(&self, key: &ObjectKey) -> Option<Value>;
    fn memo(&self, key: &ObjectKey, slot: &str) -> Option<Memo>;
    fn remember(&self, key: &ObjectKey, slot: &str, memo: Memo);
    fn version(&self) -> u64;
    fn len(&self) -> usize;
}

impl<T: Cached> AnyStore for Store<T> {
    fn gvk(&self) -> &Gvk {
        &self.gvk
    }

    fn is_synced(&self) -> bool {
        *self.synced.borrow()
    }

    fn synced(&self) -> watch::Receiver<bool> {
        self.synced.subscribe()
    }

    fn when(&self, key: &ObjectKey, need: Need, latch: Arc<Latch>) {
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

    fn identity(&self, key: &ObjectKey) -> Option<(String, String)> {
        let object = self.get(key)?;
        let meta = object.meta();
        Some((meta.uid.clone()?, meta.resource_version.clone()?))
    }

    fn value(&self, key: &ObjectKey) -> Option<Value> {
        Some(self.get(key)?.to_value())
    }

    fn memo(&self, key: &ObjectKey, slot: &str) -> Option<Memo> {
        let memos = self.memos.lock();
        let (_, memo) = memos.get(key)?.iter().find(|(s, _)| s == slot)?;
        Some(memo.clone())
    }

    fn remember(&self, key: &ObjectKey, slot: &str, memo: Memo) {
        let mut memos = self.memos.lock();
        let of_object = memos.entry(key.clone()).or_default();
        match of_object.iter_mut().find(|(s, _)| s == slot) {
            Some((_, old)) => *old = memo,
            None => of_object.push((slot.to_owned(), memo)),
        }
    }

    fn version(&self) -> u64 {
        self.state.read().version
    }

    fn len(&self) -> usize {
        self.state.read().objects.values().map(BTreeMap::len).sum()
    }
}

impl<T: Cached> State<T> {
    fn find(&self, key: &ObjectKey) -> Option<&Arc<T>> {
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

    fn resolve(&self, keys: Option<&BTreeSet<ObjectKey>>) -> Vec<Arc<T>> {
        keys.into_iter()
            .flatten()
            .filter_map(|key| self.find(key).cloned())
            .collect()
    }

    fn insert(&mut self, object: Arc<T>) -> Option<Arc<T>> {
        let key = key_of(object.meta());
        let old = self.remove(&key);
        for uid in owner_uids(object.meta()) {
            self.owners.entry(uid.to_owned()).or_default().insert(key.clone());
        }
        if let Some(cluster) = cluster_of(object.meta()) {
            self.clusters.entry(cluster).or_default().insert(key.clone());
        }
        for index in &mut self.custom {
            index.insert(&object);
        }
        self.objects.entry(key.namespace).or_default().insert(key.name, object);
        old
    }

    fn remove(&mut self, key: &ObjectKey) -> Option<Arc<T>> {
        let objects = self.objects.get_mut(&key.namespace)?;
        let old = objects.remove(&key.name)?;
        if objects.is_empty() {
            self.objects.remove(&key.namespace);
        }
        for uid in owner_uids(old.meta()) {
            forget(&mut self.owners, uid, key);
        }
        if let Some(cluster) = cluster_of(old.meta()) {
            forget(&mut self.clusters, &cluster, key);
        }
        for index in &mut self.custom {
            for value in (index.values)(&old) {
                forget(&mut index.keys, value.as_str(), key);
            }
        }
        Some(old)
    }

    fn is_met(&self, key: &ObjectKey, need: &Need) -> bool {
        match need {
            Need::Version(version) => self.version >= *version,
            Need::Gone(uid) => self
                .find(key)
                .is_none_or(|object| object.meta().uid.as_deref() != Some(uid)),
        }
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

impl<T: Cached> CustomIndex<T> {
    fn insert(&mut self, object: &T) {
        let key = key_of(object.meta());
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

/// The resourceVersion as a number; 0 when it is none.
fn version_of(meta: &ObjectMeta) -> u64 {
    meta.resource_version
        .as_deref()
        .and_then(|v| v.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests;
