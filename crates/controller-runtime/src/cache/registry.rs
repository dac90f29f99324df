//! The watched kinds of a process. A watch starts the first time a kind is asked for.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Secret;
use parking_lot::Mutex;
use windlass_api::codec::Codec;
use windlass_contract::ContractVersion;

use windlass_meta::repeats::Repeats;

use super::Cache;
use super::crd::{self, BY_KIND, Crd, Resolved};
use super::informer::{Extent, Informer, Selector};
use super::store::{AnyChange, Store, typed, typed_ref};
use crate::error::RuntimeError;
use crate::object::{Dynamic, GroupKind, Gvk, Object, ObjectKey, gvk_of, is_namespaced};
use crate::reader::{Selection, collection_url};
use crate::scope::Scope;
use crate::tasks::Tasks;

/// How long a caller that asks for a dynamic kind waits for its first list.
const FIRST_LIST: Duration = Duration::from_secs(15);

/// Field selector of the Secrets that are cached: all but the releases of Helm, which may take a megabyte each and concern no controller.
const SECRETS_OF_CONTROLLERS: &str = "type!=helm.sh/release.v1";

/// All caches of the process. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Caches(Arc<Inner>);

/// A function that is called with every change of every dynamic kind.
pub(crate) type DynSubscriber = Arc<dyn Fn(&AnyChange) + Send + Sync>;

/// The store of a dynamic kind, and the contract version that the kind follows.
type DynStore = (Arc<Store>, ContractVersion);

struct Inner {
    client: kube::Client,
    scope: Scope,
    tasks: Tasks,
    kinds: Mutex<Kinds>,
}

#[derive(Default)]
struct Kinds {
    typed: HashMap<TypeId, Arc<Store>>,
    /// One version of each dynamic kind: the last one that a caller has found in the definition.
    dynamic: HashMap<GroupKind, Followed>,
    by_kind: HashMap<GroupKind, Vec<Arc<Store>>>,
    subscribers: Vec<DynSubscriber>,
    /// Caches of parts of kinds, by the type of the cached value, the kind and the selection. No caller waits for them, and they
    /// exist only as long as a copy of the cache does.
    selected: HashMap<PartId, Part>,
}

/// The store of a dynamic kind, and its watch.
struct Followed {
    store: Arc<Store>,
    watch: Tasks,
}

/// The type of the cached value, the kind and the selection.
type PartId = (TypeId, Gvk, Selection);
/// A part of a kind, while a cache of it exists.
type Part = (Weak<Life>, Weak<Store>);

/// Ends a watch when the last cache that uses it is dropped.
pub(crate) struct Life(Tasks);

impl Drop for Life {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Caches {
    pub(crate) fn new(client: kube::Client, scope: Scope, tasks: Tasks) -> Self {
        Self(Arc::new(Inner {
            client,
            scope,
            tasks,
            kinds: Mutex::new(Kinds::default()),
        }))
    }

    /// The store of a typed kind; its watch starts with the first call.
    pub(crate) fn typed<K: Object>(&self) -> Arc<Store> {
        self.whole(TypeId::of::<K>(), || {
            let store = Store::of::<K>(gvk_of::<K>());
            if TypeId::of::<K>() == TypeId::of::<Crd>() {
                store.add_index(
                    BY_KIND,
                    Box::new(|crd| typed_ref(crd).map_or_else(Vec::new, crd::kind_index)),
                );
            }
            let namespace = self.0.scope.limit("", is_namespaced::<K>());
            let url = collection_url(&gvk_of::<K>(), &K::plural(&()), namespace);
            let selector = Selector {
                fields: (TypeId::of::<K>() == TypeId::of::<Secret>()).then(|| SECRETS_OF_CONTROLLERS.to_owned()),
                ..Selector::default()
            };
            (store, url, selector)
        })
    }

