//! Takes the steps. The only writer.

use k8s_openapi::api::core::v1::ObjectReference;
use serde_json::{Value, json};
use windlass_api::core::Cluster;
use windlass_api::kind::ApiKind as _;
use windlass_kit::{Cx, Dynamic, EventType, ReconcileError, Write, WriteError};
use windlass_topology::keys;
use windlass_topology::model::text;
use windlass_topology::plan::{Action, Step, Target, Verb};

use super::observe::{Managed, Observed};
use super::plan::Plan;

/// The manager of the Cluster's labels and references, which are no generated object.
const CLUSTER_MANAGER: &str = "capi-manager";

/// What was done.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// Why the pass stopped, if it did.
    pub(super) failure: Option<ReconcileError>,
}

pub(super) async fn apply(cx: &Cx, seen: &Observed, plan: &Plan) -> Done {
    let (Observed::Managed(seen), Plan::Steps(steps)) = (seen, plan) else {
        return Done::default();
    };
    for note in &steps.notes {
        tracing::debug!(note, "not now");
    }
    for step in &steps.steps {
        match take(cx, seen, &step.action).await {
            Ok(true) => {
                tracing::info!("{}", step.note);
                tell(cx, seen, step);
            }
            Ok(false) => {}
            Err(error) => {
                return Done {
                    failure: Some(error.into()),
                };
            }
        }
    }
    Done::default()
}

/// True when something changed.
async fn take(cx: &Cx, seen: &Managed, action: &Action) -> Result<bool, WriteError> {
    match action {
        Action::PatchCluster(patch) => {
            let key = seen.cluster.key();
            // Only this very Cluster, should another have taken its name.
            let mut patch = patch.clone();
            patch["metadata"]["uid"] = text(&seen.value, "/metadata/uid").into();
            cx.writer()
                .merge_patch::<Cluster>(CLUSTER_MANAGER, &key, &patch)
                .await?;
            Ok(true)
        }
        Action::Apply(intent) => {
            let applied = cx.writer().apply_value(keys::FIELD_MANAGER, intent).await?;
            Ok(applied.outcome == Write::Changed)
        }
        Action::Delete(target) => {
            let Ok(object) = Dynamic::new(stub(target)) else {
                return Ok(false);
            };
            cx.writer().delete_value(&object).await?;
            Ok(true)
        }
    }
}

fn stub(target: &Target) -> Value {
    json!({
        "apiVersion": target.api_version,
        "kind": target.kind,
        "metadata": {"namespace": target.namespace, "name": target.name, "uid": target.uid},
    })
}

/// Health checks tell of themselves; everything else is told about the Cluster.
fn tell(cx: &Cx, seen: &Managed, step: &Step) {
    let reason = match step.verb {
        Verb::Create => "TopologyCreate",
        Verb::Update => "TopologyUpdate",
        Verb::Delete => "TopologyDelete",
    };
    match &step.action {
        Action::Apply(object) if text(object, "/kind") == "MachineHealthCheck" => {
            let owned = |pointer: &str| Some(text(object, pointer).to_owned());
            let about = ObjectReference {
                api_version: owned("/apiVersion"),
                kind: owned("/kind"),
                namespace: owned("/metadata/namespace"),
                name: owned("/metadata/name"),
                ..ObjectReference::default()
            };
            cx.event_about(about, EventType::Normal, reason, step.event.clone());
        }
        _ => cx.event(&*seen.cluster, EventType::Normal, reason, step.event.clone()),
    }
}

impl windlass_kit::Done for Done {
    fn failed(&self) -> Option<&ReconcileError> {
        self.failure.as_ref()
    }
}
