//! Sources of wake-ups for a controller's objects.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api::codec::{Codec, Stored};

use crate::cache::{AnyChange, Crd, DynSubscriber};
use crate::cx::Cx;
use crate::guard::Effect;
use crate::object::{Dynamic, GroupKind, Object, ObjectKey, key_of};
use crate::pause;
use crate::queue::Queue;
use crate::reader::Selection;

/// The index of objects by their references.
const REFERENCES: &str = "references";

/// The index values of a reference for [`Watch::referenced`]: its kind, and its object.
pub fn refers_to(kind: &GroupKind, object: &ObjectKey) -> [String; 2] {
    let of_kind = kind_value(kind);
    let of_object = format!("{of_kind}/{object}");
    [of_kind, of_object]
}

fn kind_value(kind: &GroupKind) -> String {
    format!("{}/{}", kind.group, kind.kind)
}

/// A function that returns whether the controller reconciles an object.
pub(crate) type Filter = Arc<dyn Fn(&ObjectKey) -> bool + Send + Sync>;

/// Wakes objects of one controller. Cheap to clone.
#[derive(Clone)]
pub struct Wake {
    queue: Arc<Queue<ObjectKey>>,
    kind: GroupKind,
    filter: Option<Filter>,
}

impl std::fmt::Debug for Wake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wake").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl Wake {
    pub(crate) fn new(queue: Arc<Queue<ObjectKey>>, kind: GroupKind, filter: Option<Filter>) -> Self {
        Self { queue, kind, filter }
    }

    fn passes(&self, key: &ObjectKey) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter(key))
    }

    /// Queues an object, if the controller reconciles it.
    pub fn add(&self, key: ObjectKey) {
        self.add_for(key, None);
    }

    /// [`Self::add`] for an event. Events of a reconcile's own writes do not shorten its backoff.
    fn add_for(&self, key: ObjectKey, effect: Option<Effect>) {
        if self.passes(&key) {
            self.queue.add_for(key, effect);
        }
    }

    /// [`Self::add_for`] for many objects.
    fn add_all_for(&self, keys: Vec<ObjectKey>, effect: Option<&Effect>) {
        for key in keys {
            self.add_for(key, effect.cloned());
        }
    }

    /// Queues those of the objects that the controller reconciles.
    pub fn add_all(&self, keys: impl IntoIterator<Item = ObjectKey>) {
        self.queue.add_all(keys.into_iter().filter(|key| self.passes(key)));
    }

    /// Whether an object has an owner of the controller's kind.
    fn is_owned(&self, meta: &ObjectMeta) -> bool {
        let mut owners = meta.owner_references.iter().flatten();
        owners.any(|owner| owner.kind == self.kind.kind)
    }

    /// Queues the owners of an object that are of the controller's kind.
    fn add_owners_for(&self, meta: &ObjectMeta, effect: Option<&Effect>) {
        for owner in meta.owner_references.iter().flatten() {
            let group = owner.api_version.split_once('/').map_or("", |(g, _)| g);
            if owner.kind == self.kind.kind && group == self.kind.group {
                let namespace = meta.namespace.as_deref().unwrap_or_default();
                self.add_for(ObjectKey::new(namespace, owner.name.as_str()), effect.cloned());
            }
        }
    }
}

/// What an event shows.
fn effect_of(change: &AnyChange) -> Option<Effect> {
    let (old, new) = (change.old.as_deref(), change.new.as_deref());
    Effect::of(old.map(Stored::metadata), new.map(Stored::metadata))
}

/// Queues the owners that an object has, or had before a change.
fn wake_owners(wake: &Wake, change: &AnyChange) {
    let effect = effect_of(change);
    for object in [&change.old, &change.new].into_iter().flatten() {
        wake.add_owners_for(object.metadata(), effect.as_ref());
    }
}

type Start = Box<dyn FnOnce(&Cx, Wake) + Send>;

/// A source of wake-ups.
pub struct Watch {
    start: Start,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watch")
    }
}

impl Watch {
    /// Events of `K` wake their owners of the controller's kind.
    pub fn owned<K: Object>() -> Self {
        Self::source(|cx, wake| {
            cx.ports.caches.typed::<K>().subscribe(Arc::new(move |change| {
                wake_owners(&wake, change);
            }));
        })
    }

