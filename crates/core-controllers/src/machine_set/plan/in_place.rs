//! Machines that are updated in place: they go from a set with an old template to the one with the new template, where the update begins.
//!
//! The MachineDeployment annotates both sets. A move is one write to the Machine, so it cannot be half done. The update begins with the objects
//! that the Machine refers to; the hook comes last, and the Machine's controller waits for it.

use std::sync::Arc;

use serde_json::{Value, json};
use windlass_api::core::{ContractVersionedObjectReference, Machine, MachineSet};
use windlass_api::meta::MetaExt as _;
use windlass_api::owner;
use windlass_controller_runtime::{Blocked, Dynamic, Note, Seen};
use windlass_runtime_client::marks;

use crate::machine_set::desired;
use crate::machine_set::observed::Observed;
use crate::machine_set::plan::{Action, Beginning, Plan, scale};
use crate::shared::in_place::{acknowledged, is_arriving, is_marked, is_pending, is_under_way, sources};
use crate::shared::keys::annotations::{PENDING_ACKNOWLEDGE_MOVE, PENDING_HOOKS, UPDATE_IN_PROGRESS};
use crate::shared::keys::labels::MACHINE_TEMPLATE_HASH;
use crate::shared::machines::{controller, is_to_be_remediated, owner_reference};

/// Whether a Machine waits for its set to begin the update.
pub(super) fn is_to_begin(machine: &Machine) -> bool {
    is_marked(machine) && !is_pending(machine)
}

/// How many Machines have come from other sets and are not counted in the replicas of this one yet. They are no surplus.
pub(super) fn uncounted(seen: &Observed) -> usize {
    if sources(&seen.set).is_empty() {
        return 0;
    }
    seen.machines.iter().filter(|machine| is_arriving(machine)).count()
}

/// Begins the updates of Machines that have come from other sets.
pub(super) fn begin(seen: &Observed, plan: &mut Plan) {
    let set = &seen.set;
    let takes_machines = !sources(set).is_empty();
    let counted = acknowledged(set);
    let machines = seen.machines.iter().filter(|machine| !machine.metadata.is_deleting());
    for machine in machines.filter(|machine| is_to_begin(machine)) {
        let name = machine.metadata.name();
        if is_arriving(machine) && takes_machines && !counted.contains(name) {
            plan.notes.push(Note::new(format!(
                "the update of Machine {name} waits for the MachineDeployment to count it in this MachineSet"
            )));
            continue;
        }
        match beginning(seen, machine) {
            Ok(beginning) => {
                plan.notes
                    .push(Note::new(format!("the update of Machine {name} in place begins")));
                plan.actions.push(Action::BeginUpdate(Box::new(beginning)));
            }
            Err(why) => {
                let why = format!("the update of Machine {name} in place cannot begin: {why}");
                plan.blocked = Some(Blocked::failed("CannotPlan", why));
            }
        }
    }
}

/// Everything that an update begins with.
fn beginning(seen: &Observed, machine: &Arc<Machine>) -> Result<Beginning, String> {
    let set = &seen.set;
    let name = machine.metadata.name();
    let template = &set.spec.template.spec;
    let mut desired = desired::machine(set, name, Some(machine));
    desired.spec.version = desired::version(set);
    desired.spec.failure_domain.clone_from(&template.failure_domain);
    if machine.spec.bootstrap.config_ref.is_none() {
        let data = &template.bootstrap.data_secret_name;
        desired.spec.bootstrap.data_secret_name.clone_from(data);
    }
    let reference = &template.infrastructure_ref;
    let mut objects = vec![changed(
        seen,
        machine,
        &*scale::template(&seen.infrastructure_template, &reference.kind, &reference.name)?,
        &machine.spec.infrastructure_ref,
        seen.infrastructure.get(name),
    )?];
    if let Some(have) = &machine.spec.bootstrap.config_ref {
        let (Some(reference), Some(read)) = (&template.bootstrap.config_ref, &seen.bootstrap_template) else {
            return Err("the MachineSet has no spec.template.spec.bootstrap.configRef".to_owned());
        };
        let template = scale::template(read, &reference.kind, &reference.name)?;
        objects.push(changed(seen, machine, &template, have, seen.bootstrap.get(name))?);
    }
    let hooks = marks::with_hook(machine.metadata.annotations.as_ref());
    Ok(Beginning {
        machine: machine.clone(),
        desired,
        objects,
        patch: json!({
            "metadata": {
                "uid": machine.metadata.uid,
                "annotations": { (PENDING_ACKNOWLEDGE_MOVE): null, (PENDING_HOOKS): hooks },
            },
        }),
    })
}

