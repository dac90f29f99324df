//! The DevCluster controller: the infrastructure of a simulated workload cluster, which is a port on the loopback interface.
//!
//! The port is chosen once and written to `spec.controlPlaneEndpoint`; nothing answers there before the first control plane
//! machine runs.
//!
//! A DevCluster with the annotation `cluster.x-k8s.io/managed-by` is somebody else's: this controller neither writes to it nor
//! does anything for it, whatever happens to it.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};
use windlass_api::conditions::READY;
use windlass_api::core::{APIEndpoint, Cluster};
use windlass_api::{labels, resource_is_not_externally_managed};
use windlass_api_ext::infrastructure::{DevCluster, DevClusterInitializationStatus, DevClusterStatus};
use windlass_api_ext::{annotations, finalizers};
use windlass_conditions::{Status, carried, condition};
use windlass_kit::{
    Controller, ControllerEntry, Cx, Decision, Moment, NoQuestion, ObjectKey, Part as _, ReconcileError, Triage as _,
    Watch,
};

use crate::backend::{Cloud, CloudError};
use crate::dev_machine::MANAGER;

/// The host that simulated clusters answer on.
const HOST: &str = "127.0.0.1";

/// Reconciles DevClusters.
#[derive(Debug)]
struct DevClusters {
    cloud: Cloud,
}

/// The controller, to run.
pub fn entry(cloud: Cloud) -> ControllerEntry {
    ControllerEntry::of(DevClusters { cloud })
}

/// What one pass over a DevCluster knows.
#[derive(Clone, Debug)]
struct Observed {
    object: Arc<DevCluster>,
    cluster: Option<ObjectKey>,
    taken: BTreeSet<u16>,
}

/// The decision about one DevCluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plan {
    /// Nothing to do before a Cluster owns it.
    WaitForOwner,
    /// Keep a port: this one, or any.
    Listen(Option<u16>),
    /// Give the port back and let the object go.
    Release,
}

/// What became of a plan.
#[derive(Debug, Default)]
struct Done {
    failed: Option<ReconcileError>,
    /// Whether it was the cloud that failed: then the status says so.
    cloud_failed: bool,
    provisioned: bool,
    gone: bool,
}

/// Decides.
fn decide(seen: &Observed) -> Plan {
    if seen.object.metadata.deletion_timestamp.is_some() {
        return Plan::Release;
    }
    if seen.cluster.is_none() {
        return Plan::WaitForOwner;
    }
    Plan::Listen(port_of(&seen.object))
}

/// The port an object already has.
fn port_of(object: &DevCluster) -> Option<u16> {
    let endpoint = object.spec.as_ref()?.control_plane_endpoint.as_ref()?;
    u16::try_from(endpoint.port?).ok().filter(|port| *port > 0)
}

/// The Cluster an object belongs to: its owner, or what its label names while it is being deleted.
fn cluster_key(metadata: &ObjectMeta) -> Option<ObjectKey> {
    let namespace = metadata.namespace.as_deref()?;
    let owner = metadata
        .owner_references
        .iter()
        .flatten()
        .find(|owner| owner.kind == "Cluster");
    let label = metadata.labels.as_ref().and_then(|all| all.get(labels::CLUSTER_NAME));
    let name = owner.map(|owner| &owner.name).or(label)?;
    Some(ObjectKey::new(namespace, name))
}

impl Controller for DevClusters {
    type Kind = DevCluster;
    type Observed = Observed;
    type Question = NoQuestion;
    type Plan = Plan;
    type Done = Done;
    const NAME: &'static str = "devcluster";
    const MANAGER: &'static str = MANAGER;
    const STATUS_MANAGER: &'static str = "capd-manager-status";
    const FINALIZER: Option<&'static str> = Some(finalizers::DEV_CLUSTER);
    const CONCERNS: Option<fn(&DevCluster) -> bool> = Some(resource_is_not_externally_managed);
    // The annotation may come while a reconcile is under way.
    const LOCKED: bool = true;

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::read::<Cluster>()]
    }

    async fn observe(&self, cx: &Cx, object: Arc<DevCluster>) -> Observed {
        let own = object.metadata.uid.clone();
        let others = cx.cache::<DevCluster>().all();
        let taken = others
            .iter()
            .filter(|other| other.metadata.uid != own)
            .filter_map(|other| port_of(other))
            .collect();
        Observed {
            cluster: cluster_key(&object.metadata),
            object,
            taken,
        }
    }

    fn plan(&self, seen: &Observed, _: &Moment) -> Decision<Plan, NoQuestion> {
        decide(seen).into()
    }

    async fn apply(&self, cx: &Cx, seen: &Observed, plan: &Plan) -> Done {
        let mut done = Done::default();
        let result = match (plan, &seen.cluster) {
            (Plan::Release, key) => self.release(cx, seen, key.as_ref()).await,
            (Plan::Listen(port), Some(key)) => self.listen(cx, seen, key, *port).await,
            (Plan::WaitForOwner | Plan::Listen(_), _) => return done,
        };
        done.provisioned = result.is_ok() && *plan != Plan::Release;
        done.gone = result.is_ok() && *plan == Plan::Release;
        done.failed = result.err();
        done.cloud_failed = done
            .failed
            .as_ref()
            .is_some_and(|error| CLOUD_ERRORS.contains(&error.reason()));
        done
    }

    fn status(&self, seen: &Observed, _: &Plan, done: &Done, now: &Moment) -> Option<Value> {
        if done.gone {
            return None;
        }
        let status = status(seen, done, now.now());
        Some(status.to_json())
    }
}

