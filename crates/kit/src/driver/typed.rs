//! The types of a controller, behind traits. Everything in here is compiled once for each controller, everything else of the driver
//! only once: keep this thin.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use kube::Resource as _;
use serde_json::Value;
use windlass_api::codec::Stored as _;

use crate::cache::Cache;
use crate::controller::{Controller, Outcome};
use crate::cx::{Cx, Reads};
use crate::error::WriteError;
use crate::object::{Gvk, Object, ObjectKey, key_of};
use crate::watch::{Filter, Watch};
use crate::writer::{Answer, Target, patched};

/// What a controller says of itself.
#[derive(Debug)]
pub(super) struct Traits {
    pub(super) name: &'static str,
    pub(super) manager: &'static str,
    pub(super) status_manager: &'static str,
    pub(super) finalizer: Option<&'static str>,
    pub(super) status_pace: (Duration, bool),
    pub(super) locked: bool,
    pub(super) follows_clusters: bool,
    /// Where objects of the kind are written.
    pub(super) target: Target,
}

impl Traits {
    fn of<C: Controller>() -> Self {
        Self {
            name: C::NAME,
            manager: C::MANAGER,
            status_manager: C::STATUS_MANAGER,
            finalizer: C::FINALIZER,
            status_pace: (C::STATUS_PACE, C::INITIALIZATION_IS_AWAITED),
            locked: C::LOCKED,
            follows_clusters: C::FOLLOWS_CLUSTERS,
            target: Target::of::<C::Kind>(ObjectKey::default()),
        }
    }

    pub(super) fn gvk(&self) -> &Gvk {
        &self.target.gvk
    }
}

/// Finds the objects of a cluster by its namespace and name.
pub(super) type OfCluster = Box<dyn Fn(&str, &str) -> Vec<ObjectKey> + Send + Sync>;

/// A controller without its types.
pub(super) trait AnyController: Send + Sync {
    fn traits(&self) -> &Traits;
    /// The object with this key, as it is cached.
    fn get(self: Arc<Self>, key: &ObjectKey) -> Option<Box<dyn Subject>>;
    /// An object as the server answered.
    fn decode(self: Arc<Self>, target: &Target, answer: &Answer) -> Result<Box<dyn Subject>, WriteError>;
    /// Calls `f` with the key of an object with every event, and whether it is one of the controller's.
    fn subscribe(&self, f: Box<dyn Fn(ObjectKey, bool) + Send + Sync>);
    /// Drops wake-ups of objects that are none of the controller's. What is not cached passes: it may be gone, and something of it
    /// left.
    fn filter(&self) -> Option<Filter>;
    /// The objects of a cluster.
    fn of_cluster(&self) -> OfCluster;
    fn watches(&self) -> Vec<Watch>;
}

/// An object that is reconciled, without its type.
pub(super) trait Subject: Send + Sync {
    fn meta(&self) -> &ObjectMeta;
    fn conditions(&self) -> &[Condition];
    /// `.status` as it is.
    fn status(&self) -> Value;
    /// Whether it is one of the controller's.
    fn is_concerned(&self) -> bool;
    fn cluster(&self) -> Option<ObjectKey>;
    fn pauses_itself(&self) -> Option<String>;
    /// The steps of the controller.
    fn reconcile<'a>(&'a self, cx: &'a Cx) -> BoxFuture<'a, Ended>;
}

/// What the steps gave.
pub(super) struct Ended {
    pub(super) outcome: Outcome,
    pub(super) status: Option<Value>,
}

impl Ended {
    fn early(outcome: Outcome) -> Self {
        Self { outcome, status: None }
    }
}

struct Typed<C: Controller> {
    controller: C,
    traits: Traits,
    objects: Cache<C::Kind>,
}

/// Hides the types of a controller. Its cache starts with this.
pub(super) fn erase<C: Controller>(controller: C, cx: &Cx) -> Arc<dyn AnyController> {
    Arc::new(Typed {
        controller,
        traits: Traits::of::<C>(),
        objects: Cache::new(cx.ports.caches.typed::<C::Kind>(), None, None),
    })
}

fn concerns<C: Controller>(object: &C::Kind) -> bool {
    C::CONCERNS.is_none_or(|concerns| concerns(object))
}

fn reads(cx: &Cx) -> BoxFuture<'_, Reads> {
    Box::pin(cx.settle_reads())
}

fn keys<K: Object>(objects: &[Arc<K>]) -> Vec<ObjectKey> {
    objects.iter().map(|object| key_of(object.meta())).collect()
}

impl<C: Controller> AnyController for Typed<C> {
    fn traits(&self) -> &Traits {
        &self.traits
    }

    fn get(self: Arc<Self>, key: &ObjectKey) -> Option<Box<dyn Subject>> {
        let object = self.objects.get(key)?;
        Some(Box::new(Turn { of: self, object }))
    }

    fn decode(self: Arc<Self>, target: &Target, answer: &Answer) -> Result<Box<dyn Subject>, WriteError> {
        let object = patched::<C::Kind>(target, answer)?;
        Ok(Box::new(Turn { of: self, object }))
    }

    fn subscribe(&self, f: Box<dyn Fn(ObjectKey, bool) + Send + Sync>) {
        self.objects.subscribe(move |change| {
            if let Some(object) = change.object() {
                f(key_of(object.meta()), concerns::<C>(object));
            }
        });
    }

    fn filter(&self) -> Option<Filter> {
        let concerns = C::CONCERNS?;
        let objects = self.objects.clone();
        Some(Arc::new(move |key| {
            objects.get(key).is_none_or(|object| concerns(&object))
        }))
    }

    fn of_cluster(&self) -> OfCluster {
        let objects = self.objects.clone();
        Box::new(move |namespace, name| keys(&objects.by_cluster(namespace, name)))
    }

    fn watches(&self) -> Vec<Watch> {
        self.controller.watches()
    }
}

/// One object, and who reconciles it.
struct Turn<C: Controller> {
    of: Arc<Typed<C>>,
    object: Arc<C::Kind>,
}

impl<C: Controller> Subject for Turn<C> {
    fn meta(&self) -> &ObjectMeta {
        self.object.meta()
    }

    fn conditions(&self) -> &[Condition] {
        C::conditions(&self.object)
    }

    fn status(&self) -> Value {
        self.object.to_json()["status"].take()
    }

    fn is_concerned(&self) -> bool {
        concerns::<C>(&self.object)
    }

    fn cluster(&self) -> Option<ObjectKey> {
        C::cluster_of(&self.object)
    }

    fn pauses_itself(&self) -> Option<String> {
        C::pauses_itself(&self.object)
    }

    fn reconcile<'a>(&'a self, cx: &'a Cx) -> BoxFuture<'a, Ended> {
        let controller = &self.of.controller;
        Box::pin(async move {
            let seen = loop {
                let seen = controller.observe(cx, self.object.clone()).await;
                match reads(cx).await {
                    Reads::Good => break seen,
                    Reads::Again => {}
                    Reads::Late(error) => return Ended::early(Outcome::Failed(error.into())),
                    Reads::Stopping => return Ended::early(Outcome::Settled),
                }
            };
            let plan = controller.plan(&seen, cx.now());
            let done = controller.apply(cx, &seen, &plan).await;
            let outcome = controller.outcome(&seen, &plan, &done);
            let status = controller.status(&seen, &plan, &done, cx.now());
            Ended { outcome, status }
        })
    }
}
