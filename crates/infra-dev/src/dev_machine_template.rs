//! The DevMachineTemplate controller: says what a machine of the template offers, for autoscalers that scale from zero.

use std::sync::Arc;

use serde_json::{Value, json};
use windlass_api_ext::infrastructure::DevMachineTemplate;
use windlass_kit::{Controller, ControllerEntry, Cx, Decision, Moment, NoQuestion, ReconcileError, Watch};

/// Reconciles DevMachineTemplates.
#[derive(Debug)]
struct DevMachineTemplates;

/// The controller, to run.
pub fn entry() -> ControllerEntry {
    ControllerEntry::of(DevMachineTemplates)
}

/// What a simulated machine claims to have.
fn capacity() -> Value {
    json!({ "capacity": { "cpu": "2", "memory": "8Gi" } })
}

impl Controller for DevMachineTemplates {
    type Kind = DevMachineTemplate;
    type Observed = Arc<DevMachineTemplate>;
    type Question = NoQuestion;
    type Plan = ();
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

    fn plan(&self, _: &Arc<DevMachineTemplate>, _: &Moment) -> Decision<(), NoQuestion> {
        ().into()
    }

    async fn apply(&self, cx: &Cx, seen: &Arc<DevMachineTemplate>, (): &()) -> Option<ReconcileError> {
        let applied = cx
            .writer()
            .apply_status(Self::STATUS_MANAGER, &**seen, capacity())
            .await;
        applied.err().map(ReconcileError::from)
    }

    fn status(&self, _: &Arc<DevMachineTemplate>, (): &(), _: &Option<ReconcileError>, _: &Moment) -> Option<Value> {
        // This status has no conditions for the driver to keep, so it is written as an ordinary action.
        None
    }
}
