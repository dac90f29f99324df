//! Objects for tests.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_api::core::{Cluster, Machine, MachineDeployment, MachineSet};
use windlass_controller_runtime::Dynamic;

pub(crate) fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

pub(crate) fn cluster() -> Arc<Cluster> {
    let value = json!({
        "metadata": { "name": "c", "namespace": "ns", "uid": "cluster" },
        "spec": {
            "controlPlaneRef": { "apiGroup": "g", "kind": "KubeadmControlPlane", "name": "cp" },
            "topology": { "classRef": { "name": "class" }, "version": "v1.35.0" },
        },
    });
    Arc::new(serde_json::from_value(value).unwrap())
}

pub(crate) fn template(version: &str) -> Value {
    json!({
        "metadata": { "labels": { "role": "worker" } },
        "spec": {
            "clusterName": "c",
            "version": version,
            "bootstrap": { "configRef": {
                "apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfigTemplate", "name": "boot" } },
            "infrastructureRef": {
                "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachineTemplate", "name": "infra" },
        },
    })
}

pub(crate) fn set(name: &str, replicas: i32, version: &str) -> MachineSet {
    let value = json!({
        "metadata": {
            "name": name, "namespace": "ns", "uid": format!("uid-{name}"), "generation": 1,
            "creationTimestamp": "2026-01-01T11:00:00Z",
            "labels": { "cluster.x-k8s.io/cluster-name": "c", "cluster.x-k8s.io/deployment-name": "md",
                "machine-template-hash": format!("hash-{name}") },
            "annotations": { "machinedeployment.clusters.x-k8s.io/revision": "1" },
            "finalizers": ["cluster.x-k8s.io/machineset"],
            "ownerReferences": [{ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment",
                "name": "md", "uid": "uid-md", "controller": true, "blockOwnerDeletion": true }],
        },
        "spec": {
            "clusterName": "c", "replicas": replicas,
            "selector": { "matchLabels": { "role": "worker" } },
            "template": template(version),
        },
    });
    serde_json::from_value(value).unwrap()
}

pub(crate) fn deployment(replicas: i32, version: &str) -> MachineDeployment {
    let value = json!({
        "metadata": {
            "name": "md", "namespace": "ns", "uid": "uid-md", "generation": 1,
            "labels": { "cluster.x-k8s.io/cluster-name": "c" },
            "finalizers": ["cluster.x-k8s.io/machinedeployment"],
        },
        "spec": {
            "clusterName": "c", "replicas": replicas,
            "selector": { "matchLabels": { "role": "worker" } },
            "template": template(version),
        },
    });
    serde_json::from_value(value).unwrap()
}

/// A Machine of `set` that is up and well.
pub(crate) fn machine(set: &MachineSet, name: &str) -> Machine {
    let owner = set.metadata.uid.clone().unwrap();
    let mut machine: Machine = serde_json::from_value(json!({
        "metadata": {
            "name": name, "namespace": "ns", "uid": format!("uid-{name}"),
            "creationTimestamp": "2026-01-01T11:00:00Z",
            "labels": { "role": "worker", "cluster.x-k8s.io/cluster-name": "c" },
            "ownerReferences": [{ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineSet",
                "name": set.metadata.name, "uid": owner, "controller": true, "blockOwnerDeletion": true }],
        },
        "spec": {
            "clusterName": "c", "version": set.spec.template.spec.version,
            "bootstrap": { "configRef": {
                "apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": name } },
            "infrastructureRef": {
                "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": name },
        },
        "status": { "nodeRef": { "name": name } },
    }))
    .unwrap();
    for type_ in ["Ready", "Available", "UpToDate", "NodeReady", "NodeHealthy"] {
        condition(&mut machine, type_, "True", type_, "");
    }
    machine
}

pub(crate) fn condition(machine: &mut Machine, type_: &str, status: &str, reason: &str, message: &str) {
    let all = &mut machine.status.get_or_insert_default().conditions;
    all.retain(|condition| condition.type_ != type_);
    let value = json!({ "type": type_, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2026-01-01T11:30:00Z" });
    all.push(serde_json::from_value(value).unwrap());
}

pub(crate) fn deleting(machine: &mut Machine) {
    let time = serde_json::from_value(json!("2026-01-01T11:59:00Z")).unwrap();
    machine.metadata.deletion_timestamp = Some(time);
    condition(machine, "Available", "False", "NotAvailable", "");
}

pub(crate) fn annotate(meta: &mut k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta, key: &str, value: &str) {
    meta.annotations
        .get_or_insert_default()
        .insert(key.to_owned(), value.to_owned());
}

pub(crate) fn provider_template(group: &str, kind: &str, name: &str) -> Arc<Dynamic> {
    let value = json!({
        "apiVersion": format!("{group}/v1beta2"), "kind": kind,
        "metadata": { "name": name, "namespace": "ns", "uid": format!("uid-{name}"),
            "ownerReferences": [{ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c", "uid": "cluster" }] },
        "spec": { "template": { "spec": { "from": name } } },
    });
    Arc::new(Dynamic::new(value).unwrap())
}

/// The clone of a Machine, labelled as a MachineSet labels it.
pub(crate) fn clone(group: &str, kind: &str, name: &str, labels: Value) -> Arc<Dynamic> {
    let value = json!({
        "apiVersion": format!("{group}/v1beta2"), "kind": kind,
        "metadata": { "name": name, "namespace": "ns", "uid": format!("uid-{kind}-{name}"), "labels": labels },
        "spec": {},
    });
    Arc::new(Dynamic::new(value).unwrap())
}
