//! The marks of updates in place on Machines and MachineSets.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};
use windlass_api::core::{Machine, MachineSet};
use windlass_api::meta::MetaExt as _;
use windlass_controller_runtime::Dynamic;
use windlass_runtime_client::marks;

use crate::shared::keys::annotations::{
    ACKNOWLEDGED_MOVE, PENDING_ACKNOWLEDGE_MOVE, RECEIVE_MACHINES_FROM_MACHINE_SETS,
};

/// Whether the owner has marked the Machine.
pub(crate) fn is_marked(machine: &Machine) -> bool {
    marks::is_marked(machine.metadata.annotations.as_ref())
}

/// Whether the extension is to be called.
pub(crate) fn is_pending(machine: &Machine) -> bool {
    marks::is_pending(machine.metadata.annotations.as_ref())
}

/// Whether an update is under way.
pub(crate) fn is_under_way(machine: &Machine) -> bool {
    marks::is_under_way(machine.metadata.annotations.as_ref())
}

/// Whether the Machine has come from another MachineSet, and its MachineDeployment does not count it in its new one yet.
pub(crate) fn is_arriving(machine: &Machine) -> bool {
    machine.metadata.has_annotation(PENDING_ACKNOWLEDGE_MOVE)
}

/// The MachineSets that this one takes Machines from.
pub(crate) fn sources(set: &MachineSet) -> BTreeSet<&str> {
    names(set.metadata.annotation(RECEIVE_MACHINES_FROM_MACHINE_SETS)).collect()
}

/// The Machines from other MachineSets that the MachineDeployment counts in this one.
pub(crate) fn acknowledged(set: &MachineSet) -> BTreeSet<&str> {
    names(set.metadata.annotation(ACKNOWLEDGED_MOVE)).collect()
}

fn names(list: Option<&str>) -> impl Iterator<Item = &str> {
    list.unwrap_or_default().split(',').filter(|name| !name.is_empty())
}

/// The metadata of an object as extensions see it.
pub(crate) fn shown(metadata: &ObjectMeta) -> ObjectMeta {
    ObjectMeta {
        name: metadata.name.clone(),
        namespace: metadata.namespace.clone(),
        labels: metadata.labels.clone(),
        annotations: metadata.annotations.clone(),
        ..ObjectMeta::default()
    }
}

/// An object of a provider as extensions see it.
pub(crate) fn shown_object(object: &Dynamic) -> Value {
    let metadata = object.metadata();
    json!({
        "apiVersion": object.api_version(),
        "kind": object.kind(),
        "metadata": {
            "name": metadata.name, "namespace": metadata.namespace,
            "labels": metadata.labels, "annotations": metadata.annotations,
        },
        "spec": object.value()["spec"],
    })
}

/// Names as these annotations have them.
pub(crate) fn join<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let all: Vec<&str> = names.into_iter().collect();
    all.join(",")
}
