//! Carries out what was planned for a Machine. The only file of this controller that writes.

use std::sync::Arc;

use serde_json::{Value, json};
use windlass_api::annotations::{PENDING_HOOKS, UPDATE_IN_PROGRESS};
use windlass_api::core::Machine;
use windlass_api::k8s::Node;
use windlass_api::{finalizers, labels};
use windlass_cluster_cache::Clusters;
use windlass_controller_runtime::{
    ApiClient, Budget, Cx, Dynamic, EventType, ObjectKey, PatchKind, ReconcileError, RequestError, Seen, key_of, owner,
};
use windlass_runtime_client::marks;

use super::drain::Evictions;
use super::observe::Observed;
use super::plan::{Action, External, Plan};
use crate::shared::keys::managers;
use crate::shared::nodes;

/// The field manager of what this controller writes to specs and metadata, as Cluster API names it.
pub(super) const MANAGER: &str = "capi-manager";

/// What became of a plan.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// The first failure.
    pub(crate) failed: Option<ReconcileError>,
    /// The action that failed, if those after it were not tried because of it.
    pub(crate) stopped: Option<Action>,
    /// What became of evictions.
    pub(crate) evictions: Evictions,
}

/// Carries out the actions in order, up to the first that fails. No other action depends on the Node's metadata.
pub(super) async fn apply(cx: &Cx, clusters: &Clusters, seen: &Observed, plan: &Plan) -> Done {
    let mut done = Done::default();
    for action in &plan.actions {
        let Err(error) = carry_out(cx, clusters, seen, action, &mut done.evictions).await else {
            continue;
        };
        warn(cx, &seen.machine, action, &error);
        match action {
            Action::DeleteNode {
                name, required: false, ..
            } => tracing::warn!(node = %name, %error, "the Node stays: the time for its deletion has passed"),
            Action::PatchNode { .. } => done.failed = Some(error),
            _ => {
                done.failed = Some(error);
                done.stopped = Some(action.clone());
                break;
            }
        }
    }
    done
}

/// Emits the event of a failure.
fn warn(cx: &Cx, machine: &Machine, action: &Action, error: &ReconcileError) {
    let (reason, message) = match action {
        Action::Cordon(node) => (
            "FailedDrainNode",
            format!("error draining Machine's node \"{node}\": failed to cordon Node: {error}"),
        ),
        Action::DeleteNode { name, .. } => (
            "FailedDeleteNode",
            format!("error deleting Machine's Node: error deleting node {name}: {error}"),
        ),
        _ => return,
    };
    cx.event(machine, EventType::Warning, reason, message);
}

/// What names the Machine in an apply, and nothing more.
fn itself(machine: &Machine) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": {
            "name": machine.metadata.name,
            "namespace": machine.metadata.namespace,
            "uid": machine.metadata.uid,
        },
    })
}

async fn carry_out(
    cx: &Cx,
    clusters: &Clusters,
    seen: &Observed,
    action: &Action,
    evictions: &mut Evictions,
) -> Result<(), ReconcileError> {
    let machine = &seen.machine;
    match action {
        Action::Own(which) => {
            if let Some(object) = external(seen, *which) {
                cx.writer().apply_value(MANAGER, &ownership(machine, object)).await?;
            }
        }
        Action::Join(owner) => {
            let mut desired = itself(machine);
            desired["metadata"]["labels"] = json!({ (labels::CLUSTER_NAME): machine.spec.cluster_name });
            if let Some(owner) = owner {
                desired["metadata"]["ownerReferences"] = json!([owner]);
            }
            cx.writer().apply_value(managers::MACHINE_MEMBERSHIP, &desired).await?;
        }
        Action::TakeOver(spec) => {
            let mut desired = itself(machine);
            desired["spec"] = spec.clone();
            cx.writer().apply_value(MANAGER, &desired).await?;
        }
        Action::Delete { which, .. } => {
            if let Some(object) = external(seen, *which) {
                cx.writer().delete_value(object).await?;
            }
        }
        Action::Unmark(which) => unmark(cx, seen, *which).await?,
        Action::EndHook => {
            let annotations = json!({ (PENDING_HOOKS): marks::without_hook(machine.metadata.annotations.as_ref()) });
            let patch = json!({ "metadata": { "uid": machine.metadata.uid, "annotations": annotations } });
            let written: Result<Arc<Machine>, _> = cx
                .writer()
                .merge_patch(MANAGER, &key_of(&machine.metadata), &patch)
                .await;
            written?;
        }
        Action::RemoveFinalizer => {
            cx.writer()
                .remove_finalizer(MANAGER, &**machine, finalizers::MACHINE)
                .await?;
        }
        Action::PatchNode { .. } | Action::Cordon(_) | Action::Evict { .. } | Action::DeleteNode { .. } => {
            carry_out_remotely(clusters, machine, action, evictions).await?;
        }
    }
    Ok(())
}

/// Takes the mark of an update in place away.
async fn unmark(cx: &Cx, seen: &Observed, which: Option<External>) -> Result<(), ReconcileError> {
    let patch =
        |uid: Option<&str>| json!({ "metadata": { "uid": uid, "annotations": { (UPDATE_IN_PROGRESS): null } } });
    let writer = cx.writer();
    match which {
        None => {
            let machine = &seen.machine;
            let patch = patch(machine.metadata.uid.as_deref());
            let written: Result<Arc<Machine>, _> =
                writer.merge_patch(MANAGER, &key_of(&machine.metadata), &patch).await;
            written?;
        }
        Some(which) => {
            if let Some(object) = external(seen, which) {
                let patch = patch(Some(object.uid()));
                writer
                    .merge_patch_value(MANAGER, &object.gvk(), &object.key(), &patch)
                    .await?;
            }
        }
    }
    Ok(())
}

/// Writes to the workload cluster. A Node or Pod that is already gone is what was wanted.
async fn carry_out_remotely(
    clusters: &Clusters,
    machine: &Machine,
    action: &Action,
    evictions: &mut Evictions,
) -> Result<(), ReconcileError> {
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
        Action::DeleteNode { name, uid, .. } => {
            nodes::delete(&client, name, uid.as_deref(), &Budget::of(nodes::PATIENCE)).await
        }
        Action::Evict { pods, grace_period } => {
            evict(&client, pods, *grace_period, evictions).await;
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

/// The words for Pods that are left to the next reconcile.
const OUT_OF_TIME: &str = "eviction timeout of 10s reached, eviction will be retried";

/// Asks for evictions. A Pod that may not go yet (a disruption budget) does not keep the others. When a request has no answer, or the time
/// is over, the others are left to the next reconcile.
async fn evict(client: &ApiClient, pods: &[ObjectKey], grace_period: Option<u32>, evictions: &mut Evictions) {
    let budget = Budget::of(nodes::PATIENCE);
    let mut ended = None;
    for pod in pods {
        if let Some(why) = &ended {
            evictions.refuse(pod, String::clone(why));
            continue;
        }
        let Some(answer) = budget.within(client.evict(pod, grace_period)).await else {
            evictions.refuse(pod, OUT_OF_TIME.to_owned());
            ended = Some(OUT_OF_TIME.to_owned());
            continue;
        };
        if let Err(error @ (RequestError::Transport(_) | RequestError::Late(_))) = &answer {
            ended = Some(error.to_string());
        }
        evictions.add(pod, answer);
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
