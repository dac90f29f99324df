//! Carries out the plan of a MachineSet: the only file of it that writes.

use std::sync::Arc;

use serde_json::{Value, json};
use windlass_api::core::{Machine, MachineSet};
use windlass_api::meta::MetaExt as _;
use windlass_conditions::{Builder, Draft};
use windlass_controller_runtime::{Cx, ErrorKind, EventType, ReconcileError, Seen, Triage as _, WriteError, key_of};

use crate::machine_set::observed::Observed;
use crate::machine_set::plan::{Action, Beginning, NewMachine, Plan};
use crate::machine_set::status::Done;
use crate::shared::keys::{conditions, finalizers, labels, managers};
use crate::shared::machines::{conditions_of, owner_reference};

/// One Machine does not hold up another: what the server refuses for one of them is reported, and the rest goes on. No further Machine is
/// made then, as the server would refuse it alike, and nothing more is tried when the server does not answer.
pub(super) async fn apply(cx: &Cx, seen: &Observed, plan: &Plan) -> Done {
    let mut done = Done::default();
    for action in &plan.actions {
        if done.failed.is_some() && action.waits_for_success() {
            continue;
        }
        if let Err(error) = carry_out(cx, seen, action, &mut done).await {
            let silent = error.reason() == ErrorKind::Transport.reason();
            done.failed.get_or_insert(error);
            if silent {
                break;
            }
        }
    }
    done
}

async fn carry_out(cx: &Cx, seen: &Observed, action: &Action, done: &mut Done) -> Result<(), ReconcileError> {
    let set = &*seen.set;
    let writer = cx.writer();
    match action {
        Action::SetReplicas(patch) => {
            let key = key_of(&set.metadata);
            writer
                .merge_patch::<MachineSet>(managers::REPLICAS, &key, patch)
                .await?;
        }
        Action::AdoptSet => {
            let Seen::Found(cluster) = &seen.cluster else {
                return Ok(());
            };
            let owner = owner_reference("Cluster", &cluster.metadata, false);
            let mut adopted = owned("MachineSet", &set.metadata, &owner);
            adopted["metadata"]["labels"] = json!({ labels::CLUSTER_NAME: set.spec.cluster_name });
            writer.apply_value(managers::ADOPTION, &adopted).await?;
        }
        Action::AdoptTemplate { patch } => {
            writer.apply_value(managers::MACHINE_SET, patch).await?;
        }
        Action::AdoptMachine(machine) => adopt(cx, set, machine, done).await?,
        Action::CreateMachine(new) => {
            create(cx, set, new, done).await?;
        }
        Action::Complete { object } => {
            let sent = writer.apply_value(managers::MACHINE_SET, object).await;
            let made = object["metadata"]["name"].as_str().unwrap_or_default();
            sent.map_err(|error| not_cloned(cx, set, object, made, error))?;
        }
        Action::UpdateMachine(machine) => {
            writer.apply(managers::MACHINE_SET, &**machine).await?;
        }
        Action::ChangeDeletion { machine, patch } => {
            let key = key_of(&machine.metadata);
            let sent = writer.merge_patch::<Machine>(managers::MACHINE_SET, &key, patch).await;
            // What is gone needs no limits.
            if let Err(error) = sent
                && !error.is_not_found()
            {
                return Err(error.into());
            }
        }
        Action::UpdateClone { object, change } => {
            writer
                .change_metadata(managers::MACHINE_SET, managers::MACHINE_SET_METADATA, object, change)
                .await?;
        }
        Action::SayRemediation { machine, verdict } => {
            say_remediation(cx, machine, verdict.as_ref()).await?;
        }
        Action::MoveMachine { machine, patch } => {
            let key = key_of(&machine.metadata);
            writer
                .merge_patch::<Machine>(managers::MACHINE_SET, &key, patch)
                .await?;
        }
        Action::BeginUpdate(beginning) => begin_update(cx, beginning).await?,
        Action::DeleteMachine(machine) => delete(cx, set, machine).await?,
        Action::RemoveFinalizer => {
            writer
                .remove_finalizer(managers::MACHINE_SET, set, finalizers::MACHINE_SET)
                .await?;
        }
    }
    Ok(())
}

fn owned(
    kind: &str,
    meta: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
    owner: &k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference,
) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": kind,
        "metadata": {
            "name": meta.name,
            "namespace": meta.namespace,
            "uid": meta.uid,
            "ownerReferences": [owner],
        },
    })
}