/// An object that a Machine refers to, as the new template wants it, with the mark of the update.
fn changed(
    seen: &Observed,
    machine: &Machine,
    template: &Dynamic,
    reference: &ContractVersionedObjectReference,
    have: Option<&Seen<Arc<Dynamic>>>,
) -> Result<Value, String> {
    let (kind, name) = (&reference.kind, &reference.name);
    let have = match have {
        Some(Seen::Found(have)) => have,
        Some(Seen::Failed(why)) => return Err(why.clone()),
        _ => return Err(format!("{kind} {name} does not exist")),
    };
    let mut object = desired::clone_for(&seen.set, template, machine);
    if object["kind"] != have.kind() {
        let wanted = object["kind"].as_str().unwrap_or_default();
        return Err(format!("{kind} {name} cannot become a {wanted}"));
    }
    let metadata = &mut object["metadata"];
    metadata["name"] = json!(have.name());
    metadata["uid"] = json!(have.metadata().uid);
    metadata["annotations"][UPDATE_IN_PROGRESS] = json!("");
    Ok(object)
}

/// Gives Machines that the set has too many to another set. `order` has them in the order in which they would be deleted.
pub(super) fn give(seen: &Observed, target: &str, surplus: usize, order: Vec<&Arc<Machine>>, plan: &mut Plan) {
    let target = match receiver(seen, target) {
        Ok(target) => target,
        Err(why) => {
            plan.notes.push(Note::new(format!("Machines are not moved: {why}")));
            return;
        }
    };
    let doomed = scale::planned_deletions(plan);
    let mut left = surplus;
    for machine in order {
        if left == 0 {
            break;
        }
        let name = machine.metadata.name();
        if machine.metadata.is_deleting() || doomed.iter().any(|one| one == name) {
            left -= 1;
            continue;
        }
        if is_to_be_remediated(machine) {
            left -= 1;
            scale::delete(machine, "it is unhealthy, and is not updated in place", plan);
            continue;
        }
        if is_under_way(machine) {
            let note = format!("Machine {name} is not moved before its update in place is over");
            plan.notes.push(Note::new(note));
            continue;
        }
        if machine.status.as_ref().is_none_or(|status| status.node_ref.is_none()) {
            let note = format!("Machine {name} is not moved before it has a Node");
            plan.notes.push(Note::new(note));
            continue;
        }
        left -= 1;
        plan.notes.push(Note::new(format!(
            "Machine {name} moves to MachineSet {}, where it is updated in place",
            target.metadata.name()
        )));
        plan.actions.push(Action::MoveMachine {
            machine: machine.clone(),
            patch: Box::new(moved(&seen.set, machine, target)),
        });
    }
}

/// The set that takes the Machines, if it does.
fn receiver<'a>(seen: &'a Observed, name: &str) -> Result<&'a MachineSet, String> {
    let set = &seen.set;
    let target = match &seen.target {
        Some(Seen::Found(target)) => target,
        Some(Seen::Failed(why)) => return Err(why.clone()),
        _ => return Err(format!("MachineSet {name} does not exist")),
    };
    let deployment = |set: &MachineSet| controller(&set.metadata).map(|owner| owner.uid.clone());
    if deployment(set).is_none() || deployment(set) != deployment(target) {
        return Err(format!("MachineSet {name} belongs to another MachineDeployment"));
    }
    if target.metadata.is_deleting() {
        return Err(format!("MachineSet {name} is being deleted"));
    }
    if !sources(target).contains(set.metadata.name()) {
        return Err(format!("MachineSet {name} does not take Machines from this one"));
    }
    if target.metadata.label(MACHINE_TEMPLATE_HASH).is_none() {
        return Err(format!("MachineSet {name} has no label {MACHINE_TEMPLATE_HASH}"));
    }
    Ok(target)
}

/// The merge patch of a move. The list of owners is replaced, so the patch is refused when the Machine has changed.
fn moved(from: &MachineSet, machine: &Machine, to: &MachineSet) -> Value {
    let mut owners = machine.metadata.owner_references.clone().unwrap_or_default();
    owners.retain(|owner| owner.uid != from.metadata.uid());
    owner::ensure(&mut owners, owner_reference("MachineSet", &to.metadata, true));
    json!({
        "metadata": {
            "uid": machine.metadata.uid,
            "resourceVersion": machine.metadata.resource_version,
            "ownerReferences": owners,
            "labels": { (MACHINE_TEMPLATE_HASH): to.metadata.label(MACHINE_TEMPLATE_HASH) },
            "annotations": { (UPDATE_IN_PROGRESS): "", (PENDING_ACKNOWLEDGE_MOVE): "" },
        },
    })
}
