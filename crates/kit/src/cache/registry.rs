//! Which kinds are watched, and starting a watch the first time a kind is asked for.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use windlass_contract::ContractVersion;

use super::Cache;
use super::crd::{self, BY_KIND, Crd, Resolved};
use super::informer::{Extent, Informer, Selector};
use super::store::{AnyStore, Cached, Change, Store};
use crate::error::KitError;
use crate::object::{Dynamic, GroupKind, Gvk, Object, gvk_of};
use crate::reader::Selection;
use crate::tasks::Tasks;

/// How long somebody who asks for a dynamic kind waits for its first list.
const FIRST_LIST: Duration = Duration::from_secs(15);

/// All caches of the process. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Caches(Arc<Inner>);

/// Somebody who is told of every change of every dynamic kind.
pub(crate) type DynSubscriber = Arc<dyn Fn(&Change<Dynamic>) + Send + Sync>;

/// Dynamic objects, and the contract that they follow.
type DynStore = (Arc<Store<Dynamic>>, ContractVersion);

struct Inner {
    client: kube::Client,
    tasks: Tasks,
    kinds: Mutex<Kinds>,
}

#[derive(Default)]
struct Kinds {
    typed: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
    dynamic: HashMap<Gvk, Arc<Store<Dynamic>>>,
    by_kind: HashMap<GroupKind, Vec<Arc<dyn AnyStore>>>,
    subscribers: Vec<DynSubscriber>,
    /// Parts of kinds, by the type that is kept, the kind and the selection. Nobody waits for these, and they are there only as
    /// long as somebody has them.
    selected: HashMap<(TypeId, Gvk, Selection), Part>,
}

/// A part of a kind, while somebody has it.
type Part = (Weak<Life>, Weak<dyn Any + Send + Sync>);

/// Ends a watch when nobody has it any more.
pub(crate) struct Life(Tasks);

impl Drop for Life {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Caches {
    pub(crate) fn new(client: kube::Client, tasks: Tasks) -> Self {
        Self(Arc::new(Inner {
            client,
            tasks,
            kinds: Mutex::new(Kinds::default()),
        }))
    }

    /// The store of a typed kind; its watch starts with the first call.
    pub(crate) fn typed<K: Object>(&self) -> Arc<Store<K>> {
        let mut kinds = self.0.kinds.lock();
        if let Some(store) = kinds.find::<K>() {
            return store;
        }
        let gvk = gvk_of::<K>();
        let store = Arc::new(Store::<K>::new(gvk.clone()));
        if TypeId::of::<K>() == TypeId::of::<Crd>()
            && let Ok(crds) = (store.clone() as Arc<dyn Any + Send + Sync>).downcast::<Store<Crd>>()
        {
            crds.add_index(BY_KIND, crd::kind_index);
        }
        kinds.typed.insert(TypeId::of::<K>(), store.clone());
        kinds.register(store.clone());
        self.watch(K::url_path(&(), None), store.clone());
        store
    }

    /// The store of a typed kind, when somebody has asked for it before.
    pub(crate) fn known<K: Object>(&self) -> Option<Arc<Store<K>>> {
        self.0.kinds.lock().find::<K>()
    }

    /// All stores, typed and dynamic, that hold objects of this kind.
    pub(crate) fn holding(&self, kind: &GroupKind) -> Vec<Arc<dyn AnyStore>> {
        let kinds = self.0.kinds.lock();
        kinds.by_kind.get(kind).cloned().unwrap_or_default()
    }

    /// The store that holds dynamic objects of exactly this version, when somebody has asked for it before.
    pub(crate) fn known_dynamic(&self, gvk: &Gvk) -> Option<Arc<Store<Dynamic>>> {
        self.0.kinds.lock().dynamic.get(gvk).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<dyn AnyStore>> {
        let kinds = self.0.kinds.lock();
        kinds.by_kind.values().flatten().cloned().collect()
    }

    /// The store of a dynamic kind with its first list in. Boxed, as [`Self::definition`] is, so that it is not compiled again
    /// wherever it is awaited.
    pub(crate) fn dynamic<'a>(&'a self, kind: &'a GroupKind) -> BoxFuture<'a, Result<DynStore, KitError>> {
        Box::pin(async move {
            let crd = self.definition(kind).await?;
            let resolved = crd::resolve(&crd, kind)?;
            let store = self.start_dynamic(&resolved);
            self.first_list(&*store, &kind.kind).await?;
            Ok((store, resolved.contract))
        })
    }

    async fn first_list(&self, store: &dyn AnyStore, kind: &str) -> Result<(), KitError> {
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
            Err(KitError::NotSynced { kind: kind.to_owned() })
        }
    }

