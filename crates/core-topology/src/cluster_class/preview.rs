//! One reconcile of a class.

use std::sync::Arc;

use serde_json::Value;
use windlass_api::core::ClusterClass;
use windlass_controller_runtime::{Controller as _, Cx, Decision, Moment};

use super::ClusterClasses;

/// Observes, plans and applies once, and gives the status.
pub(crate) async fn status(
    controller: &ClusterClasses,
    cx: &Cx,
    class: Arc<ClusterClass>,
    now: &Moment,
) -> Option<Value> {
    let seen = controller.observe(cx, class).await;
    // There are no questions.
    let Decision::Plan(plan) = controller.plan(&seen, now);
    let done = controller.apply(cx, &seen, &plan).await;
    controller.status(&seen, &plan, &done, now)
}
