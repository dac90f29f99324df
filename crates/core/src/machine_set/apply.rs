//! Carries out the plan of a MachineSet: the only file of it that writes.

use std::sync::Arc;

use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use serde_json::{Map, Value, json};
use windlass_api::core::{Machine, MachineSet};
use windlass_kit::{Cx, EventType, Gvk, ObjectKey, ReconcileError, Seen};

use crate::machine_set::desired::{Leftovers, Metadata};
use crate::machine_set::observed::Observed;
use crate::machine_set::plan::{Action, NewMachine, Plan};
use crate::machine_set::status::Done;
use crate::shared::keys::{conditions, finalizers, managers};
use crate::shared::machines::{conditions_of, name, owner_reference};
use crate::shared::status::{Conditions, Verdict};

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
    let set = &*seen.set;
    let writer = cx.writer();
    match action {
        Action::AdoptSet => {
            let Seen::Found(cluster) = &seen.cluster else {
                return Ok(());
            };
            let owner = owner_reference("Cluster", &cluster.metadata, false);
            writer
                .apply_value(managers::MACHINE_SET, &owned("MachineSet", &set.metadata, &owner))
                .await?;
        }
        Action::AdoptTemplate { patch } => {
            writer.apply_value(managers::MACHINE_SET, patch).await?;
        }
        Action::AdoptMachine { name } => adopt(cx, seen, name, done).await?,
        Action::CreateMachine(new) => {
            create(cx, set, new, done).await?;
        }
        Action::Complete { object } => {
            writer.apply_value(managers::MACHINE_SET, object).await?;
        }
        Action::UpdateMachine(machine) => {
            writer.apply(managers::MACHINE_SET, &**machine).await?;
        }
        Action::UpdateClone {
            object,
            metadata,
            leftovers,
        } => {
            update_clone(cx, object, metadata.as_ref(), leftovers).await?;
        }
        Action::SayRemediation { name, verdict, .. } => {
            say_remediation(cx, seen, name, verdict.as_ref()).await?;
        }
        Action::DeleteMachine { name, why, .. } => delete(cx, seen, name, why).await?,
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

fn find<'a>(seen: &'a Observed, machine: &str) -> Option<&'a Arc<Machine>> {
    let mut all = seen.machines.iter().chain(&seen.orphans);
    all.find(|one| name(&one.metadata) == machine)
}

async fn adopt(cx: &Cx, seen: &Observed, machine: &str, done: &mut Done) -> Result<(), ReconcileError> {
    let Some(machine) = find(seen, machine) else {
        return Ok(());
    };
    let owner = owner_reference("MachineSet", &seen.set.metadata, true);
    let patch = owned("Machine", &machine.metadata, &owner);
    cx.writer().apply_value(managers::MACHINE_SET, &patch).await?;
    let message = format!("Adopted Machine \"{}\"", name(&machine.metadata));
    cx.event(&*seen.set, EventType::Normal, "SuccessfulAdopt", message);
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
    let machine_name = name(&made.metadata).to_owned();
    let owner = owner_reference("Machine", &made.metadata, true);
    done.created.push(made);
    for clone in &new.clones {
        let mut clone = clone.clone();
        clone["metadata"]["ownerReferences"] = json!([owner]);
        if let Err(error) = writer.apply_value(managers::MACHINE_SET, &clone).await {
            let kind = clone["kind"].as_str().unwrap_or_default();
            let message = format!("Failed to create {kind} {machine_name}: {}", error.message());
            cx.event(set, EventType::Warning, "FailedCreate", message);
            return Err(error.into());
        }
    }
    cx.event(
        set,
        EventType::Normal,
        "SuccessfulCreate",
        format!("Created Machine \"{machine_name}\""),
    );
    Ok(())
}

async fn delete(cx: &Cx, seen: &Observed, machine: &str, why: &str) -> Result<(), ReconcileError> {
    let Some(machine) = find(seen, machine) else {
        return Ok(());
    };
    let machine_name = name(&machine.metadata);
    tracing::info!(machine = machine_name, why, "deleting Machine");
    match cx.writer().delete(&**machine).await {
        Ok(_) => {
            let message = format!("Deleted Machine \"{machine_name}\"");
            cx.event(&*seen.set, EventType::Normal, "SuccessfulDelete", message);
            Ok(())
        }
        Err(error) => {
            let message = format!("Failed to delete Machine \"{machine_name}\": {}", error.message());
            cx.event(&*seen.set, EventType::Warning, "FailedDelete", message);
            Err(error.into())
        }
    }
}

