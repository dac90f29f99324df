//! The MachinePool controller.
//!
//! A MachinePool is machines that the infrastructure manages as one. This controller makes the pool the controller of its bootstrap
//! configuration and its infrastructure object, takes over what those report (data Secret, provider IDs, replicas), finds the Nodes by
//! provider ID and deletes those whose machine is gone. Where the provider has an object for each machine (`status.infrastructureMachineKind`),
//! it makes a Machine for each of them: then users see, drain and delete single machines of the pool.
//!
//! How many machines there are and how they are replaced is decided by the infrastructure provider.

mod apply;
mod desired;
mod facts;
mod observe;
mod plan;
mod status;
#[cfg(test)]
#[allow(clippy::needless_pass_by_value, reason = "cases hand in literals")]
mod tests;
mod watches;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use windlass_api::core::MachinePool;
use windlass_api::finalizers;
use windlass_api::meta::MetaExt as _;
use windlass_cluster_cache::Clusters;
use windlass_controller_runtime::{
    Controller, ControllerEntry, Cx, Decision, Moment, NoQuestion, ObjectKey, Part as _, Watch,
};

use apply::Done;
use observe::Observed;
use plan::{Action, Plan};

use crate::shared::keys::managers;

/// Reconciles MachinePools.
#[derive(Debug)]
struct MachinePoolController {
    clusters: Clusters,
}

/// The controller, to run.
pub fn entry(clusters: Clusters) -> ControllerEntry {
    ControllerEntry::of(MachinePoolController { clusters })
}

impl Controller for MachinePoolController {
    type Kind = MachinePool;
    type Observed = Observed;
    type Question = NoQuestion;
    type Plan = Plan;
    type Done = Done;
    const NAME: &'static str = "machinepool";
    const MANAGER: &'static str = managers::MACHINE_POOL;
    const STATUS_MANAGER: &'static str = "capi-machinepool-status";
    const FINALIZER: Option<&'static str> = Some(finalizers::MACHINE_POOL);
    const STATUS_PACE: Duration = Duration::from_millis(300);

    fn cluster_of(object: &MachinePool) -> Option<ObjectKey> {
        Some(ObjectKey::new(
            object.metadata.namespace(),
            object.spec.cluster_name.as_str(),
        ))
    }

    fn watches(&self) -> Vec<Watch> {
        watches::watches(&self.clusters)
    }

    async fn observe(&self, cx: &Cx, object: Arc<MachinePool>) -> Observed {
        observe::observe(cx, &self.clusters, object).await
    }

    fn plan(&self, seen: &Observed, now: &Moment) -> Decision<Plan, NoQuestion> {
        plan::plan(seen, now).into()
    }

    async fn apply(&self, cx: &Cx, seen: &Observed, plan: &Plan) -> Done {
        apply::apply(cx, &self.clusters, seen, plan).await
    }

    fn status(&self, seen: &Observed, plan: &Plan, done: &Done, now: &Moment) -> Option<Value> {
        let released = plan.actions.contains(&Action::RemoveFinalizer) && done.failed.is_none();
        (!released).then(|| status::status(seen, plan, done, now).to_json())
    }
}
