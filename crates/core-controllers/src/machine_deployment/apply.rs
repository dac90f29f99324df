//! Carries out the plan of a MachineDeployment: the only file of it that writes.

use windlass_api::core::{MachineDeployment, MachineSet};
use windlass_api::meta::MetaExt as _;
use windlass_controller_runtime::{Cx, EventType, ReconcileError, WriteError, key_of};

use crate::machine_deployment::observed::Observed;
use crate::machine_deployment::plan::{Action, Plan};
use crate::machine_deployment::status::Done;
use crate::shared::keys::{finalizers, managers};

pub(super) async fn apply(cx: &Cx, seen: &Observed, plan: &Plan) -> Done {
    let mut done = Done::default();
    for action in &plan.actions {
        if let Err(error) = carry_out(cx, seen, action, &mut done).await {
            done.failed = Some(error);
            break;
        }
    }
    done
}

async fn carry_out(cx: &Cx, seen: &Observed, action: &Action, done: &mut Done) -> Result<(), ReconcileError> {
    let deployment = &*seen.deployment;
    let writer = cx.writer();
    match action {
        Action::SetReplicas(patch) => {
            let key = key_of(&deployment.metadata);
            writer
                .merge_patch::<MachineDeployment>(managers::REPLICAS, &key, patch)
                .await?;
        }
        Action::ApplySelf(patch) | Action::AdoptTemplate(patch) => {
            writer.apply_value(managers::MACHINE_DEPLOYMENT, patch).await?;
        }
        Action::AdoptSet(patch) => {
            let set = patch["metadata"]["name"].as_str().unwrap_or_default();
            if let Err(error) = writer.apply_value(managers::ADOPTION, patch).await {
                let message = format!("Failed to adopt MachineSet \"{set}\": {}", error.message());
                cx.event(deployment, EventType::Warning, "FailedAdopt", message);
                return Err(error.into());
            }
            let message = format!("Adopted MachineSet \"{set}\"");
            cx.event(deployment, EventType::Normal, "SuccessfulAdopt", message);
        }
        Action::ApplySet { set, from } => apply_set(cx, deployment, set, *from, done).await?,
        Action::DeleteSet(set) => delete_set(cx, deployment, set).await?,
        Action::RemoveFinalizer => {
            let finalizer = finalizers::MACHINE_DEPLOYMENT;
            writer
                .remove_finalizer(managers::MACHINE_DEPLOYMENT, deployment, finalizer)
                .await?;
        }
    }
    Ok(())
}

async fn delete_set(cx: &Cx, deployment: &MachineDeployment, set: &MachineSet) -> Result<(), ReconcileError> {
    let set_name = set.metadata.name();
    match cx.writer().delete(set).await {
        Ok(_) => {
            let message = format!("Deleted MachineSet \"{set_name}\"");
            cx.event(deployment, EventType::Normal, "SuccessfulDelete", message);
            Ok(())
        }
        Err(error) => {
            let message = format!("Failed to delete MachineSet \"{set_name}\": {}", error.message());
            cx.event(deployment, EventType::Warning, "FailedDelete", message);
            Err(error.into())
        }
    }
}

async fn apply_set(
    cx: &Cx,
    deployment: &MachineDeployment,
    set: &MachineSet,
    from: Option<i32>,
    done: &mut Done,
) -> Result<(), ReconcileError> {
    let set_name = set.metadata.name();
    let replicas = set.spec.replicas.unwrap_or(0);
    let applied = cx.writer().apply(managers::MACHINE_DEPLOYMENT, set).await;
    match (applied, from) {
        (Ok(applied), None) => {
            let message = format!(
                "Created MachineSet {}/{set_name} with {replicas} replicas",
                set.metadata.namespace()
            );
            cx.event(deployment, EventType::Normal, "SuccessfulCreate", message);
            done.created.push(applied.object);
        }
        (Ok(_), Some(from)) if from != replicas => {
            let way = if from < replicas { "up" } else { "down" };
            let message = format!("Scaled {way} MachineSet {set_name}: {from} -> {replicas}");
            cx.event(deployment, EventType::Normal, "SuccessfulScale", message);
        }
        (Ok(_), Some(_)) => {}
        (Err(error), from) => {
            failed(cx, deployment, set_name, from, replicas, &error);
            return Err(error.into());
        }
    }
    Ok(())
}

fn failed(cx: &Cx, deployment: &MachineDeployment, set: &str, from: Option<i32>, replicas: i32, error: &WriteError) {
    let why = error.message();
    let (reason, message) = match from {
        None => ("FailedCreate", format!("Failed to create MachineSet {set}: {why}")),
        Some(from) if from != replicas => (
            "FailedScale",
            format!("Failed to scale MachineSet {set}: {from} -> {replicas}: {why}"),
        ),
        Some(_) => ("FailedUpdate", format!("Failed to update MachineSet {set}: {why}")),
    };
    cx.event(deployment, EventType::Warning, reason, message);
}
