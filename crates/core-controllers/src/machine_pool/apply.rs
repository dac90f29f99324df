//! Carries out what was planned for a MachinePool. The only file of this controller that writes.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use windlass_api::core::Machine;
use windlass_api::finalizers;
use windlass_api::k8s::Node;
use windlass_api::labels;
use windlass_api::meta::MetaExt as _;
use windlass_cluster_cache::Clusters;
use windlass_controller_runtime::{
    ApiClient, Budget, Cx, Dynamic, ErrorKind, EventType, ObjectKey, PatchKind, ReconcileError, RequestError, Seen,
    Triage as _, key_of, owner,
};

use super::observe::Observed;
use super::plan::{Action, External, Plan};
use crate::shared::keys::managers;
use crate::shared::{nodes, owners};

/// What became of a plan.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// The first action that failed.
    pub(crate) failed: Option<ReconcileError>,
    /// The Nodes that were deleted, by name.
    pub(crate) deleted: BTreeSet<String>,
}

/// One action does not hold up another: what is refused for one object is reported, and the rest goes on. After a refusal no further Machine is
/// made, as the server would refuse it alike, and the pool is not let go. Nothing more is tried when the server does not answer.
pub(super) async fn apply(cx: &Cx, clusters: &Clusters, seen: &Observed, plan: &Plan) -> Done {
    let mut done = Done::default();
    let budget = Budget::of(nodes::PATIENCE);
    for action in &plan.actions {
        if done.failed.is_some() && waits_for_success(action) {
            continue;
        }
        let Err(error) = carry_out(cx, clusters, seen, action, &budget, &mut done).await else {
            continue;
        };
        if matches!(action, Action::DeleteNode { required: false, .. }) {
            continue;
        }
        let silent = error.reason() == ErrorKind::Transport.reason();
        done.failed.get_or_insert(error);
        if silent {
            break;
        }
    }
    done
}

fn waits_for_success(action: &Action) -> bool {
    matches!(
        action,
        Action::RemoveFinalizer | Action::ApplyMachine { is_new: true, .. }
    )
}

async fn carry_out(
    cx: &Cx,
    clusters: &Clusters,
    seen: &Observed,
    action: &Action,
    budget: &Budget,
    done: &mut Done,
) -> Result<(), ReconcileError> {
    let pool = &*seen.pool;
    let writer = cx.writer();
    match action {
        Action::Join(owner) => {
            let mut desired = itself(seen);
            desired["metadata"]["labels"] = json!({ (labels::CLUSTER_NAME): pool.spec.cluster_name });
            if let Some(owner) = owner {
                desired["metadata"]["ownerReferences"] = json!([owner]);
            }
            writer.apply_value(managers::MACHINE_POOL_MEMBERSHIP, &desired).await?;
        }
        Action::Own(which) => {
            if let Some(object) = external(seen, *which) {
                let desired = ownership(seen, object);
                writer.apply_value(managers::MACHINE_POOL, &desired).await?;
            }
        }
        Action::RenewOwner(which) => {
            if let Some(object) = external(seen, *which) {
                let patch = owners::renewed(object.metadata(), &owner::controller_ref(pool));
                writer
                    .merge_patch_value(managers::MACHINE_POOL, &object.gvk(), &object.key(), &patch)
                    .await?;
            }
        }
        Action::RenewMachineOwner(machine) => {
            let patch = owners::renewed(&machine.metadata, &owner::controller_ref(pool));
            let key = key_of(&machine.metadata);
            writer
                .merge_patch::<Machine>(managers::MACHINE_POOL_MACHINES, &key, &patch)
                .await?;
        }
        Action::TakeOver(spec) => {
            let mut desired = itself(seen);
            desired["spec"] = spec.clone();
            writer.apply_value(managers::MACHINE_POOL, &desired).await?;
        }
        Action::ApplyMachine { machine, is_new } => apply_machine(cx, seen, machine, *is_new).await?,
        Action::Delete(which) => {
            if let Some(object) = external(seen, *which) {
                writer.delete_value(object).await?;
            }
        }
        Action::PatchNode { name, patch } => {
            let key = ObjectKey::cluster_scoped(name.as_str());
            let client = client(clusters, seen)?;
            settled(seen, client.patch::<Node>("", &key, PatchKind::Merge, patch).await)?;
        }
        Action::DeleteNode { name, uid, .. } => {
            let client = client(clusters, seen)?;
            settled(seen, nodes::delete(&client, name, uid.as_deref(), budget).await)?;
            done.deleted.insert(name.clone());
        }
        Action::RemoveFinalizer => {
            writer
                .remove_finalizer(managers::MACHINE_POOL, pool, finalizers::MACHINE_POOL)
                .await?;
        }
    }
    Ok(())
}

async fn apply_machine(cx: &Cx, seen: &Observed, machine: &Machine, is_new: bool) -> Result<(), ReconcileError> {
    let pool = &*seen.pool;
    let name = machine.metadata.name();
    let applied = cx.writer().apply(managers::MACHINE_POOL_MACHINES, machine).await;
    let say = |kind, reason: &str, message: String| cx.event(pool, kind, reason, message);
    match applied {
        Ok(_) if is_new => say(
            EventType::Normal,
            "SuccessfulCreate",
            format!("Created Machine \"{name}\""),
        ),
        Ok(_) => {}
        Err(error) if is_new => {
            let message = format!("Failed to create Machine \"{name}\": {}", error.message());
            say(EventType::Warning, "FailedCreate", message);
            return Err(error.into());
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// A client of the workload cluster.
fn client(clusters: &Clusters, seen: &Observed) -> Result<ApiClient, ReconcileError> {
    let key = cluster_key(seen);
    let connection = clusters
        .get(&key)
        .map_err(|why| ReconcileError::new("ConnectionDown", format!("workload cluster {key}: {why}")))?;
    Ok(ApiClient::from(connection.client()))
}

/// A Node that is gone needs nothing.
fn settled(seen: &Observed, answer: Result<(), RequestError>) -> Result<(), ReconcileError> {
    match answer {
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(ReconcileError::new(
            "RemoteRequestFailed",
            format!("workload cluster {}: {error}", cluster_key(seen)),
        )),
        Ok(()) => Ok(()),
    }
}

fn cluster_key(seen: &Observed) -> ObjectKey {
    ObjectKey::new(seen.pool.metadata.namespace(), seen.pool.spec.cluster_name.as_str())
}

/// The part of the pool that names it.
fn itself(seen: &Observed) -> Value {
    let metadata = &seen.pool.metadata;
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachinePool",
        "metadata": { "name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid },
    })
}

/// The part of a referenced object that makes it the pool's.
fn ownership(seen: &Observed, object: &Dynamic) -> Value {
    let pool = &*seen.pool;
    json!({
        "apiVersion": object.api_version(),
        "kind": object.kind(),
        "metadata": {
            "name": object.name(),
            "namespace": pool.metadata.namespace,
            "uid": object.uid(),
            "labels": { (labels::CLUSTER_NAME): pool.spec.cluster_name },
            "ownerReferences": [owner::controller_ref(pool)],
        },
    })
}

fn external(seen: &Observed, which: External) -> Option<&Dynamic> {
    let object = match which {
        External::Bootstrap => seen.bootstrap.as_ref(),
        External::Infrastructure => Some(&seen.infrastructure),
    };
    object.and_then(Seen::found).map(|object| &**object)
}

impl windlass_controller_runtime::Done for Done {
    fn failed(&self) -> Option<&ReconcileError> {
        self.failed.as_ref()
    }
}
