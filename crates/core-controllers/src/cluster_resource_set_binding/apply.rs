//! Carries out the plan of a ClusterResourceSetBinding: the only file of it that writes.

use std::sync::Arc;

use serde_json::json;
use windlass_api::addons::ClusterResourceSetBinding;
use windlass_api::kind::ApiKind as _;
use windlass_controller_runtime::{Cx, ReconcileError};

use super::{Observed, Plan};
use crate::shared::keys::managers;

/// Deletes the record, or changes its owners if it is still what was read.
pub(super) async fn apply(cx: &Cx, seen: &Observed, plan: &Plan) -> Option<ReconcileError> {
    let (writer, record) = (cx.writer(), &*seen.record);
    let written = if plan.goes {
        writer.delete(record).await.map(drop)
    } else if let Some(owners) = &plan.owners {
        let (uid, version) = (&record.metadata.uid, &record.metadata.resource_version);
        let patch = json!({ "metadata": { "uid": uid, "resourceVersion": version, "ownerReferences": owners } });
        let manager = managers::CLUSTER_RESOURCE_SET_BINDING;
        let written: Result<Arc<ClusterResourceSetBinding>, _> =
            writer.merge_patch(manager, &record.key(), &patch).await;
        written.map(drop)
    } else {
        Ok(())
    };
    written.err().map(ReconcileError::from)
}
