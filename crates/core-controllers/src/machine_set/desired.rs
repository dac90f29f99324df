//! The objects a MachineSet makes: Machines, bootstrap objects and infrastructure objects.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};
use windlass_api::core::{
    Bootstrap, ContractVersionedObjectReference, Machine, MachineDeletionSpec, MachineSet, MachineSpec,
};
use windlass_api::meta::MetaExt as _;
use windlass_contract::{Cloning, clone_template};
use windlass_controller_runtime::{Dynamic, KeptMetadata};
use windlass_meta::label_or_hash;

use crate::shared::keys::{annotations, finalizers, labels};
use crate::shared::machines::owner_reference;
use crate::shared::templates;

/// Seconds for which the Machine controller tries to delete a Node, when unset.
const NODE_DELETION_TIMEOUT: i32 = 10;

/// Desired replicas: what is written, else the default.
pub(crate) fn replicas(set: &MachineSet) -> i32 {
    set.spec
        .replicas
        .unwrap_or_else(|| default_replicas(&set.metadata, None))
}

/// The replicas of an object that leaves them out: the number it had `before`, kept within the bounds of an autoscaler if it has
/// both, else one. A new object starts at the lower bound. Bounds that are no numbers change nothing.
pub(crate) fn default_replicas(meta: &ObjectMeta, before: Option<i32>) -> i32 {
    let (min, max) = match (
        meta.annotation(annotations::AUTOSCALER_MIN_SIZE),
        meta.annotation(annotations::AUTOSCALER_MAX_SIZE),
    ) {
        (Some(min), Some(max)) => (min.parse(), max.parse()),
        _ => return 1,
    };
    match (min, max, before) {
        (Ok(min), Ok(_), None) => min,
        (Ok(min), Ok(_), Some(before)) if before < min => min,
        (Ok(_), Ok(max), Some(before)) => before.min(max),
        (_, _, before) => before.unwrap_or(1),
    }
}

/// A merge patch of the replicas of an object that leaves them out. It is refused when the object has changed.
pub(crate) fn replicas_patch(meta: &ObjectMeta, replicas: i32) -> Value {
    json!({
        "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version},
        "spec": {"replicas": replicas},
    })
}

/// The labels of a set's Machines and of what belongs to them.
pub(crate) fn machine_labels(set: &MachineSet) -> BTreeMap<String, String> {
    let template = set.spec.template.metadata.as_ref();
    let mut all = template.map(|meta| meta.labels.clone()).unwrap_or_default();
    for (key, value) in set.spec.selector.match_labels.iter().flatten() {
        all.entry(key.clone()).or_insert_with(|| value.clone());
    }
    all.insert(labels::CLUSTER_NAME.to_owned(), set.spec.cluster_name.clone());
    all.insert(labels::MACHINE_SET_NAME.to_owned(), label_or_hash(set.metadata.name()));
    if let Some(deployment) = set.metadata.label(labels::MACHINE_DEPLOYMENT_NAME) {
        all.insert(labels::MACHINE_DEPLOYMENT_NAME.to_owned(), deployment.to_owned());
    }
    all
}

/// The annotations of a set's Machines and of what belongs to them.
pub(crate) fn machine_annotations(set: &MachineSet) -> BTreeMap<String, String> {
    let template = set.spec.template.metadata.as_ref();
    template.map(|meta| meta.annotations.clone()).unwrap_or_default()
}

fn clone_reference(template: &ContractVersionedObjectReference, machine: &str) -> ContractVersionedObjectReference {
    let kind = template.kind.strip_suffix("Template").unwrap_or(&template.kind);
    ContractVersionedObjectReference {
        api_group: template.api_group.clone(),
        kind: kind.to_owned(),
        name: machine.to_owned(),
    }
}

/// Limits of deletion, with the default that admission sets.
fn completed(deletion: Option<&MachineDeletionSpec>) -> MachineDeletionSpec {
    let deletion = deletion.cloned().unwrap_or_default();
    MachineDeletionSpec {
        node_deletion_timeout_seconds: deletion.node_deletion_timeout_seconds.or(Some(NODE_DELETION_TIMEOUT)),
        ..deletion
    }
}

