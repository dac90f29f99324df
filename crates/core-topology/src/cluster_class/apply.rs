//! Makes templates belong to their class. The only writer.

use windlass_kit::{Cx, ReconcileError};

use super::plan::Plan;

/// Field manager of owner references on templates.
pub(super) const MANAGER: &str = "capi-clusterclass";

/// What was done.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// Why the pass stopped, if it did.
    pub(super) failure: Option<ReconcileError>,
}

pub(super) async fn apply(cx: &Cx, plan: &Plan) -> Done {
    for intent in &plan.own {
        if let Err(error) = cx.writer().apply_value(MANAGER, intent).await {
            return Done {
                failure: Some(error.into()),
            };
        }
    }
    Done::default()
}

impl windlass_kit::Done for Done {
    fn failed(&self) -> Option<&ReconcileError> {
        self.failure.as_ref()
    }
}
