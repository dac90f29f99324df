//! Writes revisions and the annotations of Clusters. The only writer.

use serde_json::{Value, json};
use windlass_api::core::Cluster;
use windlass_api::kind::ApiKind as _;
use windlass_api_ext::rollouts::{ClusterClassRollout, annotations};
use windlass_controller_runtime::{Cx, ObjectKey, ReconcileError, WriteError};

use super::FINALIZER;
use super::observe::Observed;
use super::plan::{Action, Plan};

/// The field manager of everything that this controller writes.
pub(super) const MANAGER: &str = "windlass-class-rollout";

/// How many failures are reported.
const SHOWN: usize = 3;

/// What became of the writes.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// The writes that failed. A Cluster that is refused keeps no other one from its revision.
    pub(super) failed: Option<ReconcileError>,
}

pub(super) async fn apply(cx: &Cx, seen: &Observed, plan: &Plan) -> Done {
    let mut failed = Vec::new();
    for action in &plan.actions {
        // No Cluster may name a revision that is not kept, and the rollout stays until all Clusters are released.
        let depends = matches!(action, Action::RemoveFinalizer | Action::Delete(_) | Action::Resumed);
        if depends && !failed.is_empty() {
            continue;
        }
        if let Err(error) = carry_out(cx, seen, action).await {
            if failed.len() < SHOWN {
                failed.push(error.into());
            }
            if matches!(action, Action::Keep(_)) {
                break;
            }
        }
    }
    Done {
        failed: ReconcileError::join(&failed),
    }
}

async fn carry_out(cx: &Cx, seen: &Observed, action: &Action) -> Result<(), WriteError> {
    let writer = cx.writer();
    match action {
        Action::Keep(revision) => writer.apply_value(MANAGER, revision).await.map(drop),
        Action::Assign { cluster, uid, revision } => {
            // What its objects were brought to before does not count for this one.
            let values = json!({annotations::CLASS_REVISION: revision, annotations::RECONCILED_CLASS_REVISION: null});
            annotate(cx, cluster, uid, &values).await
        }
        Action::Release { cluster, uid } => {
            let values = json!({annotations::CLASS_REVISION: null, annotations::RECONCILED_CLASS_REVISION: null});
            annotate(cx, cluster, uid, &values).await
        }
        Action::Delete(revision) => writer.delete(&**revision).await.map(drop),
        Action::Resumed => {
            let patch = json!({"metadata": {"annotations": {annotations::RESUME: null}}});
            let key = seen.rollout.key();
            writer
                .merge_patch::<ClusterClassRollout>(MANAGER, &key, &patch)
                .await
                .map(drop)
        }
        Action::RemoveFinalizer => writer.remove_finalizer(MANAGER, &*seen.rollout, FINALIZER).await,
    }
}

/// Writes annotations of a Cluster. Refused when another Cluster has taken the name.
async fn annotate(cx: &Cx, cluster: &ObjectKey, uid: &str, values: &Value) -> Result<(), WriteError> {
    let patch = json!({"metadata": {"uid": uid, "annotations": values}});
    cx.writer()
        .merge_patch::<Cluster>(MANAGER, cluster, &patch)
        .await
        .map(drop)
}

impl windlass_controller_runtime::Done for Done {
    fn failed(&self) -> Option<&ReconcileError> {
        self.failed.as_ref()
    }
}
