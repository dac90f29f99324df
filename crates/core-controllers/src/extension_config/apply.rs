//! Carries out the plan of an ExtensionConfig: the only file of it that writes.

use std::sync::Arc;

use serde_json::json;
use windlass_api::kind::ApiKind as _;
use windlass_api::runtime::ExtensionConfig;
use windlass_controller_runtime::{Cx, ReconcileError};

use super::observe::Observed;
use super::plan::Plan;
use crate::shared::keys::managers;

/// Writes the CA certificates.
pub(super) async fn apply(cx: &Cx, seen: &Observed, plan: &Plan) -> Option<ReconcileError> {
    let bundle = plan.bundle.as_ref()?;
    let patch = json!({
        "metadata": { "uid": seen.config.metadata.uid },
        "spec": { "clientConfig": { "caBundle": bundle } },
    });
    let manager = managers::EXTENSION_CONFIG;
    let written: Result<Arc<ExtensionConfig>, _> = cx.writer().merge_patch(manager, &seen.config.key(), &patch).await;
    written.err().map(ReconcileError::from)
}
