//! Caches: one watch and one store per kind and process, shared by all controllers.

pub(crate) mod crd;
pub(crate) mod documents;
mod events;
mod informer;
mod registry;
mod store;
mod unreadable;
mod weights;

use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

pub use crd::{Crd, CrdNames, CrdSpec, CrdVersion};
pub(crate) use informer::{Extent, Informer, Selector};
pub(crate) use registry::{Caches, DynSubscriber, Life};
pub(crate) use store::{AnyChange, AnyObject, Memo, Store, typed, typed_ref};
pub use store::{Change, StaleList};
use tokio::sync::Semaphore;
use windlass_api::codec::{Codec, Stored};
use windlass_contract::ContractVersion;

use crate::journal::Journal;
use crate::object::{Dynamic, Gvk, ObjectKey};
use crate::tasks::Tasks;

/// Read access to the cached objects of one kind. Cheap to clone.
pub struct Cache<T> {
    store: Arc<Store>,
    journal: Option<Journal>,
    contract: Option<ContractVersion>,
    /// Keeps the watch of a part of a kind running.
    life: Option<Arc<Life>>,
    holds: PhantomData<fn() -> T>,
}

/// The cache of a kind that is known at run time only.
pub type DynCache = Cache<Dynamic>;

impl<T> Clone for Cache<T> {
    fn clone(&self) -> Self {
        Self {
            store: self.store.clone(),
            journal: self.journal.clone(),
            contract: self.contract,
            life: self.life.clone(),
            holds: PhantomData,
        }
    }
}

impl<T> Debug for Cache<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

impl<T: Codec> Cache<T> {
    pub(crate) fn new(store: Arc<Store>, journal: Option<Journal>, contract: Option<ContractVersion>) -> Self {
        Self {
            store,
            journal,
            contract,
            life: None,
            holds: PhantomData,
        }
    }

    /// A cache of a part of a kind. The part is watched as long as a copy of this cache exists.
    pub(crate) fn part(store: Arc<Store>, life: Arc<Life>) -> Self {
        Self {
            store,
            journal: None,
            contract: None,
            life: Some(life),
            holds: PhantomData,
        }
    }

    /// The same cache, for reads of a reconcile.
    pub(crate) fn journaled(mut self, journal: &Journal) -> Self {
        self.journal = Some(journal.clone());
        self
    }

    /// A separate cache, fed by `url` (`/api/v1/nodes`) of another API server, for connections to workload clusters. It ends with
    /// `tasks`.
    pub fn stand_alone(client: kube::Client, url: impl Into<String>, gvk: Gvk, tasks: &Tasks) -> Self {
        Self::alone(client, url.into(), gvk, (Selector::default(), Extent::Whole), tasks)
    }

    /// [`Self::stand_alone`] whose first list waits for its turn. It keeps its turn until it is complete, or for `most`; then it goes on
    /// without.
    pub fn stand_alone_in_turn(
        client: kube::Client,
        url: impl Into<String>,
        gvk: Gvk,
        tasks: &Tasks,
        (turns, most): (Arc<Semaphore>, Duration),
    ) -> Self {
        let (store, informer) = Self::source(client, url.into(), gvk, (Selector::default(), Extent::Whole));
        let cache = Self::new(store, None, None);
        let (listed, watching) = (cache.listed(), tasks.clone());
        tasks.spawn("first list", async move {
            // The semaphore is never closed.
            let turn = turns.acquire_owned().await.ok();
            watching.spawn("watch", informer.run());
            // In time or not, the turn ends.
            let _ = tokio::time::timeout(most, listed).await;
            drop(turn);
        });
        cache
    }

    /// [`Self::stand_alone`] for one object. `url` is the URL of its collection.
    pub fn stand_alone_object(
        client: kube::Client,
        url: impl Into<String>,
        gvk: Gvk,
        name: &str,
        tasks: &Tasks,
    ) -> Self {
        let selector = Selector {
            fields: Some(format!("metadata.name={name}")),
            ..Selector::default()
        };
        Self::alone(client, url.into(), gvk, (selector, Extent::Whole), tasks)
    }

