//! Carries out what was planned for a DevCluster, in the simulated cloud and in the API. The only writer.

use std::net::SocketAddr;

use serde_json::json;
use windlass_api::core::APIEndpoint;
use windlass_api_ext::{annotations, finalizers};
use windlass_controller_runtime::{Cx, ObjectKey, ReconcileError};

use super::observe::Observed;
use super::plan::{Action, Address, Plan};
use super::{HOST, NOT_ALLOWED, PORT_UNAVAILABLE};
use crate::backend::{Cloud, CloudError};
use crate::dev_machine::MANAGER;

/// What became of a plan.
#[derive(Debug, Default)]
pub(super) struct Done {
    /// The first action that failed. Those after it were not tried.
    pub(super) failed: Option<ReconcileError>,
    /// Whether the status reports the failure: the cloud refuses what the plan needs.
    pub(super) is_reported: bool,
    /// Whether the endpoint was written.
    pub(super) provisioned: bool,
    /// Whether the finalizer was removed.
    pub(super) gone: bool,
}

/// Carries out the actions in order, up to the first that fails.
pub(super) async fn apply(cx: &Cx, cloud: &Cloud, seen: &Observed, plan: &Plan) -> Done {
    let mut done = Done::default();
    for action in &plan.actions {
        if let Err(error) = carry_out(cx, cloud, seen, action, &mut done).await {
            done.failed = Some(error);
            break;
        }
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
    match action {
        Action::ProvideEndpoint { cluster, address } => {
            let address = match create_load_balancer(cloud, cluster, address).await {
                Ok(address) => address,
                Err(error) => {
                    done.is_reported = true;
                    return Err(cloud_error(&error));
                }
            };
            let metadata = &seen.object.metadata;
            let desired = json!({
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
                "kind": "DevCluster",
                "metadata": {
                    "name": metadata.name,
                    "namespace": metadata.namespace,
                    "uid": metadata.uid,
                    "annotations": { (annotations::LISTENER): cluster.to_string() },
                },
                "spec": {
                    "controlPlaneEndpoint": APIEndpoint { host: Some(HOST.to_owned()), port: Some(i32::from(address.port())) },
                },
            });
            cx.writer().apply_value(MANAGER, &desired).await?;
            done.provisioned = true;
        }
        Action::DeleteLoadBalancer(cluster) => {
            if let Err(error) = cloud.delete_load_balancer(cluster).await {
                done.is_reported = true;
                return Err(cloud_error(&error));
            }
        }
        Action::RemoveFinalizer => {
            cx.writer()
                .remove_finalizer(MANAGER, &*seen.object, finalizers::DEV_CLUSTER)
                .await?;
            done.gone = true;
        }
    }
    Ok(())
}

/// Creates the load balancer of a cluster, or finds it there. Returns its address.
pub(super) async fn create_load_balancer(
    cloud: &Cloud,
    cluster: &ObjectKey,
    address: &Address,
) -> Result<SocketAddr, CloudError> {
    match address {
        Address::At(address) => cloud.create_load_balancer(cluster, *address).await,
        Address::FreePort { taken } => cloud.create_load_balancer_on_free_port(cluster, taken).await,
    }
}

pub(super) fn cloud_error(error: &CloudError) -> ReconcileError {
    let reason = match error {
        CloudError::Refused { .. } => NOT_ALLOWED,
        _ => PORT_UNAVAILABLE,
    };
    ReconcileError::new(reason, error.to_string())
}

impl windlass_controller_runtime::Done for Done {
    fn failed(&self) -> Option<&ReconcileError> {
        self.failed.as_ref()
    }
}
