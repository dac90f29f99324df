//! As many Machines as desired: making missing ones, choosing which ones go.

use std::sync::Arc;

use windlass_api::core::{Machine, MachineSet};
use windlass_api::meta::MetaExt as _;
use windlass_contract::is_template;
use windlass_controller_runtime::{Dynamic, Note, Seen};

use crate::machine_set::desired;
use crate::machine_set::observed::Observed;
use crate::machine_set::plan::{Action, NewMachine, Obstacle, Plan, in_place};
use crate::shared::deletion_order::DeletionClass;
use crate::shared::keys::annotations;
use crate::shared::machines::deletion_class;
use crate::shared::naming::machine_name;
use crate::shared::numbers::len_i32;

/// Makes or deletes Machines until there are as many as desired. Machines being deleted count until they are gone.
///
/// Machines that are being adopted count as present, so that none is made beside them. They are no surplus before the set controls them:
/// the adoption may fail, and one of them may be the first to go.
pub(super) fn scale(seen: &Observed, checks: Result<Vec<String>, String>, plan: &mut Plan) {
    let controlled = len_i32(seen.machines.len());
    let present = len_i32(seen.machines.len() + seen.orphans.len());
    let want = desired::replicas(&seen.set);
    if present < want {
        let missing = usize::try_from(want - present).unwrap_or(0);
        grow(seen, missing, checks, plan);
    } else {
        let surplus = controlled - len_i32(in_place::uncounted(seen)) - want;
        shrink(seen, usize::try_from(surplus).unwrap_or(0), plan);
    }
}

fn grow(seen: &Observed, missing: usize, checks: Result<Vec<String>, String>, plan: &mut Plan) {
    if seen.set.metadata.annotation(annotations::DISABLE_MACHINE_CREATE) == Some("true") {
        plan.notes.push(Note::new(format!(
            "{missing} Machines are missing, but the annotation {} disables their creation",
            annotations::DISABLE_MACHINE_CREATE
        )));
        return;
    }
    match checks {
        Ok(found) if found.is_empty() => {}
        Ok(found) => {
            plan.obstacle = Some(Obstacle::Preflight(found));
            return;
        }
        Err(why) => {
            plan.obstacle = Some(Obstacle::Other(why));
            return;
        }
    }
    let mut taken: Vec<String> = seen.machines.iter().map(|m| m.metadata.name().to_owned()).collect();
    for suffix in seen.suffixes.iter().take(missing) {
        match new_machine(seen, suffix) {
            Ok(new)
                if taken
                    .iter()
                    .any(|name| Some(name) == new.machine.metadata.name.as_ref()) =>
            {
                let why =
                    "spec.machineNaming.template gives the same name to several Machines; use {{ .random }} in it";
                plan.obstacle = Some(Obstacle::Other(why.to_owned()));
                return;
            }
            Ok(new) => {
                taken.extend(new.machine.metadata.name.clone());
                plan.actions.push(Action::CreateMachine(Box::new(new)));
            }
            Err(obstacle) => {
                plan.obstacle = Some(obstacle);
                return;
            }
        }
    }
}

/// A template, or why it cannot be cloned.
pub(super) fn template(seen: &Seen<Arc<Dynamic>>, kind: &str, object: &str) -> Result<Arc<Dynamic>, String> {
    match seen {
        Seen::Found(template) if !is_template(template.value()) => Err(format!(
            "{kind} {object} is no template, it has no spec.template: refer to an object that has one"
        )),
        Seen::Found(template) => Ok(template.clone()),
        Seen::NotFound => Err(format!("{kind} {object} does not exist")),
        Seen::Failed(why) => Err(why.clone()),
    }
}

fn new_machine(seen: &Observed, suffix: &str) -> Result<NewMachine, Obstacle> {
    let set = &seen.set;
    let naming = set
        .spec
        .machine_naming
        .as_ref()
        .and_then(|naming| naming.template.as_deref());
    let machine_name = machine_name(naming, &set.spec.cluster_name, set.metadata.name(), suffix)
        .map_err(|why| Obstacle::Other(format!("spec.{why}")))?;
    let machine = desired::machine(set, &machine_name, None);
    let spec = &set.spec.template.spec;
    let mut clones = Vec::new();
    if let (Some(reference), Some(read)) = (&spec.bootstrap.config_ref, &seen.bootstrap_template) {
        let object = template(read, &reference.kind, &reference.name).map_err(Obstacle::Bootstrap)?;
        clones.push(desired::clone_for(set, &object, &machine));
    }
    let reference = &spec.infrastructure_ref;
    let object =
        template(&seen.infrastructure_template, &reference.kind, &reference.name).map_err(Obstacle::Infrastructure)?;
    clones.push(desired::clone_for(set, &object, &machine));
    Ok(NewMachine { machine, clones })
}

/// The Machines of a set in the order in which they go when it shrinks.
pub(crate) fn in_deletion_order<'a>(set: &MachineSet, machines: &'a [Arc<Machine>]) -> Vec<&'a Arc<Machine>> {
    let deletion = set.spec.deletion.as_ref();
    let order = deletion.and_then(|deletion| deletion.order.as_deref());
    let mut candidates: Vec<&Arc<Machine>> = machines.iter().collect();
    candidates.sort_by(|a, b| {
        let age = a.metadata.created().cmp(&b.metadata.created());
        let age = match order {
            Some("Oldest") => age,
            Some("Newest") => age.reverse(),
            _ => std::cmp::Ordering::Equal,
        };
        let class = deletion_class(a).cmp(&deletion_class(b));
        class.then(age).then_with(|| a.metadata.name().cmp(b.metadata.name()))
    });
    candidates
}

fn shrink(seen: &Observed, surplus: usize, plan: &mut Plan) {
    if surplus == 0 {
        return;
    }
    let candidates = in_deletion_order(&seen.set, &seen.machines);
    let target = seen.set.metadata.annotation(annotations::MOVE_MACHINES_TO_MACHINE_SET);
    if let Some(target) = target.filter(|target| !target.is_empty()) {
        in_place::give(seen, target, surplus, candidates, plan);
        return;
    }
    let doomed = planned_deletions(plan);
    for machine in candidates.into_iter().take(surplus) {
        if machine.metadata.is_deleting() || doomed.iter().any(|one| one == machine.metadata.name()) {
            continue;
        }
        let why = match deletion_class(machine) {
            DeletionClass::Annotated => "there are more Machines than desired, and it is marked to go first",
            DeletionClass::Updating => "there are more Machines than desired, and it is not updated yet",
            DeletionClass::Unhealthy => "there are more Machines than desired, and it is not healthy",
            _ => "there are more Machines than desired",
        };
        delete(machine, why, plan);
    }
}

/// The Machines that are deleted, by name.
pub(super) fn planned_deletions(plan: &Plan) -> Vec<String> {
    let names = plan.actions.iter().filter_map(|action| match action {
        Action::DeleteMachine(machine) => Some(machine.metadata.name().to_owned()),
        _ => None,
    });
    names.collect()
}

/// Deletes one Machine, and notes why.
pub(super) fn delete(machine: &Arc<Machine>, why: &str, plan: &mut Plan) {
    let note = format!("Machine {} is deleted: {why}", machine.metadata.name());
    plan.notes.push(Note::new(note));
    plan.actions.push(Action::DeleteMachine(machine.clone()));
}
