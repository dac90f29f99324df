//! The ExtensionConfig controller: asks an extension of the Runtime SDK which hooks it serves, and records the answer.
//!
//! The status is all that calls need: an extension is called with the handlers of its last discovery, also by a process that has just started
//! and also while it does not answer. Discovery comes again when the spec changes, after a failure, and every ten minutes: an extension that
//! was upgraded may serve other hooks. The CA certificate of a Secret that an annotation names is copied into the spec.

mod apply;
mod observe;
mod plan;
mod status;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use serde_json::Value;
use windlass_api::annotations::INJECT_CA_FROM_SECRET;
use windlass_api::kind::ApiKind as _;
use windlass_api::meta::MetaExt as _;
use windlass_api::runtime::ExtensionConfig;
use windlass_controller_runtime::{
    Controller, ControllerEntry, Cx, Decision, Moment, ObjectKey, Part as _, ReconcileError, Watch, key_of,
};
use windlass_runtime_client::Extensions;

use crate::shared::keys::managers;
use observe::{Memory, Observed, Question};
use plan::Plan;

/// Reconciles ExtensionConfigs.
#[derive(Debug)]
struct ExtensionConfigs {
    extensions: Extensions,
    memory: Memory,
}

/// The controller, to run.
pub fn entry(extensions: Extensions) -> ControllerEntry {
    ControllerEntry::of(ExtensionConfigs {
        extensions,
        memory: Memory::default(),
    })
}

impl Controller for ExtensionConfigs {
    type Kind = ExtensionConfig;
    type Observed = Observed;
    type Question = Question;
    type Plan = Plan;
    type Done = Option<ReconcileError>;
    const NAME: &'static str = "extensionconfig";
    const MANAGER: &'static str = managers::EXTENSION_CONFIG;
    const STATUS_MANAGER: &'static str = "capi-extensionconfig-status";
    const FINALIZER: Option<&'static str> = None;
    const FOLLOWS_CLUSTERS: bool = false;

    fn cluster_of(_: &ExtensionConfig) -> Option<ObjectKey> {
        None
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::map::<Secret>(|cx, old, new| {
            let Some(secret) = new.or(old) else { return Vec::new() };
            let key = key_of(&secret.metadata);
            let name = format!("{}/{}", key.namespace, key.name);
            let configs = cx.cache::<ExtensionConfig>().all();
            let uses =
                |config: &&Arc<ExtensionConfig>| config.metadata.annotation(INJECT_CA_FROM_SECRET) == Some(&name);
            configs.iter().filter(uses).map(|config| config.key()).collect()
        })]
    }

    async fn observe(&self, cx: &Cx, object: Arc<ExtensionConfig>) -> Observed {
        observe::observe(cx, object, &self.memory)
    }

    async fn answer(&self, cx: &Cx, seen: Observed, _: Question) -> Observed {
        observe::discover(cx, seen, &self.extensions, &self.memory).await
    }

    fn plan(&self, seen: &Observed, now: &Moment) -> Decision<Plan, Question> {
        plan::plan(seen, now)
    }

    async fn apply(&self, cx: &Cx, seen: &Observed, plan: &Plan) -> Option<ReconcileError> {
        apply::apply(cx, seen, plan).await
    }

    fn status(&self, seen: &Observed, plan: &Plan, done: &Self::Done, now: &Moment) -> Option<Value> {
        status::status(seen, plan, done.as_ref(), now.now()).map(|status| status.to_json())
    }
}