    /// Events of `K` wake the objects that `map` names. `old` is `None` for an added object, `new` for a deleted one.
    pub fn map<K: Object>(map: impl Fn(&Cx, Option<&K>, Option<&K>) -> Vec<ObjectKey> + Send + Sync + 'static) -> Self {
        Self::source(|cx, wake| {
            let cache = cx.cache::<K>();
            cache.subscribe(move |change| {
                let (old, new) = (change.old.as_deref(), change.new.as_deref());
                let effect = Effect::of(old.map(kube::Resource::meta), new.map(kube::Resource::meta));
                wake.add_all_for(map(&cx, old, new), effect.as_ref());
            });
        })
    }

    /// Events of some objects of `K`, decoded as `T`, wake the objects that `map` names. They are cached as long as the controller runs,
    /// and [`Cx::part`] has the cache.
    pub fn part<K: Object, T: Codec>(
        selection: Selection,
        map: impl Fn(&Cx, Option<&T>, Option<&T>) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        Self::source(move |cx, wake| {
            let (cache, tasks) = (cx.part::<K, T>(&selection), cx.tasks().clone());
            cache.subscribe(move |change| {
                wake.add_all(map(&cx, change.old.as_deref(), change.new.as_deref()));
            });
            tasks.spawn("part of a kind", async move {
                let _kept = cache;
                std::future::pending::<()>().await;
            });
        })
    }

    /// Makes sure that `K` is cached before the first reconcile, and wakes nothing.
    pub fn read<K: Object>() -> Self {
        Self::source(|cx, _| {
            cx.cache::<K>();
        })
    }

    /// Events of every dynamic kind that is or will be cached wake their owners of the controller's kind. Changes of a paused object
    /// wake none; its end does.
    pub fn dynamic_owned() -> Self {
        Self::source(|cx, wake| {
            let f: DynSubscriber = Arc::new(move |change| {
                if change
                    .new
                    .as_deref()
                    .is_some_and(|new| pause::is_annotated(new.metadata()))
                {
                    return;
                }
                wake_owners(&wake, change);
            });
            cx.ports.caches.subscribe_dynamic(&f);
        })
    }

    /// Events of every dynamic kind that is or will be cached wake the objects that `map` names.
    pub fn dynamic_map(
        map: impl Fn(&Cx, Option<&Dynamic>, Option<&Dynamic>) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        Self::source(|cx, wake| {
            let caches = cx.ports.caches.clone();
            let f: DynSubscriber = Arc::new(move |change| {
                let (effect, change) = (effect_of(change), change.typed());
                let keys = map(&cx, change.old.as_deref(), change.new.as_deref());
                wake.add_all_for(keys, effect.as_ref());
            });
            caches.subscribe_dynamic(&f);
        })
    }

    /// Events of dynamic objects wake the objects of the controller's kind `K` that refer to them, with any owner. An object may
    /// refer to another one long before that object, or even its kind, exists. `references` returns the [`refers_to`] of every
    /// reference that is worth waiting for.
    pub fn referenced<K: Object>(references: fn(&K) -> Vec<String>) -> Self {
        Self::source(move |cx, wake| {
            let cache = cx.cache::<K>();
            cache.add_index(REFERENCES, references);
            let keys = move |value: &str| -> Vec<ObjectKey> {
                let found = cache.by_index(REFERENCES, value);
                found.iter().map(|object| key_of(object.meta())).collect()
            };
            let (of_kind, to_kind) = (keys.clone(), wake.clone());
            let f: DynSubscriber = Arc::new(move |change| {
                // An object that keeps its owner of the kind wakes that owner through its own watch.
                let stays = [&change.old, &change.new]
                    .into_iter()
                    .all(|object| object.as_ref().is_some_and(|object| wake.is_owned(object.metadata())));
                if let Some(object) = change.typed::<Dynamic>().object().filter(|_| !stays) {
                    let [_, value] = refers_to(&object.gvk().group_kind(), &object.key());
                    wake.add_all_for(keys(&value), effect_of(change).as_ref());
                }
            });
            cx.cache::<Crd>().subscribe(move |change| {
                if let Some(definition) = change.object() {
                    let names = &definition.spec;
                    let kind = GroupKind::new(names.group.as_str(), names.names.kind.as_str());
                    to_kind.add_all(of_kind(&kind_value(&kind)));
                }
            });
            cx.ports.caches.subscribe_dynamic(&f);
        })
    }

    /// Any other source: `start` is called once, and wakes objects at any time.
    pub fn source(start: impl FnOnce(Cx, Wake) + Send + 'static) -> Self {
        Self {
            start: Box::new(|cx, wake| start(cx.clone(), wake)),
        }
    }

    pub(crate) fn start(self, cx: &Cx, wake: Wake) {
        (self.start)(cx, wake);
    }
}
