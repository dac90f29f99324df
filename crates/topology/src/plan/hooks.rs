//! Hooks of the creation of a Cluster, and what hooks keep back.

use serde_json::Value;
use windlass_api::conditions::CONTROL_PLANE_INITIALIZED;

use super::Plan;
use crate::error::Error;
use crate::hooks::{Call, Calls, Hook, PlanRequest};
use crate::model::{name_of, text};
use crate::patches::external::Question;

/// Whether objects of the topology may exist. The hook after the initialization is called on the way.
pub(super) fn may_exist(cluster: &Value, calls: &mut Calls<'_>) -> bool {
    let is_new = ["infrastructureRef", "controlPlaneRef"]
        .iter()
        .all(|field| text(cluster, &format!("/spec/{field}/name")).is_empty());
    if !is_new {
        if is_initialized(cluster) {
            calls.completes(Call::about(Hook::AfterControlPlaneInitialized));
        }
        return true;
    }
    let may_exist = calls.passes(Call::about(Hook::BeforeClusterCreate));
    if may_exist {
        calls.mark(Hook::AfterControlPlaneInitialized);
    }
    may_exist
}

/// Whether the Cluster says that its control plane was initialized.
fn is_initialized(cluster: &Value) -> bool {
    let conditions = cluster.pointer("/status/conditions").and_then(Value::as_array);
    conditions
        .into_iter()
        .flatten()
        .any(|condition| text(condition, "/type") == CONTROL_PLANE_INITIALIZED && text(condition, "/status") == "True")
}

impl Plan {
    /// A plan that waits for the versions of an upgrade.
    pub(super) fn asking(request: PlanRequest) -> Self {
        Self {
            plan_request: Some(request),
            ..Self::default()
        }
    }

    /// A plan without the versions of an upgrade: nothing may be changed.
    pub(super) fn without_versions(cluster: &Value, why: &str) -> Self {
        let message = format!("hook GenerateUpgradePlan has no usable answer: {why}");
        Self::unanswered(Error::new(name_of(cluster), "", message))
    }

    /// A plan that waits for lifecycle hooks.
    pub(super) fn about_hooks(calls: Calls<'_>) -> Self {
        Self {
            calls: calls.asked,
            ..Self::default()
        }
    }

    /// A plan that waits for the patches of an extension.
    pub(super) fn about_patches(question: Question) -> Self {
        Self {
            patches: Some(Box::new(question)),
            ..Self::default()
        }
    }

    /// A plan without an answer that all depends on: nothing may be changed.
    pub(super) fn unanswered(why: Error) -> Self {
        Self {
            failed_hook: Some(why),
            is_lost: true,
            ..Self::default()
        }
    }

    /// What is to be asked of extensions, and what they keep back.
    pub(super) fn hooks(&mut self, cluster: &Value, calls: Calls<'_>) {
        let waits = calls.blocking.iter().map(|one| {
            let colon = if one.message.is_empty() { "" } else { ": " };
            format!("hook {} blocks{colon}{}", one.hook.name(), one.message)
        });
        self.notes.extend(waits);
        self.failed_hook = calls.failed.map(|(hook, why)| {
            let message = format!("hook {} has no answer: {why}", hook.name());
            Error::new(name_of(cluster), "", message)
        });
        self.progress.blocking = calls.blocking;
        self.calls = calls.asked;
    }
}
