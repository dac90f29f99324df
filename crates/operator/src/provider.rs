//! The controller of declared providers: one for each kind of each API, all the same.
//!
//! - It reconciles the eleven kinds of `operator.cluster.x-k8s.io/v1alpha2` and `management.cluster.x-k8s.io/v1alpha1`.
//! - It watches all of these, as providers depend on one another, and everything that it installed, to repair it.
//! - It owns what it installed, the Secrets that it keeps that in, and the provider's object in the inventory of clusterctl.
//! - Nothing is deleted that was not installed by it, or adopted; definitions and namespaces never are.

mod apply;
pub mod facts;
mod observe;
pub mod plan;
mod status;

use std::marker::PhantomData;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;
use windlass_api_operator::{ProviderObject, finalizers};
use windlass_kit::{Controller, ControllerEntry, Cx, ObjectKey, Outcome, ReconcileError, Timestamp, Watch, key_of};

use crate::kept::Sealed;
use crate::names;
use crate::peers;
use crate::ports::Operator;
use crate::tracker::Whose;
use facts::Facts;
use plan::{Again, Blocked, Intent, Plan};
use status::Done;

/// Reconciles one of the kinds.
#[derive(Debug)]
pub struct Providers<P> {
    operator: Operator,
    kind: PhantomData<fn() -> P>,
}

impl<P: ProviderObject> Providers<P> {
    /// The controller of this kind.
    pub fn entry(operator: &Operator) -> ControllerEntry {
        ControllerEntry::of(Self {
            operator: operator.clone(),
            kind: PhantomData,
        })
    }
}

/// What was read.
#[derive(Debug)]
pub struct Observed<P> {
    object: Arc<P>,
    facts: Facts,
    intent: Result<Intent, Blocked>,
    prepared: Option<Result<Sealed, Blocked>>,
}

/// Whose objects a declaration's are.
fn whose<P: ProviderObject>(object: &P) -> Whose {
    Whose {
        api: P::API,
        type_: P::TYPE,
        key: key_of(object.meta()),
    }
}

impl<P: ProviderObject> Controller for Providers<P> {
    type Kind = P;
    type Observed = Observed<P>;
    type Plan = Plan;
    type Done = Done;

    const NAME: &'static str = names::controller(P::API, P::TYPE);
    const MANAGER: &'static str = names::MANAGER;
    const STATUS_MANAGER: &'static str = names::STATUS_MANAGER;
    const FINALIZER: Option<&'static str> = Some(finalizers::PROVIDER);
    const FOLLOWS_CLUSTERS: bool = false;

    fn conditions(object: &P) -> &[Condition] {
        object.conditions()
    }

    fn cluster_of(_object: &P) -> Option<ObjectKey> {
        None
    }

    fn pauses_itself(object: &P) -> Option<String> {
        let paused = object.declared().is_ok_and(|declared| declared.paused);
        paused.then(|| format!("{} spec.paused is set to true", P::KIND))
    }

    fn watches(&self) -> Vec<Watch> {
        let tracker = self.operator.0.tracker.clone();
        let mut watches = peers::watches::<P>();
        watches.push(Watch::source(move |_, wake| tracker.listen(P::API, P::TYPE, wake)));
        watches
    }

    async fn observe(&self, cx: &Cx, object: Arc<P>) -> Observed<P> {
        observe::observe(cx, &self.operator, object).await
    }

    fn plan(&self, seen: &Observed<P>, now: Timestamp) -> Plan {
        let offered = seen.prepared.as_ref().map(|prepared| match prepared {
            Ok(prepared) => Ok(prepared.release.clone()),
            Err(blocked) => Err(blocked.clone()),
        });
        plan::plan(&seen.facts, &seen.intent, offered.as_ref(), now)
    }

    async fn apply(&self, cx: &Cx, seen: &Observed<P>, plan: &Plan) -> Done {
        apply::apply(cx, &self.operator, seen, plan).await
    }

    fn status(&self, seen: &Observed<P>, plan: &Plan, done: &Done, now: Timestamp) -> Option<Value> {
        status::status(&seen.facts, plan, done, now)
    }

    fn outcome(&self, _seen: &Observed<P>, plan: &Plan, done: &Done) -> Outcome {
        let later = match plan.requeue {
            Some(after) => Outcome::RequeueAfter(after),
            None => Outcome::Settled,
        };
        let Some(problem) = done.failure.as_ref().or(plan.blocked.as_ref()) else {
            return later;
        };
        later.or(match problem.again {
            Again::Event => Outcome::Settled,
            Again::After(after) => Outcome::RequeueAfter(after),
            Again::Backoff => Outcome::Failed(ReconcileError::new(problem.reason, problem.message.as_str())),
        })
    }
}