    /// The definition of a kind.
    pub(crate) fn definition<'a>(&'a self, kind: &'a GroupKind) -> BoxFuture<'a, Result<Arc<Crd>, KitError>> {
        Box::pin(async move {
            let crds = self.typed::<Crd>();
            self.first_list(&*crds, "CustomResourceDefinition").await?;
            let value = crd::index_value(&kind.group, &kind.kind);
            let mut found = crds.by_index(BY_KIND, &value).into_iter();
            found.next().ok_or_else(|| KitError::UnknownKind {
                group: kind.group.clone(),
                kind: kind.kind.clone(),
            })
        })
    }

    fn start_dynamic(&self, resolved: &Resolved) -> Arc<Store<Dynamic>> {
        let (store, subscribers) = {
            let mut kinds = self.0.kinds.lock();
            if let Some(store) = kinds.dynamic.get(&resolved.gvk) {
                return store.clone();
            }
            let store = Arc::new(Store::<Dynamic>::new(resolved.gvk.clone()));
            kinds.dynamic.insert(resolved.gvk.clone(), store.clone());
            kinds.register(store.clone());
            (store, kinds.subscribers.clone())
        };
        for subscriber in subscribers {
            store.subscribe(subscriber);
        }
        let url = format!(
            "/apis/{}/{}/{}",
            resolved.gvk.group, resolved.gvk.version, resolved.plural
        );
        self.watch(url, store.clone());
        store
    }

    /// Calls `f` for every change of every dynamic kind that is or will be watched.
    pub(crate) fn subscribe_dynamic(&self, f: &DynSubscriber) {
        let stores: Vec<_> = {
            let mut kinds = self.0.kinds.lock();
            kinds.subscribers.push(f.clone());
            kinds.dynamic.values().cloned().collect()
        };
        for store in stores {
            store.subscribe(f.clone());
        }
    }

    /// The cache of some objects of a kind; its watch starts with the first call.
    pub(crate) fn selected<T: Cached>(&self, gvk: &Gvk, url: String, selection: &Selection) -> Cache<T> {
        let id = (TypeId::of::<T>(), gvk.clone(), selection.clone());
        let mut kinds = self.0.kinds.lock();
        let known = kinds
            .selected
            .get(&id)
            .and_then(|(life, store)| Some((life.upgrade()?, store.upgrade()?.downcast::<Store<T>>().ok()?)));
        if let Some((life, store)) = known {
            return Cache::part(store, life);
        }
        let store = Arc::new(Store::<T>::new(gvk.clone()));
        let life = Arc::new(Life(self.0.tasks.child()));
        kinds.selected.retain(|_, (life, _)| life.strong_count() > 0);
        let whole: Arc<dyn Any + Send + Sync> = store.clone();
        kinds
            .selected
            .insert(id, (Arc::downgrade(&life), Arc::downgrade(&whole)));
        drop(kinds);
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let selector = Selector {
            labels: given(&selection.labels),
            fields: given(&selection.name).map(|name| format!("metadata.name={name}")),
        };
        self.watch_with(&life.0, url, store.clone(), selector);
        Cache::part(store, life)
    }

    fn watch<T: Cached>(&self, url: String, store: Arc<Store<T>>) {
        self.watch_with(&self.0.tasks, url, store, Selector::default());
    }

    fn watch_with<T: Cached>(&self, tasks: &Tasks, url: String, store: Arc<Store<T>>, selector: Selector) {
        let informer = Informer {
            client: self.0.client.clone(),
            url,
            store,
            selector,
            extent: Extent::Whole,
        };
        tasks.spawn("watch", informer.run());
    }
}

impl Kinds {
    fn find<K: Object>(&self) -> Option<Arc<Store<K>>> {
        let store = self.typed.get(&TypeId::of::<K>())?.clone();
        store.downcast::<Store<K>>().ok()
    }

    fn register(&mut self, store: Arc<dyn AnyStore>) {
        let kind = store.gvk().group_kind();
        self.by_kind.entry(kind).or_default().push(store);
    }
}