/// What a Machine on its way out does not have yet of its set: limits of deletion, taints, and when it counts as available; as a merge patch.
pub(crate) fn late_changes(set: &MachineSet, machine: &Machine) -> Option<Value> {
    let template = &set.spec.template.spec;
    let have = &machine.spec;
    let wanted = completed(template.deletion.as_ref());
    let limits = json!({
        "nodeDrainTimeoutSeconds": wanted.node_drain_timeout_seconds,
        "nodeVolumeDetachTimeoutSeconds": wanted.node_volume_detach_timeout_seconds,
        "nodeDeletionTimeoutSeconds": wanted.node_deletion_timeout_seconds,
    });
    let changes = completed(have.deletion.as_ref()) != wanted
        || have.taints != template.taints
        || have.readiness_gates != template.readiness_gates
        || have.min_ready_seconds.unwrap_or_default() != template.min_ready_seconds.unwrap_or_default();
    // What is empty goes.
    let (taints, gates) = (&template.taints, &template.readiness_gates);
    changes.then(|| {
        json!({
            "metadata": { "uid": machine.metadata.uid },
            "spec": {
                "deletion": limits,
                "taints": (!taints.is_empty()).then_some(taints),
                "readinessGates": (!gates.is_empty()).then_some(gates),
                "minReadySeconds": template.min_ready_seconds,
            },
        })
    })
}

/// The version of new Machines.
pub(crate) fn version(set: &MachineSet) -> Option<String> {
    set.spec.template.spec.version.as_deref().map(templates::with_v)
}

/// A Machine as this controller applies it: a new one of this name, or `existing` with what is changed in place.
pub(crate) fn machine(set: &MachineSet, machine_name: &str, existing: Option<&Machine>) -> Machine {
    let template = &set.spec.template.spec;
    let mut spec = MachineSpec {
        cluster_name: set.spec.cluster_name.clone(),
        bootstrap: Bootstrap {
            config_ref: template
                .bootstrap
                .config_ref
                .as_ref()
                .map(|r| clone_reference(r, machine_name)),
            data_secret_name: template.bootstrap.data_secret_name.clone(),
        },
        infrastructure_ref: clone_reference(&template.infrastructure_ref, machine_name),
        version: version(set),
        failure_domain: template.failure_domain.clone(),
        deletion: template.deletion.clone(),
        min_ready_seconds: template.min_ready_seconds,
        readiness_gates: template.readiness_gates.clone(),
        taints: template.taints.clone(),
        provider_id: None,
    };
    if let Some(existing) = existing {
        let have = &existing.spec;
        // What only a new Machine may have stays as it is. The Secret's name belongs to the Machine controller
        // when there is a bootstrap object.
        spec.bootstrap = Bootstrap {
            config_ref: have.bootstrap.config_ref.clone(),
            data_secret_name: match have.bootstrap.config_ref {
                Some(_) => None,
                None => have.bootstrap.data_secret_name.clone(),
            },
        };
        spec.infrastructure_ref = have.infrastructure_ref.clone();
        spec.version.clone_from(&have.version);
        spec.failure_domain.clone_from(&have.failure_domain);
    }
    Machine {
        metadata: ObjectMeta {
            name: Some(machine_name.to_owned()),
            namespace: set.metadata.namespace.clone(),
            uid: existing.and_then(|machine| machine.metadata.uid.clone()),
            labels: Some(machine_labels(set)),
            annotations: Some(machine_annotations(set)).filter(|all| !all.is_empty()),
            finalizers: Some(vec![finalizers::MACHINE.to_owned()]),
            owner_references: Some(vec![owner_reference("MachineSet", &set.metadata, true)]),
            ..ObjectMeta::default()
        },
        spec,
        status: None,
    }
}

/// The bootstrap or infrastructure object of a Machine; the owner is added once the Machine has a uid.
pub(crate) fn clone_for(set: &MachineSet, template: &Dynamic, machine: &Machine) -> Value {
    let owned = machine.metadata.uid.is_some();
    clone_template(&Cloning {
        template: template.value(),
        namespace: set.metadata.namespace(),
        name: machine.metadata.name(),
        cluster_name: &set.spec.cluster_name,
        owner: owned.then(|| owner_reference("Machine", &machine.metadata, true)),
        labels: machine_labels(set),
        annotations: machine_annotations(set),
    })
}

/// Labels and annotations of Machines and of what belongs to them.
pub(crate) fn kept(set: &MachineSet) -> KeptMetadata {
    KeptMetadata {
        labels: machine_labels(set),
        annotations: machine_annotations(set),
    }
}
