//! The types of a controller, behind traits. Code in this file is compiled once for each controller, and the rest of the driver
//! only once. So keep this thin.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use kube::Resource as _;
use serde_json::Value;
use windlass_api::codec::Stored as _;
use windlass_api::kind::Conditioned as _;
use windlass_meta::Moment;

use crate::cache::Cache;
use crate::controller::{Controller, Outcome};
use crate::cx::{Cx, Reads};
use crate::error::{ReconcileError, WriteError};
use crate::events::EventSubject as _;
use crate::guard::Effect;
use crate::object::{Gvk, ObjectKey, key_of};
use crate::plan::{Decision, Done as _, Note, Plan as _};
use crate::scope::Scope;
use crate::watch::{Filter, Watch};
use crate::writer::{Answer, Target, patched};

/// The constants of a controller.
#[derive(Debug)]
pub(super) struct Traits {
    pub(super) name: &'static str,
    pub(super) manager: &'static str,
    pub(super) status_manager: &'static str,
    pub(super) finalizer: Option<&'static str>,
    pub(super) status_pace: (Duration, bool),
    pub(super) observed_by_success: bool,
    pub(super) locked: bool,
    pub(super) follows_clusters: bool,
    pub(super) shows_paused: bool,
    pub(super) has_conditions: bool,
    /// The kind and resource name, for writes.
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
            observed_by_success: C::OBSERVED_BY_SUCCESS,
            locked: C::LOCKED,
            follows_clusters: C::FOLLOWS_CLUSTERS,
            shows_paused: C::SHOWS_PAUSED && C::Kind::HAS_CONDITIONS,
            has_conditions: C::Kind::HAS_CONDITIONS,
            target: Target::of::<C::Kind>(ObjectKey::default()),
        }
    }

    pub(super) fn gvk(&self) -> &Gvk {
        &self.target.gvk
    }
}

/// Called with the events of the objects that a controller reconciles.
pub(super) type OnEvent = dyn Fn(ObjectKey, bool, Option<Effect>) + Send + Sync;

/// Finds the objects that a cluster pauses.
pub(super) type OfCluster = Box<dyn Fn(&ObjectKey) -> Vec<ObjectKey> + Send + Sync>;

/// A controller without its types.
pub(super) trait AnyController: Send + Sync {
    fn traits(&self) -> &Traits;
    /// The cached object with this key.
    fn get(self: Arc<Self>, key: &ObjectKey) -> Option<Box<dyn Subject>>;
    /// The keys of all cached objects that the controller reconciles.
    fn keys(&self) -> Vec<ObjectKey>;
    /// Decodes an object from a server's answer.
    fn decode(self: Arc<Self>, target: &Target, answer: &Answer) -> Result<Box<dyn Subject>, WriteError>;
    /// Calls `f` on every event, with the key of the object, whether the controller reconciles it, and what the event shows.
    fn subscribe(&self, f: Box<OnEvent>);
    /// The filter that drops wake-ups of objects that the controller does not reconcile. Objects that are not cached pass: they
    /// may be deleted, with cleanup left to do.
    fn filter(&self) -> Option<Filter>;
    /// Finds the objects of a cluster, as the controller assigns them. Looks at all objects, as clusters are rarely paused.
    fn of_cluster(&self) -> OfCluster;
    fn watches(&self) -> Vec<Watch>;
}

/// An object that is reconciled, without its type.
pub(super) trait Subject: Send + Sync {
    fn meta(&self) -> &ObjectMeta;
    fn conditions(&self) -> &[Condition];
    /// `.status` as it is stored.
    fn status(&self) -> Value;
    /// Whether the controller reconciles it.
    fn is_concerned(&self) -> bool;
    fn cluster(&self) -> Option<ObjectKey>;
    fn pauses_itself(&self) -> Option<String>;
    fn false_while_paused(&self) -> Option<&'static str>;
    /// A reference for events.
    fn reference(&self) -> ObjectReference;
    /// Runs the steps of the controller.
    fn reconcile<'a>(&'a self, cx: &'a Cx) -> BoxFuture<'a, Ended>;
}

/// The result of the steps.
pub(super) struct Ended {
    pub(super) outcome: Outcome,
    pub(super) status: Option<Value>,
    /// What was planned; none when the reconcile ended before.
    pub(super) planned: Option<Planned>,
    /// The earliest time at which a rule of the plan or of the status changes its answer.
    pub(super) deadline: Option<Timestamp>,
}

/// A plan, as far as it is reported.
pub(super) struct Planned {
    pub(super) notes: Vec<Note>,
    /// Whether the whole plan was applied.
    pub(super) applied: bool,
}

impl Ended {
    fn early(outcome: Outcome) -> Self {
        Self {
            outcome,
            status: None,
            planned: None,
            deadline: None,
        }
    }
}

struct Typed<C: Controller> {
    controller: C,
    traits: Traits,
    objects: Cache<C::Kind>,
    scope: Scope,
}

/// Hides the types of a controller. Starts the cache of its kind.
pub(super) fn erase<C: Controller>(controller: C, cx: &Cx) -> Arc<dyn AnyController> {
    Arc::new(Typed {
        controller,
        traits: Traits::of::<C>(),
        objects: Cache::new(cx.ports.caches.typed::<C::Kind>(), None, None),
        scope: cx.scope().clone(),
    })
}

fn concerns<C: Controller>(scope: &Scope, object: &C::Kind) -> bool {
    scope.reconciles(object.meta()) && C::CONCERNS.is_none_or(|concerns| concerns(object))
}

fn reads(cx: &Cx) -> BoxFuture<'_, Reads> {
    Box::pin(cx.settle_reads())
}

