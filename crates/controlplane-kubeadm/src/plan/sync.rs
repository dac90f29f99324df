//! Changes that need no new Machine, and Machines whose creation was interrupted.

use serde_json::{Value, json};
use windlass_api::annotations::UPDATE_IN_PROGRESS;
use windlass_controller_runtime::KeptMetadata;

use super::{Action, NewMachine, Plan};
use crate::desired;
use crate::facts::{Control, CpMachine, Facts};

/// Makes the Cluster an owner of the template, so that moving and deleting the Cluster takes it along. The uid counts: with the one of
/// an earlier Cluster alone, garbage collection would delete the template.
pub(super) fn own_template(facts: &Facts, plan: &mut Plan) {
    let Some(template) = facts.template.found() else {
        return;
    };
    let owners = template["metadata"]["ownerReferences"].as_array();
    let owned = owners
        .into_iter()
        .flatten()
        .any(|o| o["kind"] == "Cluster" && o["uid"] == facts.cluster.uid.as_str());
    if !owned {
        plan.push(Action::OwnTemplate {
            object: desired::owned_template(facts, template),
        });
    }
}

/// Brings labels, annotations, timeouts and taints to what exists, and completes what was interrupted.
pub(super) fn machines(facts: &Facts, plan: &mut Plan) {
    for machine in facts.machines.iter().filter(|machine| machine.control == Control::Ours) {
        if machine.deleting() {
            if let Some(patch) = desired::late_changes(&facts.control_plane, machine) {
                plan.push(Action::PatchMachine {
                    name: machine.name.clone(),
                    patch,
                });
            }
            continue;
        }
        // Before the Machine, as what it still carries tells what has to go.
        for object in [&machine.config, &machine.infra] {
            if let Some(object) = object.found() {
                metadata(facts, machine, object, plan);
            }
        }
        plan.push(Action::ApplyMachine {
            name: machine.name.clone(),
            object: desired::machine(facts, &machine.name, Some(machine), None),
        });
        complete(facts, machine, plan);
    }
}

fn metadata(facts: &Facts, machine: &CpMachine, object: &Value, plan: &mut Plan) {
    let mut on_machine = KeptMetadata {
        labels: machine.labels.clone(),
        annotations: machine.annotations.clone(),
    };
    // The mark of an update is on both, and is no part of any template.
    on_machine.annotations.remove(UPDATE_IN_PROGRESS);
    let meta = &object["metadata"];
    if meta["deletionTimestamp"].is_null()
        && let Some(change) = desired::kept(facts).change(&on_machine, meta)
    {
        let identity = json!({ "name": meta["name"], "namespace": meta["namespace"], "uid": meta["uid"] });
        let object = json!({
            "apiVersion": object["apiVersion"],
            "kind": object["kind"],
            "metadata": identity,
        });
        plan.push(Action::ChangeMetadata { object, change });
    }
}

/// Makes what a Machine lacks because the program ended between two writes. What was there once is not made again: it was deleted, and
/// the health checks have to notice.
fn complete(facts: &Facts, machine: &CpMachine, plan: &mut Plan) {
    let config = machine.config.is_not_found() && !machine.bootstrap_created;
    let infra = machine.infra.is_not_found() && !machine.infrastructure_provisioned && machine.provider_id.is_none();
    if !config && !infra {
        return;
    }
    let first = facts.machines.len() == 1 && !facts.initialized();
    let infra = infra.then(|| desired::infra_machine(facts, &machine.name));
    let infra = match infra.transpose() {
        Ok(infra) => infra,
        Err(error) => {
            plan.block(error);
            return;
        }
    };
    plan.push(Action::CreateMachine(Box::new(NewMachine {
        name: machine.name.clone(),
        machine: None,
        uid: Some(machine.uid.clone()),
        config: config.then(|| desired::kubeadm_config(facts, &machine.name, !first)),
        infra,
    })));
}
