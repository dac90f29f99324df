//! The controller of declared providers: one for each kind of each API, all the same.
//!
//! - It reconciles the eleven kinds of `operator.cluster.x-k8s.io/v1alpha2` and `management.cluster.x-k8s.io/v1alpha1`.
//! - It watches all of these, as providers depend on one another, and everything that it installed, to repair it.
//! - It owns what it installed, the Secrets that it keeps that in, and the provider's object in the inventory of clusterctl.
//! - Nothing is deleted that was not installed by it, or adopted; definitions and namespaces never are.

mod answer;
mod apply;
pub mod blocked;
mod declaration;
pub mod desired;
pub mod facts;
mod observe;
pub mod plan;
mod status;

use std::marker::PhantomData;
use std::sync::Arc;

use serde_json::Value;
use windlass_api_operator::{ProviderObject, finalizers, management, operator};
use windlass_controller_runtime::{
    Controller, ControllerEntry, Cx, Decision, Moment, ObjectKey, Outcome, Timestamp, Until, Watch,
};

use crate::names;
use crate::peers::{self, Peer};
use crate::ports::Operator;
use blocked::{LOOK_AGAIN, TRY_WITHIN};
use declaration::Declaration;
use desired::Question;
use facts::Facts;
use plan::Plan;
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

/// What was read: the declaration, and the facts that plans are made from.
#[derive(Debug)]
struct Observed {
    declaration: Declaration,
    facts: Facts,
}

impl<P: ProviderObject> Controller for Providers<P> {
    type Kind = P;
    type Observed = Observed;
    type Question = Question;
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
            operator.keep_inventory(&cx);
            operator.0.tracker.listen(P::API, P::TYPE, wake);
        }));
        // A declaration can go with or without the finalizer.
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

    async fn answer(&self, cx: &Cx, seen: Observed, question: Question) -> Observed {
        answer::answer(cx, &self.operator, seen, question).await
    }

    fn plan(&self, seen: &Observed, now: &Moment) -> Decision<Plan, Question> {
        plan::plan(&seen.facts, now)
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
    fn status(&self, plan: &Plan, done: &Done, now: Timestamp) -> Option<Value> {
        let status = status::status(&self.facts, plan, done, now)?;
        let paused = self.declaration.said.as_ref().is_ok_and(|said| said.paused);
        let is_stored = status::is_stored(&self.declaration.object.value()["status"], &status, paused);
        (!is_stored).then_some(status)
    }
}

impl Done {
    /// The driver's rule, with the problem that was found in place of the plan's. A failed action can end with an event, so that the
    /// problem says when to try again.
    fn outcome(&self, plan: &Plan) -> Outcome {
        let mut ended = Plan {
            requeue: plan.requeue,
            blocked: self.problem.as_ref().or(plan.blocked.as_ref()).cloned(),
            ..Plan::default()
        };
        if let Some(blocked) = &mut ended.blocked
            && blocked.until == Until::Event
            && !self.watches_started
        {
            blocked.until = Until::After(LOOK_AGAIN);
        }
        match Outcome::of(&ended, &()) {
            Outcome::Failed(error) => Outcome::Failed(error.within(TRY_WITHIN)),
            other => other,
        }
    }
}
