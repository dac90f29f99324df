//! The MachineHealthCheck controller: marks Machines that have to be replaced.
//!
//! Watches MachineHealthChecks, Machines, Clusters and the Nodes of workload clusters. Writes the conditions
//! HealthCheckSucceeded, OwnerRemediated and ExternallyRemediated of Machines, remediation requests, and its own status.
//!
//! - It never replaces anything: owners do, when they are asked.
//! - It asks once; how far a replacement is, the owner says in OwnerRemediated, and that is left alone.
//! - Without a connection to the workload cluster nothing is concluded.

mod apply;
mod limits;
mod observe;
mod observed;
mod plan;
mod status;
mod watches;

use std::sync::Arc;

use serde_json::Value;
use windlass_api::core::MachineHealthCheck;
use windlass_api::meta::MetaExt as _;
use windlass_cluster_cache::Clusters;
use windlass_controller_runtime::{
    Controller, ControllerEntry, Cx, Decision, Moment, NoQuestion, ObjectKey, Part as _, Watch,
};

pub use apply::Done;
pub use limits::Limit;
pub use observed::{Observed, Target};
pub use plan::{Action, Plan, Saying};

use crate::shared::keys::managers;

/// The MachineHealthCheck controller.
pub struct MachineHealthCheckController {
    clusters: Clusters,
}

impl std::fmt::Debug for MachineHealthCheckController {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MachineHealthCheckController")
    }
}

/// The controller, ready to be run.
pub fn entry(clusters: Clusters) -> ControllerEntry {
    ControllerEntry::of(MachineHealthCheckController { clusters })
}

impl Controller for MachineHealthCheckController {
    type Kind = MachineHealthCheck;
    type Observed = Observed;
    type Question = NoQuestion;
    type Plan = Plan;
    type Done = Done;

    const NAME: &'static str = "machinehealthcheck";
    const MANAGER: &'static str = managers::MACHINE_HEALTH_CHECK;
    const STATUS_MANAGER: &'static str = "capi-machinehealthcheck-status";
    const FINALIZER: Option<&'static str> = None;

    fn cluster_of(object: &MachineHealthCheck) -> Option<ObjectKey> {
        Some(ObjectKey::new(
            object.metadata.namespace(),
            object.spec.cluster_name.as_str(),
        ))
    }

    fn watches(&self) -> Vec<Watch> {
        watches::watches(&self.clusters)
    }

    async fn observe(&self, cx: &Cx, object: Arc<MachineHealthCheck>) -> Observed {
        observe::observe(cx, &self.clusters, object).await
    }

    fn plan(&self, seen: &Observed, now: &Moment) -> Decision<Plan, NoQuestion> {
        plan::plan(seen, now).into()
    }

    async fn apply(&self, cx: &Cx, _: &Observed, plan: &Plan) -> Done {
        apply::apply(cx, plan).await
    }

    fn status(&self, seen: &Observed, plan: &Plan, done: &Done, now: &Moment) -> Option<Value> {
        Some(status::status(seen, plan, done, now.now())?.to_json())
    }
}