    /// [`Self::stand_alone`] for the objects with these labels. The server sends only their metadata; `T` is decoded from a
    /// `PartialObjectMetadata`.
    pub fn stand_alone_metadata(
        client: kube::Client,
        url: impl Into<String>,
        gvk: Gvk,
        labels: impl Into<String>,
        tasks: &Tasks,
    ) -> Self {
        let selector = Selector {
            labels: Some(labels.into()),
            ..Selector::default()
        };
        Self::alone(client, url.into(), gvk, (selector, Extent::Metadata), tasks)
    }

    fn alone(client: kube::Client, url: String, gvk: Gvk, part: (Selector, Extent), tasks: &Tasks) -> Self {
        let (store, informer) = Self::source(client, url, gvk, part);
        tasks.spawn("watch", informer.run());
        Self::new(store, None, None)
    }

    fn source(
        client: kube::Client,
        url: String,
        gvk: Gvk,
        (selector, extent): (Selector, Extent),
    ) -> (Arc<Store>, Informer) {
        let store = Arc::new(Store::of::<T>(gvk));
        let informer = Informer {
            client,
            url,
            store: store.clone(),
            selector,
            said: windlass_meta::repeats::Repeats::default(),
            extent,
        };
        (store, informer)
    }

    /// Records a read that came before the first list, so that the driver waits and observes again.
    fn read(&self) -> &Store {
        if let Some(journal) = &self.journal
            && !self.store.is_synced()
        {
            journal.read_unready(self.store.clone());
        }
        &self.store
    }

    /// The object with this key.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<T>> {
        self.read().get(key).and_then(typed)
    }

    /// The objects of a namespace, by name. The empty namespace has the cluster-scoped objects.
    pub fn list(&self, namespace: &str) -> Vec<Arc<T>> {
        all(self.read().list(namespace))
    }

    /// All objects, by namespace and name.
    pub fn all(&self) -> Vec<Arc<T>> {
        all(self.read().all())
    }

    /// The objects that have an owner reference with this uid, by namespace and name.
    pub fn by_owner(&self, uid: &str) -> Vec<Arc<T>> {
        all(self.read().by_owner(uid))
    }

    /// The objects with the label `cluster.x-k8s.io/cluster-name` of this cluster, by name.
    pub fn by_cluster(&self, namespace: &str, cluster_name: &str) -> Vec<Arc<T>> {
        all(self.read().by_cluster(&ObjectKey::new(namespace, cluster_name)))
    }

    /// Adds an index under a name; a second index of the same name is ignored.
    pub fn add_index(&self, name: &'static str, values: fn(&T) -> Vec<String>) {
        let of = move |object: &dyn Stored| typed_ref(object).map_or_else(Vec::new, values);
        self.store.add_index(name, Box::new(of));
    }

    /// The objects for which the index `name` has `value`; none if there is no such index.
    pub fn by_index(&self, name: &str, value: &str) -> Vec<Arc<T>> {
        all(self.read().by_index(name, value))
    }

    /// Group, version and kind of the cached objects.
    pub fn gvk(&self) -> Gvk {
        self.store.gvk().clone()
    }

    /// The contract version in the labels of the kind's definition; v1beta2 for kinds that were not found through a definition.
    pub fn contract(&self) -> ContractVersion {
        self.contract.unwrap_or(ContractVersion::V1Beta2)
    }

    /// True after the first list.
    pub fn is_synced(&self) -> bool {
        self.store.is_synced()
    }

    /// Waits for the first list.
    pub async fn synced(&self) {
        let mut synced = self.store.synced();
        // The sender lives in the store that `self` holds.
        let _ = synced.wait_for(|synced| *synced).await;
    }

    /// Waits for the first list without holding the cache. False when the list will never come, because all copies of the cache
    /// were dropped.
    pub fn listed(&self) -> impl Future<Output = bool> + Send + 'static {
        let mut synced = self.store.synced();
        async move { synced.wait_for(|synced| *synced).await.is_ok() }
    }

    /// Calls `f` for every object that exists, and then for every change, in order. `f` must not block.
    pub fn subscribe(&self, f: impl Fn(&Change<T>) + Send + Sync + 'static) {
        self.store.subscribe(Arc::new(move |change| f(&change.typed())));
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.store.len()
    }

    /// True when there are no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The newest resourceVersion that the cache has seen.
    pub fn version(&self) -> u64 {
        self.store.version()
    }
}

/// Objects as the type of their store.
fn all<T: Codec>(objects: Vec<AnyObject>) -> Vec<Arc<T>> {
    objects.into_iter().filter_map(typed).collect()
}