async fn adopt(cx: &Cx, set: &MachineSet, machine: &Arc<Machine>, done: &mut Done) -> Result<(), ReconcileError> {
    let owner = owner_reference("MachineSet", &set.metadata, true);
    let patch = owned("Machine", &machine.metadata, &owner);
    let name = machine.metadata.name();
    if let Err(error) = cx.writer().apply_value(managers::ADOPTION, &patch).await {
        let message = format!("Failed to adopt Machine \"{name}\": {}", error.message());
        cx.event(set, EventType::Warning, "FailedAdopt", message);
        return Err(error.into());
    }
    cx.event(
        set,
        EventType::Normal,
        "SuccessfulAdopt",
        format!("Adopted Machine \"{name}\""),
    );
    done.adopted.push(machine.clone());
    Ok(())
}

/// The Machine comes first: what it refers to is made with its owner at once, and nothing is left behind without one when
/// we are stopped in between.
async fn create(cx: &Cx, set: &MachineSet, new: &NewMachine, done: &mut Done) -> Result<(), ReconcileError> {
    let writer = cx.writer();
    let made = match writer.apply(managers::MACHINE_SET, &new.machine).await {
        Ok(applied) => applied.object,
        Err(error) => {
            let message = format!("Failed to create Machine: {}", error.message());
            cx.event(set, EventType::Warning, "FailedCreate", message);
            return Err(error.into());
        }
    };
    let machine_name = made.metadata.name().to_owned();
    let owner = owner_reference("Machine", &made.metadata, true);
    done.created.push(made);
    for clone in &new.clones {
        let mut clone = clone.clone();
        clone["metadata"]["ownerReferences"] = json!([owner]);
        let sent = writer.apply_value(managers::MACHINE_SET, &clone).await;
        sent.map_err(|error| not_cloned(cx, set, &clone, &machine_name, error))?;
    }
    cx.event(
        set,
        EventType::Normal,
        "SuccessfulCreate",
        format!("Created Machine \"{machine_name}\""),
    );
    Ok(())
}

/// Emits the event of an object that could not be made for a Machine.
fn not_cloned(cx: &Cx, set: &MachineSet, clone: &Value, machine: &str, error: WriteError) -> ReconcileError {
    let kind = clone["kind"].as_str().unwrap_or_default();
    let message = format!("Failed to create {kind} {machine}: {}", error.message());
    cx.event(set, EventType::Warning, "FailedCreate", message);
    error.into()
}

/// Every step can be done again: the hook, which ends them, comes last.
async fn begin_update(cx: &Cx, beginning: &Beginning) -> Result<(), ReconcileError> {
    let machine = &*beginning.machine;
    let name = machine.metadata.name();
    let begun = write_update(cx, beginning).await;
    match begun {
        Ok(()) => {
            let message = "Machine starting in-place update".to_owned();
            cx.event(machine, EventType::Normal, "SuccessfulStartInPlaceUpdate", message);
            Ok(())
        }
        Err(error) => {
            let message = format!("Failed to start in-place update of Machine {name}: {}", error.message());
            cx.event(machine, EventType::Warning, "FailedStartInPlaceUpdate", message);
            Err(error.into())
        }
    }
}

async fn write_update(cx: &Cx, beginning: &Beginning) -> Result<(), WriteError> {
    let writer = cx.writer();
    for object in &beginning.objects {
        writer.release_early(managers::MACHINE_SET, object).await?;
        writer.apply_value(managers::MACHINE_SET, object).await?;
    }
    writer.apply(managers::MACHINE_SET, &beginning.desired).await?;
    let key = key_of(&beginning.machine.metadata);
    writer
        .merge_patch::<Machine>(managers::MACHINE_SET, &key, &beginning.patch)
        .await?;
    Ok(())
}

async fn delete(cx: &Cx, set: &MachineSet, machine: &Machine) -> Result<(), ReconcileError> {
    let machine_name = machine.metadata.name();
    match cx.writer().delete(machine).await {
        Ok(_) => {
            let message = format!("Deleted Machine \"{machine_name}\"");
            cx.event(set, EventType::Normal, "SuccessfulDelete", message);
            Ok(())
        }
        Err(error) => {
            let message = format!("Failed to delete Machine \"{machine_name}\": {}", error.message());
            cx.event(set, EventType::Warning, "FailedDelete", message);
            Err(error.into())
        }
    }
}

async fn say_remediation(cx: &Cx, machine: &Machine, verdict: Option<&Draft>) -> Result<(), ReconcileError> {
    let status = match verdict {
        Some(verdict) => {
            let generation = machine.metadata.generation;
            let mut all = Builder::new(conditions_of(machine), generation, cx.now());
            all.set(conditions::OWNER_REMEDIATED, verdict.clone());
            json!({ "conditions": all.done() })
        }
        None => json!({}),
    };
    cx.writer()
        .apply_status(managers::MACHINE_SET_REMEDIATION, machine, status)
        .await?;
    Ok(())
}
