//! The Cluster topology controller: brings what a topology generates to what Cluster and ClusterClass say.
//!
//! All decisions are in crate `topology`; this reads for it, takes its steps, and says how it went. It wakes when the
//! Cluster, its class, a template of the class or a generated object changes, and never looks by itself.

mod apply;
mod observe;
mod plan;
mod status;
#[cfg(test)]
mod tests;
mod watches;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use windlass_api::Condition;
use windlass_api::core::Cluster;
use windlass_api::kind::{ApiKind as _, Conditioned as _};
use windlass_kit::{Controller, Cx, ObjectKey, Outcome, ReconcileError, Watch};

/// Reconciles `Cluster.spec.topology`.
#[derive(Debug, Default)]
pub(crate) struct ClusterTopology {
    known: observe::KnownFields,
}

impl Controller for ClusterTopology {
    type Kind = Cluster;
    type Observed = observe::Observed;
    type Plan = plan::Plan;
    type Done = apply::Done;

    const NAME: &'static str = "topology/cluster";
    const MANAGER: &'static str = windlass_topology::keys::FIELD_MANAGER;
    const STATUS_MANAGER: &'static str = "capi-topology-status";
    // The Cluster controller waits for all generated objects; nothing is left to this one.
    const FINALIZER: Option<&'static str> = None;

    fn conditions(object: &Cluster) -> &[Condition] {
        object.conditions()
    }

    fn cluster_of(object: &Cluster) -> Option<ObjectKey> {
        Some(object.key())
    }

    fn watches(&self) -> Vec<Watch> {
        watches::all()
    }

    async fn observe(&self, cx: &Cx, object: Arc<Cluster>) -> observe::Observed {
        observe::observe(cx, object, &self.known).await
    }

    fn plan(&self, seen: &observe::Observed, _now: Timestamp) -> plan::Plan {
        plan::plan(seen)
    }

    async fn apply(&self, cx: &Cx, seen: &observe::Observed, plan: &plan::Plan) -> apply::Done {
        apply::apply(cx, seen, plan).await
    }

    fn status(&self, seen: &observe::Observed, plan: &plan::Plan, done: &apply::Done, now: Timestamp) -> Option<Value> {
        status::status(seen, plan, done, now)
    }

    fn outcome(&self, _seen: &observe::Observed, plan: &plan::Plan, done: &apply::Done) -> Outcome {
        match (plan, &done.failure) {
            (_, Some(error)) => Outcome::Failed(error.into()),
            (plan::Plan::Unreadable(why), None) => Outcome::Failed(ReconcileError::new("Unreadable", why.clone())),
            // What is wrong with Cluster, class or templates is repaired there, and that wakes this controller.
            _ => Outcome::Settled,
        }
    }
}
