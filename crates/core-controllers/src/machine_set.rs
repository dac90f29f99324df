//! The MachineSet controller: keeps a number of Machines of one template.
//!
//! Watches MachineSets, their Machines, the Cluster, its control plane and the templates. Writes Machines, their bootstrap and
//! infrastructure objects (creation; labels and annotations afterwards), the condition OwnerRemediated of its Machines,
//! and its own status.
//!
//! - A Machine is made before what it refers to, so nothing is ever left without an owner; an interrupted creation is
//!   completed from the Machine.
//! - Machines that are being deleted count until they are gone: a set never has more Machines than replicas.

mod apply;
mod desired;
mod observe;
mod observed;
mod plan;
mod status;
mod watches;

use std::sync::Arc;

use serde_json::Value;
use windlass_api::core::MachineSet;
use windlass_api::meta::MetaExt as _;
use windlass_controller_runtime::{
    Controller, ControllerEntry, Cx, Decision, Moment, NoQuestion, ObjectKey, Part as _, Watch,
};

pub use crate::shared::preflight::PreflightChecks;
pub(crate) use desired::{default_replicas, replicas_patch};
pub use observed::Observed;
pub(crate) use plan::in_deletion_order;
pub use plan::{Action, Beginning, NewMachine, Obstacle, Plan};
pub use status::Done;

use crate::shared::keys::{finalizers, managers};

/// The MachineSet controller.
#[derive(Debug)]
struct MachineSetController {
    checks: PreflightChecks,
}

/// The controller, ready to be run. `checks` run before Machines are made or replaced.
pub fn entry(checks: PreflightChecks) -> ControllerEntry {
    ControllerEntry::of(MachineSetController { checks })
}

impl Controller for MachineSetController {
    type Kind = MachineSet;
    type Observed = Observed;
    type Question = NoQuestion;
    type Plan = Plan;
    type Done = Done;

    const NAME: &'static str = "machineset";
    const MANAGER: &'static str = managers::MACHINE_SET;
    const STATUS_MANAGER: &'static str = "capi-machineset-status";
    const FINALIZER: Option<&'static str> = Some(finalizers::MACHINE_SET);

    fn cluster_of(object: &MachineSet) -> Option<ObjectKey> {
        Some(ObjectKey::new(
            object.metadata.namespace(),
            object.spec.cluster_name.as_str(),
        ))
    }

    fn watches(&self) -> Vec<Watch> {
        watches::watches()
    }

    async fn observe(&self, cx: &Cx, object: Arc<MachineSet>) -> Observed {
        observe::observe(cx, self.checks.clone(), object).await
    }

    fn plan(&self, seen: &Observed, _: &Moment) -> Decision<Plan, NoQuestion> {
        plan::plan(seen).into()
    }

    async fn apply(&self, cx: &Cx, seen: &Observed, plan: &Plan) -> Done {
        apply::apply(cx, seen, plan).await
    }

    fn status(&self, seen: &Observed, plan: &Plan, done: &Done, now: &Moment) -> Option<Value> {
        let released = plan.actions.contains(&Action::RemoveFinalizer) && done.failed.is_none();
        if released || seen.awaits_replicas() {
            return None;
        }
        Some(status::status(seen, plan, done, now).to_json())
    }
}
