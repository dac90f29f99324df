//! The DevMachineTemplate controller: reports the capacity of a machine of the template, for autoscalers that scale from zero.

use std::sync::Arc;

use serde_json::{Value, json};
use windlass_api_ext::infrastructure::DevMachineTemplate;
use windlass_controller_runtime::{
    Controller, ControllerEntry, Cx, Decision, Moment, NoQuestion, ReconcileError, Watch,
};

/// Reconciles DevMachineTemplates.
#[derive(Debug)]
struct DevMachineTemplates;

/// The controller, to run.
pub fn entry() -> ControllerEntry {
    ControllerEntry::of(DevMachineTemplates)
}

/// What is written: the status with the capacity of a simulated machine.
#[derive(Debug)]
struct Plan {
    status: Value,
}

impl windlass_controller_runtime::Plan for Plan {}

impl Controller for DevMachineTemplates {
    type Kind = DevMachineTemplate;
    type Observed = Arc<DevMachineTemplate>;
    type Question = NoQuestion;
    type Plan = Plan;
    type Done = Option<ReconcileError>;
    const NAME: &'static str = "devmachinetemplate";
    const MANAGER: &'static str = crate::dev_machine::MANAGER;
    const STATUS_MANAGER: &'static str = "capd-manager-status";
    const FINALIZER: Option<&'static str> = None;

    fn watches(&self) -> Vec<Watch> {
        Vec::new()
    }

    async fn observe(&self, _: &Cx, object: Arc<DevMachineTemplate>) -> Arc<DevMachineTemplate> {
        object
    }

    fn plan(&self, _: &Arc<DevMachineTemplate>, _: &Moment) -> Decision<Plan, NoQuestion> {
        let status = json!({ "capacity": { "cpu": "2", "memory": "8Gi" } });
        Plan { status }.into()
    }

    async fn apply(&self, cx: &Cx, seen: &Arc<DevMachineTemplate>, plan: &Plan) -> Option<ReconcileError> {
        let applied = cx
            .writer()
            .apply_status(Self::STATUS_MANAGER, &**seen, plan.status.clone())
            .await;
        applied.err().map(ReconcileError::from)
    }

    fn status(&self, _: &Arc<DevMachineTemplate>, _: &Plan, _: &Option<ReconcileError>, _: &Moment) -> Option<Value> {
        // This status has no conditions for the driver to keep, so it is written as an ordinary action.
        None
    }
}
