//! The ports of a controller: caches, writer, events, clock and names.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use parking_lot::Mutex;
use windlass_api::codec::Codec;
use windlass_contract::ContractVersion;
use windlass_meta::{Clock, NameSource};

use crate::cache::{Cache, Caches, DynCache, Store, crd};
use crate::error::RuntimeError;
use crate::events::{EventSubject, EventType, Events};
use crate::guard::{Latch, Need};
use crate::health::Ready;
use crate::journal::Journal;
use crate::metrics::Metrics;
use crate::object::{Dynamic, GroupKind, Gvk, Object, ObjectKey, gvk_of, is_namespaced};
use crate::reader::{Discovery, Selection, collection_url};
use crate::scope::Scope;
use crate::seen::Seen;
use crate::tasks::Tasks;
use crate::term::Term;
use crate::transport::Policy;
use crate::writer::Writer;

/// How long a reconcile waits for the first lists of caches that it has started.
const FIRST_LISTS: Duration = Duration::from_secs(15);

/// The ports of a controller. Cheap to clone.
#[derive(Clone)]
pub struct Cx {
    pub(crate) ports: Arc<Ports>,
    pub(crate) journal: Journal,
    writer: Writer,
    controller: &'static str,
}

/// The ports that all controllers of a process share.
pub(crate) struct Ports {
    pub(crate) client: kube::Client,
    pub(crate) caches: Caches,
    pub(crate) discovery: Discovery,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) names: Arc<dyn NameSource>,
    pub(crate) events: Events,
    pub(crate) metrics: Metrics,
    pub(crate) tasks: Tasks,
    /// What else has to be well for the process to be ready.
    pub(crate) checks: Mutex<Vec<Ready>>,
    pub(crate) term: Term,
    pub(crate) workloads: Policy,
    pub(crate) scope: Scope,
    /// After which time every object is reconciled again.
    pub(crate) sync_period: Option<Duration>,
}

impl std::fmt::Debug for Cx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cx")
            .field("controller", &self.controller)
            .finish_non_exhaustive()
    }
}

impl Cx {
    pub(crate) fn new(ports: Arc<Ports>, controller: &'static str) -> Self {
        let journal = Journal::default();
        let writer = Writer::new(ports.clone(), journal.clone(), controller);
        Self {
            ports,
            journal,
            writer,
            controller,
        }
    }

    /// The same ports with an empty journal: for one reconcile.
    pub(crate) fn fresh(&self) -> Self {
        Self::new(self.ports.clone(), self.controller)
    }

    /// The present time.
    pub fn now(&self) -> Timestamp {
        self.ports.clock.now()
    }

