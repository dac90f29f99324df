//! The controller of declared providers: one for each kind of each API, all the same.
//!
//! - It reconciles the eleven kinds of `operator.cluster.x-k8s.io/v1alpha2` and `management.cluster.x-k8s.io/v1alpha1`.
//! - It watches all of these, as providers depend on one another, and everything that it installed, to repair it.
//! - It owns what it installed, the Secrets that it keeps that in, and the provider's object in the inventory of clusterctl.
//! - Nothing is deleted that was not installed by it, or adopted; definitions and namespaces never are.

mod apply;
mod declaration;
pub mod facts;
mod observe;
pub mod plan;
mod status;

use std::marker::PhantomData;
use std::sync::Arc;

use serde_json::Value;
use windlass_api_operator::{ProviderObject, finalizers, management, operator};
use windlass_kit::{
    Controller, ControllerEntry, Cx, Decision, Moment, NoQuestion, ObjectKey, Outcome, ReconcileError, Timestamp, Watch,
};

use crate::kept::Sealed;
use crate::names;
use crate::peers::{self, Peer};
use crate::ports::Operator;
use declaration::Declaration;
use facts::Facts;
use plan::{Again, Blocked, Intent, Plan};
use status::Done;

/// Reconciles one of the kinds.
#[derive(Debug)]
struct Providers<P> {
    operator: Operator,
    kind: PhantomData<fn() -> P>,
}

/// A kind that has a controller here. What is particular to it is compiled here, and not where it is named.
pub trait Provided: ProviderObject {
    /// Its controller.
    fn controller(operator: &Operator) -> ControllerEntry;
}

macro_rules! provide {
    ($kind:ty) => {
        impl Provided for $kind {
            fn controller(operator: &Operator) -> ControllerEntry {
                ControllerEntry::of(Providers::<Self> {
                    operator: operator.clone(),
                    kind: PhantomData,
                })
            }
        }
    };
}
peers::for_all_kinds!(provide);

/// What was read.
#[derive(Debug)]
struct Observed {
    declaration: Declaration,
    facts: Facts,
    intent: Result<Intent, Blocked>,
    prepared: Option<Result<Sealed, Blocked>>,
}

impl<P: ProviderObject> Controller for Providers<P> {
    type Kind = P;
    type Observed = Observed;
    type Question = NoQuestion;
    type Plan = Plan;
    type Done = Done;

    const NAME: &'static str = names::controller(P::API, P::TYPE);
    const MANAGER: &'static str = names::MANAGER;
    const STATUS_MANAGER: &'static str = names::STATUS_MANAGER;
    const FINALIZER: Option<&'static str> = Some(finalizers::PROVIDER);
    const FOLLOWS_CLUSTERS: bool = false;

    fn cluster_of(_object: &P) -> Option<ObjectKey> {
        None
    }

    fn pauses_itself(object: &P) -> Option<String> {
        let paused = object.declared().is_ok_and(|declared| declared.paused);
        paused.then(|| format!("{} spec.paused is set to true", P::KIND))
    }

    fn watches(&self) -> Vec<Watch> {
        let mut watches = peers::watches(peers::keys_but::<P>);
        let operator = self.operator.clone();
        watches.push(Watch::source(move |cx, wake| {
            operator.measure(cx.metrics());
            operator.0.tracker.listen(P::API, P::TYPE, wake);
        }));
        // However it went, with or without the finalizer.
        let operator = self.operator.clone();
        watches.push(Watch::map::<P>(move |_, old, new| {
            if let (Some(gone), None) = (old, new) {
                operator.forget(&Peer::of(gone));
            }
            Vec::new()
        }));
        watches
    }

    async fn observe(&self, cx: &Cx, object: Arc<P>) -> Observed {
        observe::observe(cx, &self.operator, Declaration::of(&*object)).await
    }

    fn plan(&self, seen: &Observed, now: &Moment) -> Decision<Plan, NoQuestion> {
        seen.plan(now.now()).into()
    }

    async fn apply(&self, cx: &Cx, seen: &Observed, plan: &Plan) -> Done {
        apply::apply(cx, &self.operator, seen, plan).await
    }

    fn status(&self, seen: &Observed, plan: &Plan, done: &Done, now: &Moment) -> Option<Value> {
        seen.status(plan, done, now.now())
    }

    fn outcome(&self, _seen: &Observed, plan: &Plan, done: &Done) -> Outcome {
        done.outcome(plan)
    }
}

impl Observed {
    fn plan(&self, now: Timestamp) -> Plan {
        let offered = self.prepared.as_ref().map(|prepared| match prepared {
            Ok(prepared) => Ok(prepared.release.clone()),
            Err(blocked) => Err(blocked.clone()),
        });
        plan::plan(&self.facts, &self.intent, offered.as_ref(), now)
    }

    fn status(&self, plan: &Plan, done: &Done, now: Timestamp) -> Option<Value> {
        let status = status::status(&self.facts, plan, done, now)?;
        // A process that has just begun would write it once more, as it does not know who wrote it.
        let paused = self.declaration.said.as_ref().is_ok_and(|said| said.paused);
        let is_told = status::is_told(&self.declaration.object.value()["status"], &status, paused);
        (!is_told).then_some(status)
    }
}

impl Done {
    fn outcome(&self, plan: &Plan) -> Outcome {
        let later = match plan.requeue {
            Some(after) => Outcome::RequeueAfter(after),
            None => Outcome::Settled,
        };
        let Some(problem) = self.failure.as_ref().or(plan.blocked.as_ref()) else {
            return later;
        };
        later.or(match problem.again {
            // Something that should be watched is not: look again soon.
            Again::Event if !self.eyes => Outcome::RequeueAfter(plan::LOOK_AGAIN),
            Again::Event => Outcome::Settled,
            Again::After(after) => Outcome::RequeueAfter(after),
            Again::Input | Again::Backoff => {
                let error = ReconcileError::new(problem.reason, problem.message.as_str());
                Outcome::Failed(error.within(plan::TRY_WITHIN))
            }
        })
    }
}