    /// The store of a type. If there is none yet, `make` returns the store, its source, and what is selected there.
    fn whole(&self, of: TypeId, make: impl FnOnce() -> (Store, String, Selector)) -> Arc<Store> {
        let mut kinds = self.0.kinds.lock();
        if let Some(store) = kinds.typed.get(&of) {
            return store.clone();
        }
        let (store, url, selector) = make();
        let store = Arc::new(store);
        kinds.typed.insert(of, store.clone());
        kinds.register(store.clone());
        drop(kinds);
        self.watch_with(&self.0.tasks, url, store.clone(), (selector, Extent::Whole));
        store
    }

    /// The store of a typed kind, if a controller has asked for it.
    pub(crate) fn known<K: Object>(&self) -> Option<Arc<Store>> {
        self.0.kinds.lock().typed.get(&TypeId::of::<K>()).cloned()
    }

    /// All stores, typed and dynamic, that have objects of this kind.
    pub(crate) fn holding(&self, kind: &GroupKind) -> Vec<Arc<Store>> {
        let kinds = self.0.kinds.lock();
        kinds.by_kind.get(kind).cloned().unwrap_or_default()
    }

    /// An object of a cluster that exists, and of which no version could be decoded, with its kind.
    pub(crate) fn unreadable(&self, cluster: &ObjectKey) -> Option<(String, ObjectKey)> {
        let kinds = self.0.kinds.lock();
        let mut stores = kinds.by_kind.values().flatten();
        stores.find_map(|store| Some((store.kind().to_owned(), store.unreadable(cluster)?)))
    }

    /// The store of dynamic objects of exactly this version, if a controller has asked for it.
    pub(crate) fn known_dynamic(&self, gvk: &Gvk) -> Option<Arc<Store>> {
        let kinds = self.0.kinds.lock();
        let followed = kinds.dynamic.get(&gvk.group_kind())?;
        Some(followed.store.clone()).filter(|store| store.gvk() == gvk)
    }

    /// The stores of typed kinds, which controllers declare. Dynamic kinds are not among them: they become known while controllers
    /// run, and a kind that cannot be read holds up only the objects that refer to it.
    pub(crate) fn declared(&self) -> Vec<Arc<Store>> {
        self.0.kinds.lock().typed.values().cloned().collect()
    }

    /// The store of a dynamic kind after its first list. Boxed, as [`Self::definition`] is, so that it is compiled once.
    pub(crate) fn dynamic<'a>(&'a self, kind: &'a GroupKind) -> BoxFuture<'a, Result<DynStore, RuntimeError>> {
        Box::pin(async move {
            let crd = self.definition(kind).await?;
            let resolved = crd::resolve(&crd, kind)?;
            let store = self.start_dynamic(&resolved);
            self.first_list(&store, &kind.kind).await?;
            Ok((store, resolved.contract))
        })
    }

    async fn first_list(&self, store: &Store, kind: &str) -> Result<(), RuntimeError> {
        if store.is_synced() {
            return Ok(());
        }
        let mut synced = store.synced();
        let is_here = tokio::select! {
            first = tokio::time::timeout(FIRST_LIST, synced.wait_for(|synced| *synced)) => first.is_ok(),
            () = self.0.tasks.stopping() => false,
        };
        if is_here {
            Ok(())
        } else {
            Err(RuntimeError::NotSynced { kind: kind.to_owned() })
        }
    }

    /// The definition of a kind.
    pub(crate) fn definition<'a>(&'a self, kind: &'a GroupKind) -> BoxFuture<'a, Result<Arc<Crd>, RuntimeError>> {
        Box::pin(async move {
            let crds = self.typed::<Crd>();
            self.first_list(&crds, "CustomResourceDefinition").await?;
            let value = crd::index_value(&kind.group, &kind.kind);
            let mut found = crds.by_index(BY_KIND, &value).into_iter().filter_map(typed);
            found.next().ok_or_else(|| RuntimeError::UnknownKind {
                group: kind.group.clone(),
                kind: kind.kind.clone(),
            })
        })
    }

