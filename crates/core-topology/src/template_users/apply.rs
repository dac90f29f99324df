//! Writes finalizers and deletes templates. The only writer.

use windlass_controller_runtime::{Cx, ReconcileError, WriteError};

use super::plan::{Action, Plan};
use super::{FAILED, MANAGER, TemplateUser};

/// What became of the writes.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// The first write that failed. Those after it were not tried.
    pub(super) failed: Option<ReconcileError>,
}

pub(super) async fn apply<K: TemplateUser>(cx: &Cx, object: &K, plan: &Plan) -> Done {
    for action in &plan.actions {
        if let Err(error) = carry_out(cx, object, action).await {
            return Done {
                failed: Some(ReconcileError::new(FAILED, error.to_string())),
            };
        }
    }
    Done::default()
}

async fn carry_out<K: TemplateUser>(cx: &Cx, object: &K, action: &Action) -> Result<(), WriteError> {
    let writer = cx.writer();
    match action {
        Action::AddFinalizer => writer.ensure_finalizer(MANAGER, object, K::FINALIZER).await.map(drop),
        Action::DeleteTemplate(template) => writer.delete_value(template).await.map(drop),
        Action::RemoveFinalizer => writer.remove_finalizer(MANAGER, object, K::FINALIZER).await,
    }
}

impl windlass_controller_runtime::Done for Done {
    fn failed(&self) -> Option<&ReconcileError> {
        self.failed.as_ref()
    }
}
