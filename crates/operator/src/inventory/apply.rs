//! Writes the entries of built-in providers.

use serde_json::json;
use windlass_api_operator::NAMESPACE;
use windlass_controller_runtime::{Cx, EventType, WriteError};

use super::plan::Plan;
use crate::names::{MANAGER, reasons};

/// Carries out a plan. The namespace of the entries is made before the first of them.
pub(super) async fn apply(cx: &Cx, plan: &Plan) -> Result<(), WriteError> {
    for (entry, message) in &plan.others {
        tracing::warn!("{message}");
        cx.event(
            &**entry,
            EventType::Warning,
            reasons::INSTALLED_ELSEWHERE,
            message.as_str(),
        );
    }
    let writer = cx.writer();
    if !plan.written.is_empty() {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        writer.apply_changed(MANAGER, &namespace).await?;
    }
    for entry in &plan.written {
        writer.apply_sent(MANAGER, entry).await?;
    }
    for entry in &plan.deleted {
        writer.delete(&**entry).await?;
    }
    Ok(())
}
