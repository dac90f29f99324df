//! Carries out what was planned for a DevMachine, in the simulated cloud and in the API. The only file of this controller that
//! writes.

use serde_json::json;
use windlass_api::meta::MetaExt as _;
use windlass_api_ext::{annotations, finalizers};
use windlass_controller_runtime::{Cx, ReconcileError};

use super::observe::{Observed, has_joined};
use super::plan::{Action, Plan, before, provider_id};
use crate::backend::{Cloud, CloudError, Member, NodeSpec};

/// The field manager of what this provider writes to specs and metadata, as Cluster API's names it.
pub(crate) const MANAGER: &str = "capd-manager";

/// What became of a plan.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// The first action that failed. Those after it were not tried.
    pub(crate) failed: Option<ReconcileError>,
    /// Whether the finalizer was removed, so that no object is left to report on.
    pub(crate) gone: bool,
    /// The generation of the DevMachine after its specification was written.
    pub(crate) generation: Option<i64>,
    /// Why the API server of the machine did not start.
    pub(crate) not_serving: Option<String>,
}

/// Carries out the actions in order, up to the first that fails.
pub(super) async fn apply(cx: &Cx, cloud: &Cloud, seen: &Observed, plan: &Plan) -> Done {
    let mut done = Done::default();
    for action in &plan.actions {
        if let Err(error) = carry_out(cx, cloud, seen, action, &mut done).await {
            if matches!(action, Action::StartControlPlane(_)) {
                done.not_serving = Some(error.to_string());
            }
            done.failed = Some(error);
            break;
        }
        done.gone |= matches!(action, Action::RemoveFinalizer);
    }
    done
}

async fn carry_out(
    cx: &Cx,
    cloud: &Cloud,
    seen: &Observed,
    action: &Action,
    done: &mut Done,
) -> Result<(), ReconcileError> {
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
        Action::StartVm { started } => {
            let started = cloud.start_vm(&key, name, *started).await;
            started.map_err(|error| cloud_error(&error))?;
        }
        Action::StartControlPlane(endpoint) => {
            let Some(Ok(authorities)) = &seen.authorities else {
                return Ok(());
            };
            let version = version(seen);
            let member = Member {
                name,
                version: &version,
                before: before(seen),
                endpoint,
                since: seen.machine.metadata.created(),
                authorities,
                external_etcd: seen.external_etcd,
                pins: seen.pins.as_deref().unwrap_or_default(),
                prepared: seen.prepared,
                others: &seen.others,
            };
            let started = cloud.start_control_plane(&key, &member, cx.now()).await;
            started.map_err(|error| cloud_error(&error))?;
        }
        Action::RegisterNode => {
            let node = NodeSpec {
                name: name.to_owned(),
                provider_id: provider_id(name),
                version: version(seen),
                control_plane: seen.is_control_plane(),
                pins: seen.pins.clone().unwrap_or_default(),
                joined: has_joined(&seen.machine, seen.is_control_plane()),
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

/// The version that the machine runs. The Machine of a MachinePool learns it from the Node.
fn version(seen: &Observed) -> String {
    let of_pool = seen.machine.metadata.annotation(annotations::MACHINE_POOL_VERSION);
    if let Some(version) = of_pool {
        return version.to_owned();
    }
    seen.owner
        .as_ref()
        .and_then(|owner| owner.spec.version.clone())
        .unwrap_or_default()
}

fn cloud_error(error: &CloudError) -> ReconcileError {
    ReconcileError::new("SimulationFailed", error.to_string())
}

impl windlass_controller_runtime::Done for Done {
    fn failed(&self) -> Option<&windlass_controller_runtime::ReconcileError> {
        self.failed.as_ref()
    }
}