    fn start_dynamic(&self, resolved: &Resolved) -> Arc<Store> {
        let kind = resolved.gvk.group_kind();
        let (store, watch, old, subscribers) = {
            let mut kinds = self.0.kinds.lock();
            let known = kinds.dynamic.get(&kind).map(|followed| &followed.store);
            if let Some(store) = known.filter(|store| store.gvk() == &resolved.gvk) {
                return store.clone();
            }
            let store = Arc::new(Store::of::<Dynamic>(resolved.gvk.clone()));
            let watch = self.0.tasks.child();
            let followed = Followed {
                store: store.clone(),
                watch: watch.clone(),
            };
            let old = kinds.dynamic.insert(kind, followed);
            if let Some(old) = &old {
                kinds.unregister(&old.store);
            }
            kinds.register(store.clone());
            (store, watch, old, kinds.subscribers.clone())
        };
        // Nothing reads the old version any more, so no write may wait for it.
        if let Some(old) = old {
            old.watch.stop();
            old.store.stop();
        }
        for subscriber in subscribers {
            store.subscribe(subscriber);
        }
        let namespace = self.0.scope.limit("", resolved.namespaced);
        let url = collection_url(&resolved.gvk, &resolved.plural, namespace);
        self.watch_with(&watch, url, store.clone(), (Selector::default(), Extent::Whole));
        store
    }

    /// Calls `f` for every change of every dynamic kind that is or will be watched.
    pub(crate) fn subscribe_dynamic(&self, f: &DynSubscriber) {
        let stores: Vec<_> = {
            let mut kinds = self.0.kinds.lock();
            kinds.subscribers.push(f.clone());
            kinds.dynamic.values().map(|followed| followed.store.clone()).collect()
        };
        for store in stores {
            store.subscribe(f.clone());
        }
    }

    /// The cache of some objects of a kind; its watch starts with the first call.
    pub(crate) fn selected<T: Codec>(&self, gvk: &Gvk, url: String, selection: &Selection) -> Cache<T> {
        let id = (TypeId::of::<T>(), gvk.clone(), selection.clone());
        let (store, life) = self.part(id, url, || Store::of::<T>(gvk.clone()));
        Cache::part(store, life)
    }

    fn part(&self, id: PartId, url: String, make: impl FnOnce() -> Store) -> (Arc<Store>, Arc<Life>) {
        let mut kinds = self.0.kinds.lock();
        let known = kinds
            .selected
            .get(&id)
            .and_then(|(life, store)| Some((store.upgrade()?, life.upgrade()?)));
        if let Some(known) = known {
            return known;
        }
        let store = Arc::new(make());
        let life = Arc::new(Life(self.0.tasks.child()));
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let name = given(&id.2.name).map(|name| format!("metadata.name={name}"));
        let fields: Vec<String> = name.into_iter().chain(given(&id.2.fields)).collect();
        let selector = Selector {
            labels: given(&id.2.labels),
            fields: given(&fields.join(",")),
        };
        let extent = if id.2.metadata_only {
            Extent::Metadata
        } else {
            Extent::Whole
        };
        kinds.selected.retain(|_, (life, _)| life.strong_count() > 0);
        kinds
            .selected
            .insert(id, (Arc::downgrade(&life), Arc::downgrade(&store)));
        drop(kinds);
        self.watch_with(&life.0, url, store.clone(), (selector, extent));
        (store, life)
    }

    fn watch_with(&self, tasks: &Tasks, url: String, store: Arc<Store>, (selector, extent): (Selector, Extent)) {
        let informer = Informer {
            client: self.0.client.clone(),
            url,
            store,
            selector,
            said: Repeats::default(),
            extent,
        };
        tasks.spawn("watch", informer.run());
    }
}

impl Kinds {
    fn register(&mut self, store: Arc<Store>) {
        let kind = store.gvk().group_kind();
        self.by_kind.entry(kind).or_default().push(store);
    }

    fn unregister(&mut self, store: &Arc<Store>) {
        if let Some(stores) = self.by_kind.get_mut(&store.gvk().group_kind()) {
            stores.retain(|known| !Arc::ptr_eq(known, store));
        }
    }
}