impl<C: Controller> AnyController for Typed<C> {
    fn traits(&self) -> &Traits {
        &self.traits
    }

    fn get(self: Arc<Self>, key: &ObjectKey) -> Option<Box<dyn Subject>> {
        let object = self.objects.get(key)?;
        Some(Box::new(Turn { of: self, object }))
    }

    fn keys(&self) -> Vec<ObjectKey> {
        let all = self.objects.all();
        let ours = all.iter().filter(|object| concerns::<C>(&self.scope, object));
        ours.map(|object| key_of(object.meta())).collect()
    }

    fn decode(self: Arc<Self>, target: &Target, answer: &Answer) -> Result<Box<dyn Subject>, WriteError> {
        let object = patched::<C::Kind>(target, answer)?;
        Ok(Box::new(Turn { of: self, object }))
    }

    fn subscribe(&self, f: Box<OnEvent>) {
        let scope = self.scope.clone();
        self.objects.subscribe(move |change| {
            if let Some(object) = change.object() {
                let old = change.old.as_deref().map(C::Kind::meta);
                let effect = Effect::of(old, change.new.as_deref().map(C::Kind::meta));
                f(key_of(object.meta()), concerns::<C>(&scope, object), effect);
            }
        });
    }

    fn filter(&self) -> Option<Filter> {
        if C::CONCERNS.is_none() && self.scope.watch_filter.is_none() {
            return None;
        }
        let (scope, objects) = (self.scope.clone(), self.objects.clone());
        // An object that is not in the cache yet wakes the controller by itself when it comes.
        Some(Arc::new(move |key| {
            objects.get(key).is_some_and(|object| concerns::<C>(&scope, &object))
        }))
    }

    fn of_cluster(&self) -> OfCluster {
        let objects = self.objects.clone();
        Box::new(move |cluster| {
            let mut all = objects.all();
            all.retain(|object| C::cluster_of(object).as_ref() == Some(cluster));
            all.iter().map(|object| key_of(object.meta())).collect()
        })
    }

    fn watches(&self) -> Vec<Watch> {
        self.controller.watches()
    }
}

/// One reconcile: the object and its controller.
struct Turn<C: Controller> {
    of: Arc<Typed<C>>,
    object: Arc<C::Kind>,
}

impl<C: Controller> Subject for Turn<C> {
    fn meta(&self) -> &ObjectMeta {
        self.object.meta()
    }

    fn conditions(&self) -> &[Condition] {
        self.object.conditions()
    }

    fn status(&self) -> Value {
        self.object.to_json()["status"].take()
    }

    fn is_concerned(&self) -> bool {
        concerns::<C>(&self.of.scope, &self.object)
    }

    fn cluster(&self) -> Option<ObjectKey> {
        C::cluster_of(&self.object)
    }

    fn pauses_itself(&self) -> Option<String> {
        C::pauses_itself(&self.object)
    }

    fn false_while_paused(&self) -> Option<&'static str> {
        C::false_while_paused(&self.object)
    }

    fn reference(&self) -> ObjectReference {
        self.object.reference()
    }

    fn reconcile<'a>(&'a self, cx: &'a Cx) -> BoxFuture<'a, Ended> {
        Box::pin(async move {
            let controller = &self.of.controller;
            let (seen, plan, deadline) = match self.decide(cx).await {
                Ok(decided) => decided,
                Err(outcome) => return Ended::early(outcome),
            };
            let done = controller.apply(cx, &seen, &plan).await;
            let outcome = controller.outcome(&seen, &plan, &done);
            let now = Moment::at(cx.now());
            let status = controller.status(&seen, &plan, &done, &now);
            Ended {
                outcome,
                status,
                planned: Some(Planned {
                    notes: plan.notes().to_vec(),
                    applied: done.failed().is_none(),
                }),
                deadline: [deadline, now.next_deadline()].into_iter().flatten().min(),
            }
        })
    }
}

/// The observation, the plan, and the deadline of both.
type Decided<C> = (<C as Controller>::Observed, <C as Controller>::Plan, Option<Timestamp>);

impl<C: Controller> Turn<C> {
    /// Observes and plans, with the answers to the plan's questions. The error is the outcome of a reconcile that ends without a
    /// plan.
    async fn decide(&self, cx: &Cx) -> Result<Decided<C>, Outcome> {
        let controller = &self.of.controller;
        'observe: loop {
            let mut seen = controller.observe(cx, self.object.clone()).await;
            for asked in 0..=C::QUESTIONS {
                match reads(cx).await {
                    Reads::Good => {}
                    Reads::Again => continue 'observe,
                    Reads::Late(error) => return Err(Outcome::Failed(error.into())),
                    Reads::Stopping => return Err(Outcome::Settled),
                }
                match self.plan(&seen, cx.now()) {
                    (Decision::Plan(plan), deadline) => return Ok((seen, plan, deadline)),
                    (Decision::Ask(question), _) if asked < C::QUESTIONS => {
                        seen = controller.answer(cx, seen, question).await;
                    }
                    (Decision::Ask(_), _) => break,
                }
            }
            return Err(Outcome::Failed(unanswered(C::QUESTIONS)));
        }
    }

    fn plan(&self, seen: &C::Observed, now: Timestamp) -> (Decision<C::Plan, C::Question>, Option<Timestamp>) {
        let now = Moment::at(now);
        let decision = self.of.controller.plan(seen, &now);
        (decision, now.next_deadline())
    }
}

/// The error for a plan that asks again after its questions were answered. It must decide even if the answer is that something
/// cannot be read.
fn unanswered(questions: usize) -> ReconcileError {
    ReconcileError::new(
        "Unanswered",
        format!("the plan still asks for facts after {questions} answers: this is a defect of the controller"),
    )
}
