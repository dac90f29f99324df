//! Writes owner references of templates. The only writer.

use windlass_controller_runtime::{Cx, ReconcileError};

use super::plan::{Action, Plan};

/// Field manager of owner references on templates.
pub(super) const MANAGER: &str = "capi-clusterclass";

/// What became of the writes.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// The writes that failed.
    pub(super) failed: Option<ReconcileError>,
}

/// Tries every write: a template that is refused must not keep the others without an owner.
pub(super) async fn apply(cx: &Cx, plan: &Plan) -> Done {
    let mut failed: Vec<ReconcileError> = Vec::new();
    for Action::Own(intent) in &plan.actions {
        if let Err(error) = cx.writer().apply_value(MANAGER, intent).await {
            failed.push(error.into());
        }
    }
    Done {
        failed: ReconcileError::join(&failed),
    }
}

impl windlass_controller_runtime::Done for Done {
    fn failed(&self) -> Option<&ReconcileError> {
        self.failed.as_ref()
    }
}
