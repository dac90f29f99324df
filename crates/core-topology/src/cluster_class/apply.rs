//! Writes owner references of templates. The only writer.

use windlass_controller_runtime::{Cx, ReconcileError};

use super::plan::{Action, Plan};

/// Field manager of owner references on templates.
pub(super) const MANAGER: &str = "capi-clusterclass";

/// What became of the writes.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// The first write that failed. Those after it were not tried.
    pub(super) failed: Option<ReconcileError>,
}

pub(super) async fn apply(cx: &Cx, plan: &Plan) -> Done {
    for Action::Own(intent) in &plan.actions {
        if let Err(error) = cx.writer().apply_value(MANAGER, intent).await {
            return Done {
                failed: Some(error.into()),
            };
        }
    }
    Done::default()
}

impl windlass_controller_runtime::Done for Done {
    fn failed(&self) -> Option<&ReconcileError> {
        self.failed.as_ref()
    }
}
