//! The Cluster topology controller: brings what a topology generates to what Cluster and ClusterClass say.
//!
//! Crate `topology` decides. This controller reads for it, applies its steps and reports the result. Changes of the Cluster, its class, a
//! template of the class or a generated object wake it; nothing is polled.

mod apply;
mod dry_run;
mod hooks;
pub(crate) mod memory;
pub(crate) mod observe;
mod plan;
pub(crate) mod preview;
mod status;
#[cfg(test)]
mod tests;
pub(crate) mod watches;

use std::sync::Arc;

use serde_json::Value;
use windlass_api::conditions::TOPOLOGY_RECONCILED;
use windlass_api::core::Cluster;
use windlass_api::kind::ApiKind as _;
use windlass_controller_runtime::{Controller, Cx, Decision, Moment, ObjectKey, Watch};
use windlass_runtime_client::Extensions;

/// Reconciles `Cluster.spec.topology`.
#[derive(Debug)]
pub(crate) struct ClusterTopology {
    memory: memory::Memory,
    extensions: Extensions,
}

impl ClusterTopology {
    pub(crate) fn new(extensions: Extensions) -> Self {
        Self {
            memory: memory::Memory::default(),
            extensions,
        }
    }
}

impl Controller for ClusterTopology {
    type Kind = Cluster;
    type Observed = observe::Observed;
    type Question = observe::Question;
    type Plan = plan::Plan;
    type Done = apply::Done;

    const NAME: &'static str = "topology/cluster";
    const MANAGER: &'static str = windlass_topology::keys::FIELD_MANAGER;
    const STATUS_MANAGER: &'static str = "capi-topology-status";
    // The Cluster controller waits for all generated objects; nothing is left to this one.
    const FINALIZER: Option<&'static str> = None;
    // The controller of the kind in the core does.
    const SHOWS_PAUSED: bool = false;
    // A class has up to 1,000 patches with two extensions each, which are asked one after the other.
    const QUESTIONS: usize = 2_010;

    fn cluster_of(object: &Cluster) -> Option<ObjectKey> {
        Some(object.key())
    }

    fn false_while_paused(object: &Cluster) -> Option<&'static str> {
        object.spec.topology.as_ref().map(|_| TOPOLOGY_RECONCILED)
    }

    fn watches(&self) -> Vec<Watch> {
        watches::all()
    }

    async fn observe(&self, cx: &Cx, object: Arc<Cluster>) -> observe::Observed {
        observe::observe(cx, object, &self.memory, &self.extensions).await
    }

    async fn answer(&self, cx: &Cx, seen: observe::Observed, question: observe::Question) -> observe::Observed {
        observe::answer(cx, seen, question, &self.memory, &self.extensions).await
    }

    fn plan(&self, seen: &observe::Observed, now: &Moment) -> Decision<plan::Plan, observe::Question> {
        plan::plan(seen, now)
    }

    async fn apply(&self, cx: &Cx, seen: &observe::Observed, plan: &plan::Plan) -> apply::Done {
        apply::apply(cx, seen, plan, &self.memory).await
    }

    fn status(&self, seen: &observe::Observed, plan: &plan::Plan, done: &apply::Done, now: &Moment) -> Option<Value> {
        status::status(seen, plan, done, now.now())
    }
}
