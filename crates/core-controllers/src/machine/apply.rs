//! Carries out what was planned for a Machine. The only file of this controller that writes.

use serde_json::{Value, json};
use windlass_api::core::Machine;
use windlass_api::k8s::Node;
use windlass_api::{finalizers, labels};
use windlass_cluster_cache::Clusters;
use windlass_controller_runtime::{ApiClient, Cx, Dynamic, ObjectKey, PatchKind, ReconcileError, Seen, owner};

use super::observe::Observed;
use super::plan::{Action, External, Plan};

/// The field manager of what this controller writes to specs and metadata, as Cluster API names it.
pub(super) const MANAGER: &str = "capi-manager";

/// What became of a plan.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// The first action that failed; those after it were not tried.
    pub(crate) failed: Option<ReconcileError>,
}

/// Carries out the actions in order, up to the first that fails.
pub(super) async fn apply(cx: &Cx, clusters: &Clusters, seen: &Observed, plan: &Plan) -> Done {
    for action in &plan.actions {
        if let Err(error) = carry_out(cx, clusters, seen, action).await {
            return Done { failed: Some(error) };
        }
    }
    Done::default()
}

async fn carry_out(cx: &Cx, clusters: &Clusters, seen: &Observed, action: &Action) -> Result<(), ReconcileError> {
    let machine = &seen.machine;
    match action {
        Action::Own(which) => {
            if let Some(object) = external(seen, *which) {
                cx.writer().apply_value(MANAGER, &ownership(machine, object)).await?;
            }
        }
        Action::TakeOver(spec) => {
            let desired = json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2",
                "kind": "Machine",
                "metadata": {
                    "name": machine.metadata.name,
                    "namespace": machine.metadata.namespace,
                    "uid": machine.metadata.uid,
                },
                "spec": spec,
            });
            cx.writer().apply_value(MANAGER, &desired).await?;
        }
        Action::Delete(which) => {
            if let Some(object) = external(seen, *which) {
                cx.writer().delete_value(object).await?;
            }
        }
        Action::RemoveFinalizer => {
            cx.writer()
                .remove_finalizer(MANAGER, &**machine, finalizers::MACHINE)
                .await?;
        }
        Action::PatchNode { .. } | Action::Cordon(_) | Action::Evict(_) | Action::DeleteNode(_) => {
            carry_out_remotely(clusters, machine, action).await?;
        }
    }
    Ok(())
}

/// Writes to the workload cluster. A Node or Pod that is already gone is what was wanted.
async fn carry_out_remotely(clusters: &Clusters, machine: &Machine, action: &Action) -> Result<(), ReconcileError> {
    let key = ObjectKey::new(
        machine.metadata.namespace.as_deref().unwrap_or_default(),
        &machine.spec.cluster_name,
    );
    let connection = clusters
        .get(&key)
        .map_err(|why| ReconcileError::new("ConnectionDown", format!("workload cluster {key}: {why}")))?;
    let client = ApiClient::from(connection.client());
    let patch_node = async |name: &str, patch: &Value| {
        let key = ObjectKey::cluster_scoped(name);
        client.patch::<Node>("", &key, PatchKind::Merge, patch).await
    };
    let result = match action {
        Action::PatchNode { name, patch } => patch_node(name, patch).await,
        Action::Cordon(name) => patch_node(name, &json!({"spec": {"unschedulable": true}})).await,
        Action::DeleteNode(name) => {
            client
                .delete::<Node>(&ObjectKey::cluster_scoped(name.as_str()), None)
                .await
        }
        Action::Evict(pods) => {
            // One Pod that may not go yet (a disruption budget) must not keep the others: the next look tries again.
            for (namespace, name) in pods {
                if let Err(error) = client.evict(&ObjectKey::new(namespace.as_str(), name.as_str())).await {
                    tracing::debug!(%namespace, pod = %name, %error, "eviction was refused");
                }
            }
            Ok(())
        }
        _ => Ok(()),
    };
    match result {
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(ReconcileError::new(
            "RemoteRequestFailed",
            format!("workload cluster {key}: {error}"),
        )),
        Ok(()) => Ok(()),
    }
}

fn external(seen: &Observed, which: External) -> Option<&Dynamic> {
    let object = match which {
        External::Bootstrap => seen.bootstrap.as_ref(),
        External::Infrastructure => Some(&seen.infrastructure),
    };
    object.and_then(Seen::found).map(|object| &**object)
}

/// The part of a referenced object that makes it the Machine's.
fn ownership(machine: &Machine, object: &Dynamic) -> Value {
    json!({
        "apiVersion": object.api_version(),
        "kind": object.kind(),
        "metadata": {
            "name": object.name(),
            "namespace": machine.metadata.namespace,
            "uid": object.uid(),
            "labels": { (labels::CLUSTER_NAME): machine.spec.cluster_name },
            "ownerReferences": [owner::controller_ref(machine)],
        },
    })
}

impl windlass_controller_runtime::Done for Done {
    fn failed(&self) -> Option<&windlass_controller_runtime::ReconcileError> {
        self.failed.as_ref()
    }
}
