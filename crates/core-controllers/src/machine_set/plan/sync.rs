//! Owners, and what changes on Machines in place.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use windlass_api::core::{ContractVersionedObjectReference, Machine};
use windlass_api::meta::MetaExt as _;
use windlass_contract::is_template;
use windlass_controller_runtime::{Dynamic, KeptMetadata, Seen};

use crate::machine_set::desired;
use crate::machine_set::observed::Observed;
use crate::machine_set::plan::{Action, Plan, in_place, is_standalone};
use crate::shared::keys::annotations::UPDATE_IN_PROGRESS;
use crate::shared::keys::labels;
use crate::shared::machines::owner_reference;
use crate::shared::templates;

/// A set of its own, and its templates, belong to the Cluster; a matching Machine without a controller belongs to the set.
pub(super) fn owners(seen: &Observed, plan: &mut Plan) {
    let Seen::Found(cluster) = &seen.cluster else { return };
    let cluster_uid = cluster.metadata.uid();
    if is_standalone(seen) {
        let owners = seen.set.metadata.owner_references.iter().flatten();
        let labelled = seen.set.metadata.label(labels::CLUSTER_NAME) == Some(&seen.set.spec.cluster_name);
        if !labelled || !owners.clone().any(|owner| owner.uid == cluster_uid) {
            plan.actions.push(Action::AdoptSet);
        }
        let templates = seen.bootstrap_template.iter().chain([&seen.infrastructure_template]);
        for template in templates.filter_map(Seen::found) {
            let owner = owner_reference("Cluster", &cluster.metadata, false);
            let patch = templates::adopt(template, &owner);
            plan.actions
                .extend(patch.map(|patch| Action::AdoptTemplate { patch: Box::new(patch) }));
        }
    }
    plan.actions
        .extend(seen.orphans.iter().cloned().map(Action::AdoptMachine));
}

/// Completes Machines whose creation was interrupted, and changes in place what may be changed.
pub(super) fn machines(seen: &Observed, plan: &mut Plan) {
    for machine in &seen.machines {
        if machine.metadata.is_deleting() {
            // The limits of a drain that hangs are changed where the user declared them.
            let patch = desired::late_changes(&seen.set, machine);
            plan.actions.extend(patch.map(|patch| Action::ChangeDeletion {
                machine: Arc::clone(machine),
                patch: Box::new(patch),
            }));
            continue;
        }
        let machine_name = machine.metadata.name();
        let status = machine
            .status
            .as_ref()
            .and_then(|status| status.initialization.as_ref());
        // A Machine with a host was complete once, also when a backup has restored it without its status.
        let has_host = machine.spec.provider_id.is_some()
            || status.and_then(|status| status.infrastructure_provisioned) == Some(true);
        let bootstrapped = has_host
            || machine.spec.bootstrap.data_secret_name.is_some()
            || status.and_then(|status| status.bootstrap_data_secret_created) == Some(true);
        let reference = machine.spec.bootstrap.config_ref.as_ref();
        let template = seen.bootstrap_template.as_ref();
        complete(seen, machine, reference, &seen.bootstrap, template, bootstrapped, plan);
        let reference = Some(&machine.spec.infrastructure_ref);
        let template = Some(&seen.infrastructure_template);
        complete(seen, machine, reference, &seen.infrastructure, template, has_host, plan);
        if in_place::is_to_begin(machine) {
            // It is written whole then.
            continue;
        }
        for clones in [&seen.infrastructure, &seen.bootstrap] {
            if let Some(Seen::Found(clone)) = clones.get(machine_name) {
                update_clone(seen, machine, clone, plan);
            }
        }
        plan.actions.push(Action::UpdateMachine(Box::new(desired::machine(
            &seen.set,
            machine_name,
            Some(machine),
        ))));
    }
}

/// A Machine is made before what it refers to, so that this can be made with its owner at once. Should we be stopped in between,
/// the next look at the Machine finds it incomplete. A Machine that refers to another name was made by a user, who brings that object.
fn complete(
    seen: &Observed,
    machine: &Machine,
    reference: Option<&ContractVersionedObjectReference>,
    clones: &BTreeMap<String, Seen<Arc<Dynamic>>>,
    template: Option<&Seen<Arc<Dynamic>>>,
    done: bool,
    plan: &mut Plan,
) {
    let Some(Seen::NotFound) = clones.get(machine.metadata.name()) else {
        return;
    };
    let Some(Seen::Found(template)) = template else { return };
    let is_ours = reference.is_some_and(|reference| reference.name == machine.metadata.name());
    if done || !is_ours || !is_template(template.value()) {
        return;
    }
    let object = desired::clone_for(&seen.set, template, machine);
    plan.actions.push(Action::Complete {
        object: Box::new(object),
    });
}

fn update_clone(seen: &Observed, machine: &Machine, clone: &Dynamic, plan: &mut Plan) {
    if clone.is_deleting() {
        return;
    }
    let mut on_machine = KeptMetadata {
        labels: machine.metadata.labels.clone().unwrap_or_default(),
        annotations: machine.metadata.annotations.clone().unwrap_or_default(),
    };
    // The mark of an update is on both, and is no part of any template.
    on_machine.annotations.remove(UPDATE_IN_PROGRESS);
    let Some(change) = desired::kept(&seen.set).change(&on_machine, &clone.value()["metadata"]) else {
        return;
    };
    let object: Value = json!({
        "apiVersion": clone.api_version(),
        "kind": clone.kind(),
        "metadata": {
            "name": clone.name(),
            "namespace": clone.metadata().namespace,
            "uid": clone.metadata().uid,
        },
    });
    plan.actions.push(Action::UpdateClone {
        object: Box::new(object),
        change,
    });
}
