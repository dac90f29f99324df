//! Carries out the plan of a definition: the only file of it that writes.

use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::json;
use windlass_api::annotations::CRD_MIGRATION_OBSERVED_GENERATION;
use windlass_controller_runtime::{Crd, Cx, ObjectKey, ReconcileError, WriteError};

use super::plan::{Plan, Write};
use crate::shared::keys::managers;

/// Number of objects that are written concurrently.
const AT_A_TIME: usize = 8;

/// Writes the objects, and then what is true of all of them. A failure leaves the definition as it is, so the next attempt goes on.
pub(super) async fn apply(cx: &Cx, plan: &Plan) -> Option<ReconcileError> {
    migrate(cx, plan).await.err().map(ReconcileError::from)
}

async fn migrate(cx: &Cx, plan: &Plan) -> Result<(), WriteError> {
    let Some(definition) = &plan.definition else {
        return Ok(());
    };
    let (writer, manager) = (cx.writer(), managers::CRD_MIGRATION);
    let write = async |write: &Write| {
        let written = writer
            .merge_patch_value(manager, &definition.gvk, &write.key, &write.patch)
            .await;
        match written {
            Err(error) if error.is_not_found() || write.yields && error.is_conflict() => Ok(()),
            other => other.map(drop),
        }
    };
    let writes: Vec<_> = plan.writes.iter().map(write).collect();
    futures::stream::iter(writes)
        .buffer_unordered(AT_A_TIME)
        .try_collect::<Vec<()>>()
        .await?;
    if definition.is_restored {
        let versions = [definition.gvk.version.as_str()];
        writer.stored_versions(manager, &definition.name, &versions).await?;
    }
    let noted = json!({CRD_MIGRATION_OBSERVED_GENERATION: definition.generation.to_string()});
    let patch = json!({"metadata": {"uid": definition.uid, "annotations": noted}});
    let key = ObjectKey::cluster_scoped(definition.name.as_str());
    writer.merge_patch::<Crd>(manager, &key, &patch).await.map(drop)
}