async fn say_remediation(
    cx: &Cx,
    seen: &Observed,
    machine: &str,
    verdict: Option<&Verdict>,
) -> Result<(), ReconcileError> {
    let Some(machine) = find(seen, machine) else {
        return Ok(());
    };
    let status = match verdict {
        Some(verdict) => {
            let generation = machine.metadata.generation;
            let mut all = Conditions::new(conditions_of(machine), generation, cx.now());
            all.set(conditions::OWNER_REMEDIATED, verdict.clone());
            json!({ "conditions": all.done() })
        }
        None => json!({}),
    };
    cx.writer()
        .apply_status(managers::MACHINE_SET_REMEDIATION, &**machine, status)
        .await?;
    Ok(())
}

/// The object was made by one apply of everything; what changes later is applied by a manager of its own. A key that goes is
/// taken away by name, after a look at who put it there.
async fn update_clone(
    cx: &Cx,
    object: &Value,
    metadata: Option<&Metadata>,
    leftovers: &Leftovers,
) -> Result<(), ReconcileError> {
    if let Some(metadata) = metadata {
        let mut patch = object.clone();
        patch["metadata"]["labels"] = json!(metadata.labels);
        patch["metadata"]["annotations"] = json!(metadata.annotations);
        cx.writer().apply_value(managers::MACHINE_SET_METADATA, &patch).await?;
    }
    if leftovers.is_empty() {
        return Ok(());
    }
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("/apiVersion"), text("/kind"));
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let key = ObjectKey::new(text("/metadata/namespace"), text("/metadata/name"));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let api: Api<DynamicObject> = Api::namespaced_with(cx.client().clone(), &key.namespace, &resource);
    let live = api.get(&key.name).await.map_err(|error| {
        ReconcileError::new(
            "ReadFailed",
            format!("failed to read {kind} {}/{}: {error}", key.namespace, key.name),
        )
    })?;
    let managed = serde_json::to_value(&live.metadata.managed_fields).unwrap_or_default();
    let labels = ours(&managed, "f:labels", &leftovers.labels);
    let annotations = ours(&managed, "f:annotations", &leftovers.annotations);
    if labels.is_empty() && annotations.is_empty() {
        return Ok(());
    }
    let patch = json!({ "metadata": { "uid": text("/metadata/uid"), "labels": labels, "annotations": annotations } });
    let gvk = Gvk::from_api_version(api_version, kind);
    cx.writer()
        .merge_patch_value(managers::MACHINE_SET_METADATA, &gvk, &key, &patch)
        .await?;
    Ok(())
}

/// Those of the keys that our managers put there and nobody else holds, as a merge patch that removes them.
fn ours(managed: &Value, field: &str, keys: &[String]) -> Map<String, Value> {
    let entries: Vec<&Value> = managed.as_array().into_iter().flatten().collect();
    let mine = |entry: &Value| {
        let manager = entry["manager"].as_str().unwrap_or_default();
        manager == managers::MACHINE_SET || manager == managers::MACHINE_SET_METADATA
    };
    let holds = |entry: &Value, key: &str| {
        let held = &entry["fieldsV1"]["f:metadata"][field];
        held.get(format!("f:{key}")).is_some()
    };
    let lost = keys.iter().filter(|key| {
        let mut holders = entries.iter().filter(|entry| holds(entry, key)).peekable();
        holders.peek().is_some() && holders.all(|entry| mine(entry))
    });
    lost.map(|key| (key.clone(), Value::Null)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_keys_that_nobody_else_holds_are_taken_away() {
        let entry = |manager: &str, key: &str| json!({ "manager": manager, "fieldsV1": { "f:metadata": { "f:labels": { format!("f:{key}"): {} } } } });
        let managed = json!([
            entry("capi-machineset", "team"),
            entry("capi-machineset", "shared"),
            entry("kubectl", "shared"),
            entry("kubectl", "theirs"),
        ]);
        let keys = ["team", "shared", "theirs", "unheld"].map(str::to_owned);
        let found = ours(&managed, "f:labels", &keys);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["team"]);
    }
}