    /// The clock.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.ports.clock
    }

    /// Random suffixes for names.
    pub fn names(&self) -> &dyn NameSource {
        &*self.ports.names
    }

    /// The cache of a kind; its watch starts with the first call in the process.
    pub fn cache<K: Object>(&self) -> Cache<K> {
        let store = self.ports.caches.typed::<K>();
        Cache::new(store, Some(self.journal.clone()), None)
    }

    /// A cache of some objects of a kind, decoded as `T`. One watch per selection and process, started with the first call; it ends with
    /// the last copy of the cache, of which [`Watch::part`](crate::Watch::part) keeps one.
    pub fn part<K: Object, T: Codec>(&self, selection: &Selection) -> Cache<T> {
        let namespace = self.ports.scope.limit(&selection.namespace, is_namespaced::<K>());
        let url = collection_url(&gvk_of::<K>(), &K::plural(&()), namespace);
        let cache = self.ports.caches.selected::<T>(&gvk_of::<K>(), url, selection);
        cache.journaled(&self.journal)
    }

    /// The cache of a provider's kind, in the version that the contract labels of its definition select. Waits for the first
    /// list.
    pub async fn dynamic(&self, kind: &GroupKind) -> Result<DynCache, RuntimeError> {
        let (store, contract) = self.ports.caches.dynamic(kind).await?;
        Ok(Cache::new(store, Some(self.journal.clone()), Some(contract)))
    }

    /// One object of a provider's kind.
    pub async fn dynamic_get(&self, kind: &GroupKind, key: &ObjectKey) -> Seen<Arc<Dynamic>> {
        match self.dynamic(kind).await {
            Ok(cache) => cache.get(key).into(),
            Err(error) => Seen::Failed(error.to_string()),
        }
    }

    /// Whether the definition of a provider's kind serves this version.
    pub async fn serves(&self, gvk: &Gvk) -> Result<bool, RuntimeError> {
        let crd = self.ports.caches.definition(&gvk.group_kind()).await?;
        Ok(crd::serves(&crd, &gvk.version))
    }

    /// The contract that this version of a provider's kind follows, if the labels of its definition name one.
    pub async fn contract_of(&self, gvk: &Gvk) -> Result<Option<ContractVersion>, RuntimeError> {
        let crd = self.ports.caches.definition(&gvk.group_kind()).await?;
        Ok(crd::contract_of(&crd, &gvk.version))
    }

    /// The writer of objects.
    pub fn writer(&self) -> &Writer {
        &self.writer
    }

    /// Emits an event about an object.
    pub fn event(&self, about: &impl EventSubject, kind: EventType, reason: &str, message: impl Into<String>) {
        self.event_about(about.reference(), kind, reason, message);
    }

    /// [`Self::event`] with a reference instead of the object.
    pub fn event_about(&self, about: ObjectReference, kind: EventType, reason: &str, message: impl Into<String>) {
        self.ports
            .events
            .emit(self.controller, about, kind, reason, message.into());
    }

    /// The client, for requests that are neither object reads nor object writes.
    pub fn client(&self) -> &kube::Client {
        &self.ports.client
    }

    /// The time in which this process may write. Clients that a controller makes must be [`Term::fence`]d.
    pub fn term(&self) -> &Term {
        &self.ports.term
    }

    /// Which addresses API servers of workload clusters may have, and what they may cost.
    pub fn workloads(&self) -> &Policy {
        &self.ports.workloads
    }

    /// Which objects the controllers of this process read and reconcile.
    pub fn scope(&self) -> &Scope {
        &self.ports.scope
    }

    /// The tasks that end with the process.
    pub fn tasks(&self) -> &Tasks {
        &self.ports.tasks
    }

    /// The metrics of the process.
    pub fn metrics(&self) -> &Metrics {
        &self.ports.metrics
    }

    /// Waits until every cache that was used so far has its first list; false when the process ends before.
    pub async fn ready(&self) -> bool {
        self.all_synced().await
    }

    /// Waits until the caches of a kind have seen what the server has written up to a resourceVersion; false when they take too long.
    pub async fn has_caught_up(&self, kind: &GroupKind, version: u64) -> bool {
        let stores = self.ports.caches.holding(kind);
        let latch = Latch::new(stores.len(), || {});
        for store in &stores {
            store.when(&ObjectKey::default(), Need::Version(version), latch.clone());
        }
        !latch.is_open() || latch.fired_within(FIRST_LISTS).await
    }

    /// Waits until every cache that was read before its first list has it.
    pub(crate) async fn settle_reads(&self) -> Reads {
        let unready = self.journal.take_unready();
        if unready.is_empty() {
            return Reads::Good;
        }
        match tokio::time::timeout(FIRST_LISTS, self.synced(&unready)).await {
            Ok(true) => Reads::Again,
            Ok(false) => Reads::Stopping,
            Err(_) => {
                let late = unready.iter().find(|store| !store.is_synced());
                let kind = late.map(|store| store.gvk().kind.clone());
                Reads::Late(RuntimeError::NotSynced {
                    kind: kind.unwrap_or_default(),
                })
            }
        }
    }

    /// Waits until all declared caches have their first list; false when shutdown came first.
    pub(crate) async fn all_synced(&self) -> bool {
        self.synced(&self.stores()).await
    }

    /// Waits for the first list of each store; false at shutdown. A server that does not answer must not keep the process from
    /// ending.
    async fn synced(&self, stores: &[Arc<Store>]) -> bool {
        let all = async {
            for store in stores {
                // The sender lives in the store.
                let _ = store.synced().wait_for(|synced| *synced).await;
            }
        };
        tokio::select! {
            () = all => true,
            () = self.tasks().stopping() => false,
        }
    }

    /// The declared caches.
    pub(crate) fn stores(&self) -> Vec<Arc<Store>> {
        self.ports.caches.declared()
    }
}

/// The state of the caches that a reconcile has read.
#[derive(Debug)]
pub(crate) enum Reads {
    /// All caches had their first list.
    Good,
    /// Some caches had no first list, but have it now: the reads can be repeated.
    Again,
    /// Some caches had no first list, and it did not come in time.
    Late(RuntimeError),
    /// Some caches had no first list, and the process ends.
    Stopping,
}
