//! Carries out what was planned for a DevMachine, in the simulated cloud and in the API. The only file of this controller that
//! writes.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use serde_json::json;
use windlass_api_ext::{annotations, finalizers};
use windlass_kit::{Cx, ObjectKey, ReconcileError};
use windlass_pki::{KeyMaterial, Purpose};

use super::observe::Observed;
use super::plan::{Action, Plan, provider_id};
use crate::backend::{Authorities, Cloud, CloudError, Member, NodeSpec};

/// The field manager of what this provider writes to specs and metadata, as Cluster API's names it.
pub(crate) const MANAGER: &str = "capd-manager";

/// What became of a plan.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// The first action that failed; those after it were not tried.
    pub(crate) failed: Option<ReconcileError>,
    /// Whether the DevMachine was let go, so that nothing is left to report on.
    pub(crate) gone: bool,
    /// Whether the cloud changed, so that another look shows more.
    pub(crate) moved: bool,
    /// The generation of the DevMachine after its specification was written.
    pub(crate) generation: Option<i64>,
    /// Why the API server of the machine did not start.
    pub(crate) not_serving: Option<String>,
}

/// Carries out the actions in order, up to the first that fails.
pub(super) async fn apply(cx: &Cx, cloud: &Cloud, seen: &Observed, plan: &Plan) -> Done {
    let mut done = Done::default();
    for action in &plan.actions {
        if let Err(error) = act(cx, cloud, seen, action, &mut done).await {
            if matches!(action, Action::StartControlPlane(_)) {
                done.not_serving = Some(error.to_string());
            }
            done.failed = Some(error);
            break;
        }
        done.gone |= matches!(action, Action::RemoveFinalizer);
        done.moved |= matches!(action, Action::StartVm { .. } | Action::StartControlPlane(_));
    }
    done
}

async fn act(cx: &Cx, cloud: &Cloud, seen: &Observed, action: &Action, done: &mut Done) -> Result<(), ReconcileError> {
    if let Action::RemoveFinalizer = action {
        return Ok(cx
            .writer()
            .remove_finalizer(MANAGER, &*seen.machine, finalizers::DEV_MACHINE)
            .await?);
    }
    let Some(key) = seen.cluster_key() else {
        return Ok(());
    };
    let name = seen.name();
    match action {
        Action::StartVm { again } => {
            let started = if *again { jiff::Timestamp::UNIX_EPOCH } else { cx.now() };
            let started = cloud.start_vm(&key, name, started).await;
            started.map_err(|error| cloud_error(&error))?;
        }
        Action::StartControlPlane(endpoint) => {
            let authorities = authorities(cx, &key)?;
            let version = version(seen);
            let member = Member {
                name,
                version: &version,
                endpoint,
            };
            let started = cloud.start_control_plane(&key, &member, &authorities, cx.now()).await;
            started.map_err(|error| cloud_error(&error))?;
        }
        Action::RegisterNode => {
            let node = NodeSpec {
                name: name.to_owned(),
                provider_id: provider_id(name),
                version: version(seen),
                control_plane: seen.is_control_plane(),
            };
            cloud
                .register_node(&key, &node, cx.now())
                .await
                .map_err(|error| cloud_error(&error))?;
        }
        Action::SetProviderId(id) => {
            let desired = json!({
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
                "kind": "DevMachine",
                "metadata": identity(&seen.machine.metadata),
                "spec": { "providerID": id },
            });
            let applied = cx.writer().apply_value(MANAGER, &desired).await?;
            done.generation = applied.object.metadata().generation;
        }
        Action::MarkBootstrapped => {
            if let Some(owner) = &seen.owner {
                let mut metadata = identity(&owner.metadata);
                metadata["annotations"] = json!({ (annotations::MACHINE_BOOTSTRAPPED): "" });
                let desired =
                    json!({ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": metadata });
                cx.writer().apply_value(MANAGER, &desired).await?;
            }
        }
        Action::DeleteVm => cloud.delete_vm(&key, name).await.map_err(|error| cloud_error(&error))?,
        Action::RemoveFinalizer => {}
    }
    Ok(())
}

fn identity(metadata: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta) -> serde_json::Value {
    json!({ "name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid })
}

fn version(seen: &Observed) -> String {
    seen.owner
        .as_ref()
        .and_then(|owner| owner.spec.version.clone())
        .unwrap_or_default()
}

fn cloud_error(error: &CloudError) -> ReconcileError {
    ReconcileError::new("SimulationFailed", error.to_string())
}

/// What a real control plane machine finds in its bootstrap data: the authorities of its cluster.
fn authorities(cx: &Cx, cluster: &ObjectKey) -> Result<Authorities, ReconcileError> {
    let read = |purpose: Purpose| -> Result<KeyMaterial, ReconcileError> {
        let name = purpose.secret_name(&cluster.name);
        let secret = cx
            .cache::<Secret>()
            .get(&ObjectKey::new(&cluster.namespace, &name))
            .ok_or_else(|| {
                let message = format!(
                    "Secret {}/{name} does not exist; the simulated API server needs it to start",
                    cluster.namespace
                );
                ReconcileError::new("SecretNotFound", message)
            })?;
        let empty = BTreeMap::new();
        let data = secret.data.as_ref().unwrap_or(&empty);
        KeyMaterial::read(&name, |key| data.get(key).map(|bytes| bytes.0.as_slice()))
            .map_err(|error| ReconcileError::new("SecretMalformed", error.to_string()))
    };
    let authority = |purpose: Purpose| {
        read(purpose)?
            .authority()
            .map_err(|error| ReconcileError::new("SecretMalformed", error.to_string()))
    };
    Ok(Authorities {
        cluster: authority(Purpose::ClusterCa)?,
        etcd: authority(Purpose::EtcdCa)?,
    })
}

impl windlass_kit::Done for Done {
    fn failed(&self) -> Option<&windlass_kit::ReconcileError> {
        self.failed.as_ref()
    }
}
