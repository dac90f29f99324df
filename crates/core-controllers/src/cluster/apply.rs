//! Carries out what was planned for a Cluster. The only file of this controller that writes.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::json;
use windlass_api::annotations::OK_TO_DELETE;
use windlass_api::core::Cluster;
use windlass_api::{finalizers, labels};
use windlass_controller_runtime::{Codec as _, Cx, Dynamic, ReconcileError, key_of, owner};
use windlass_pki::{KeyAlgorithm, KeyPool, Kubeconfig, LeafRequest, PkiError, Purpose};

use super::observe::Observed;
use super::plan::{Action, Descendant, External, Plan};
use crate::shared::owners;

/// The field manager of what this controller writes to specs and metadata, as Cluster API names it.
pub(super) const MANAGER: &str = "capi-manager";

/// What became of a plan.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// The first action that failed; those after it were not tried.
    pub(crate) failed: Option<ReconcileError>,
    /// Whether the endpoint was to be taken over and was not.
    pub(crate) lacks_endpoint: bool,
}

/// Carries out the actions in order, up to the first that fails.
pub(super) async fn apply(cx: &Cx, keys: &KeyPool, seen: &Observed, plan: &Plan) -> Done {
    for (index, action) in plan.actions.iter().enumerate() {
        if let Err(error) = carry_out(cx, keys, seen, action).await {
            let is_endpoint = |action: &Action| matches!(action, Action::SetEndpoint(_));
            return Done {
                failed: Some(error),
                lacks_endpoint: plan.actions[index..].iter().any(is_endpoint),
            };
        }
    }
    Done::default()
}

async fn carry_out(cx: &Cx, keys: &KeyPool, seen: &Observed, action: &Action) -> Result<(), ReconcileError> {
    let cluster = &*seen.cluster;
    let writer = cx.writer();
    match action {
        Action::Own(which) => {
            if let Some(object) = external(seen, *which) {
                let desired = json!({
                    "apiVersion": object.api_version(),
                    "kind": object.kind(),
                    "metadata": {
                        "name": object.name(),
                        "namespace": cluster.metadata.namespace,
                        "uid": object.uid(),
                        "labels": { (labels::CLUSTER_NAME): cluster.metadata.name },
                        "ownerReferences": [ownership(seen, object)],
                    },
                });
                writer.apply_value(MANAGER, &desired).await?;
            }
        }
        Action::RenewOwner(which) => {
            if let Some(object) = external(seen, *which) {
                let patch = owners::renewed(object.metadata(), &owner::owner_ref(cluster));
                writer
                    .merge_patch_value(MANAGER, &object.gvk(), &object.key(), &patch)
                    .await?;
            }
        }
        Action::SetEndpoint(endpoint) => {
            let desired = json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2",
                "kind": "Cluster",
                "metadata": {
                    "name": cluster.metadata.name,
                    "namespace": cluster.metadata.namespace,
                    "uid": cluster.metadata.uid,
                },
                "spec": { "controlPlaneEndpoint": endpoint },
            });
            writer.apply_value(MANAGER, &desired).await?;
        }
        Action::MarkOkToDelete => {
            let patch = json!({ "metadata": { "uid": cluster.metadata.uid, "annotations": { (OK_TO_DELETE): "" } } });
            let written: Result<Arc<Cluster>, _> =
                writer.merge_patch(MANAGER, &key_of(&cluster.metadata), &patch).await;
            written?;
        }
        Action::WriteKubeconfig(server) => write_kubeconfig(cx, keys, seen, server).await?,
        Action::DeleteExternal(which) => {
            if let Some(object) = external(seen, *which) {
                writer.delete_value(object).await?;
            }
        }
        Action::Delete(Descendant::Deployment(object)) => {
            writer.delete(&**object).await?;
        }
        Action::Delete(Descendant::Pool(object)) => {
            writer.delete(&**object).await?;
        }
        Action::Delete(Descendant::Set(object)) => {
            writer.delete(&**object).await?;
        }
        Action::Delete(Descendant::Machine(object)) => {
            writer.delete(&**object).await?;
        }
        Action::RemoveFinalizer => writer.remove_finalizer(MANAGER, cluster, finalizers::CLUSTER).await?,
    }
    Ok(())
}

/// Creates the Secret with the administrator's kubeconfig. One that a user has brought in the meantime is not overwritten.
async fn write_kubeconfig(cx: &Cx, keys: &KeyPool, seen: &Observed, server: &str) -> Result<(), ReconcileError> {
    let cluster = &*seen.cluster;
    let key = key_of(&cluster.metadata);
    let credentials = seen.credentials.as_ref();
    let Some(material) = credentials.and_then(|credentials| credentials.authority.found()) else {
        return Ok(());
    };
    let failed = |error: PkiError| {
        let name = Purpose::Kubeconfig.secret_name(&key.name);
        ReconcileError::new("KubeconfigFailed", format!("Secret {name}: {error}"))
    };
    let client_key = keys.take(KeyAlgorithm::default()).await.map_err(failed)?;
    let authority = material.authority().map_err(failed)?;
    let leaf = authority
        .issue(&LeafRequest::administrator(), &client_key, cx.now())
        .map_err(failed)?;
    let text = Kubeconfig {
        cluster: key.name.clone(),
        server: server.to_owned(),
        authority: material.crt.clone(),
        client_certificate: leaf.to_pem(),
        client_key: client_key.to_pem(),
    }
    .render();
    let data = BTreeMap::from([("value", text.into_bytes())]);
    let secret = Purpose::Kubeconfig.secret(&key.namespace, &key.name, &json!(owner::owner_ref(cluster)), &data);
    let secret =
        Secret::from_json(&secret).map_err(|error| ReconcileError::new("KubeconfigFailed", error.to_string()))?;
    cx.writer().create(MANAGER, &secret).await?;
    Ok(())
}

/// The Cluster's reference as an owner. It says expressly that the Cluster is no longer the controller: another field manager may have
/// written that it was.
fn ownership(seen: &Observed, object: &Dynamic) -> OwnerReference {
    let cluster = &*seen.cluster;
    if seen.controls() {
        return owner::controller_ref(cluster);
    }
    let reference = owner::owner_ref(cluster);
    let was = owner::controller_of(object.metadata()).is_some_and(|one| one.uid == reference.uid);
    OwnerReference {
        controller: was.then_some(false),
        ..reference
    }
}

fn external(seen: &Observed, which: External) -> Option<&Dynamic> {
    let object = match which {
        External::Infrastructure => seen.infrastructure(),
        External::ControlPlane => seen.control_plane(),
    };
    object.map(|object| &**object)
}

impl windlass_controller_runtime::Done for Done {
    fn failed(&self) -> Option<&windlass_controller_runtime::ReconcileError> {
        self.failed.as_ref()
    }
}