/// The status. It has no condition of its own but while the cloud does not do what was asked of it; a Cluster takes over what
/// Ready says.
fn status(seen: &Observed, done: &Done, now: Timestamp) -> DevClusterStatus {
    let before = seen.object.status.clone().unwrap_or_default();
    let provisioned = done.provisioned || before.initialization.and_then(|done| done.provisioned) == Some(true);
    let failed = done.failed.as_ref().filter(|_| done.cloud_failed);
    let ready = failed.map(|error| {
        let generation = seen.object.metadata.generation;
        let new = condition(READY, Status::False, error.reason(), error.to_string(), now, generation);
        carried(&before.conditions, new)
    });
    DevClusterStatus {
        initialization: provisioned.then_some(DevClusterInitializationStatus {
            provisioned: Some(true),
        }),
        conditions: ready.into_iter().collect(),
        ..DevClusterStatus::default()
    }
}

impl DevClusters {
    async fn listen(&self, cx: &Cx, seen: &Observed, key: &ObjectKey, port: Option<u16>) -> Result<(), ReconcileError> {
        let port = self
            .cloud
            .ensure_load_balancer(key, port, &seen.taken)
            .await
            .map_err(|error| cloud_error(&error))?;
        let metadata = &seen.object.metadata;
        let desired = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
            "kind": "DevCluster",
            "metadata": {
                "name": metadata.name,
                "namespace": metadata.namespace,
                "uid": metadata.uid,
                "annotations": { (annotations::LISTENER): key.to_string() },
            },
            "spec": {
                "controlPlaneEndpoint": APIEndpoint { host: Some(HOST.to_owned()), port: Some(i32::from(port)) },
            },
        });
        cx.writer().apply_value(MANAGER, &desired).await?;
        Ok(())
    }

    async fn release(&self, cx: &Cx, seen: &Observed, key: Option<&ObjectKey>) -> Result<(), ReconcileError> {
        if let Some(key) = key {
            let deleted = self.cloud.delete_load_balancer(key).await;
            deleted.map_err(|error| cloud_error(&error))?;
        }
        cx.writer()
            .remove_finalizer(MANAGER, &*seen.object, finalizers::DEV_CLUSTER)
            .await?;
        Ok(())
    }
}

/// The reasons of errors of the cloud.
const CLOUD_ERRORS: [&str; 2] = ["NotAllowed", "PortUnavailable"];

fn cloud_error(error: &CloudError) -> ReconcileError {
    let [not_allowed, port_unavailable] = CLOUD_ERRORS;
    let reason = match error {
        CloudError::Refused { .. } => not_allowed,
        _ => port_unavailable,
    };
    ReconcileError::new(reason, error.to_string())
}

impl windlass_kit::Plan for Plan {}

impl windlass_kit::Done for Done {
    fn failed(&self) -> Option<&windlass_kit::ReconcileError> {
        self.failed.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Call;

    fn seen(json: Value) -> Observed {
        let object: DevCluster = serde_json::from_value(json).unwrap();
        Observed {
            cluster: cluster_key(&object.metadata),
            object: Arc::new(object),
            taken: BTreeSet::new(),
        }
    }

    fn check(json: Value, expect: Plan) {
        assert_eq!(decide(&seen(json)), expect);
    }

    #[test]
    fn it_waits_for_its_cluster() {
        check(
            json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DevCluster", "metadata": {"name": "a", "namespace": "n"}}),
            Plan::WaitForOwner,
        );
    }

    #[test]
    fn it_keeps_the_port_it_has() {
        let owner = json!([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c", "uid": "u"}]);
        check(
            json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DevCluster",
                   "metadata": {"name": "a", "namespace": "n", "ownerReferences": owner},
                   "spec": {"backend": {"inMemory": {}}, "controlPlaneEndpoint": {"host": "127.0.0.1", "port": 20007}}}),
            Plan::Listen(Some(20007)),
        );
    }

    #[test]
    fn a_label_is_enough_to_find_the_cluster_when_it_goes() {
        let going = seen(
            json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DevCluster", "metadata": {"name": "a", "namespace": "n",
            "deletionTimestamp": "2026-01-01T00:00:00Z", "labels": {"cluster.x-k8s.io/cluster-name": "c"}}}),
        );
        assert_eq!(going.cluster, Some(ObjectKey::new("n", "c")));
        assert_eq!(decide(&going), Plan::Release);
    }

    // EX-007: who lacks privileges is told so, and by whom the infrastructure could be managed instead.
    #[test]
    fn what_the_cloud_does_not_do_is_said_until_it_does() {
        let object = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DevCluster",
            "metadata": {"name": "a", "namespace": "n"}});
        let now = Timestamp::UNIX_EPOCH;
        let refused = CloudError::Refused {
            call: Call::CreateLoadBalancer,
            cluster: ObjectKey::new("n", "c"),
            caller: "windlass",
        };
        let failed = |error: ReconcileError, cloud_failed| Done {
            failed: Some(error),
            cloud_failed,
            ..Done::default()
        };
        let said = status(&seen(object.clone()), &failed(cloud_error(&refused), true), now);
        let ready = &said.conditions[0];
        assert_eq!(
            (ready.type_.as_str(), ready.status.as_str(), ready.reason.as_str()),
            ("Ready", "False", "NotAllowed")
        );
        assert!(
            ready.message.contains("CreateLoadBalancer for cluster n/c is refused"),
            "{}",
            ready.message
        );
        assert_eq!(said.initialization, None);
        let other = ReconcileError::new("Conflict", "somebody was faster");
        assert!(
            status(&seen(object.clone()), &failed(other, false), now)
                .conditions
                .is_empty()
        );
        let done = Done {
            provisioned: true,
            ..Done::default()
        };
        assert!(status(&seen(object), &done, now).conditions.is_empty());
    }
}
