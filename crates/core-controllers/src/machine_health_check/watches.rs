//! Which events wake which MachineHealthChecks.

use std::sync::Arc;

use windlass_api::core::{Cluster, Machine, MachineHealthCheck};
use windlass_api::kind::Conditioned;
use windlass_api::meta::MetaExt as _;
use windlass_cluster_cache::{Clusters, RemoteEvent};
use windlass_contract::selector;
use windlass_controller_runtime::{Cx, ObjectKey, Watch};

use crate::machine_health_check::plan::gates;

pub(super) fn watches(clusters: &Clusters) -> Vec<Watch> {
    vec![
        Watch::map::<Machine>(machine_changed),
        Watch::map::<Cluster>(cluster_changed),
        Watch::dynamic_map(|cx, old, new| {
            // A remediation request that came or went concerns the checks of its Machine's Cluster.
            let ((None, Some(object)) | (Some(object), None)) = (old, new) else {
                return Vec::new();
            };
            if !object.kind().contains("Remediation") {
                return Vec::new();
            }
            let space = object.metadata().namespace.as_deref().unwrap_or_default();
            cx.cache::<MachineHealthCheck>().list(space).iter().map(key).collect()
        }),
        clusters.watch(remote_changed),
    ]
}

fn key(check: &Arc<MachineHealthCheck>) -> ObjectKey {
    ObjectKey::new(check.metadata.namespace(), check.metadata.name())
}

fn checks_of(cx: &Cx, space: &str, cluster: &str) -> Vec<Arc<MachineHealthCheck>> {
    cx.cache::<MachineHealthCheck>().by_cluster(space, cluster)
}

/// What a check looks at: a Machine's labels, annotations, Node, and all conditions but those that follow from checks.
fn same_to_checks(old: &Machine, new: &Machine) -> bool {
    let facts = |machine: &Machine| {
        let node = machine.status.as_ref().and_then(|status| status.node_ref.as_ref());
        (
            machine.metadata.labels.clone(),
            machine.metadata.annotations.clone(),
            machine.metadata.owner_references.clone(),
            machine.metadata.deletion_timestamp.clone(),
            node.map(|node| node.name.clone()),
        )
    };
    let states = |machine: &Machine| -> Vec<(String, String, String)> {
        let all = machine.conditions().iter();
        all.map(|have| (have.type_.clone(), have.status.clone(), have.reason.clone()))
            .collect()
    };
    facts(old) == facts(new) && states(old) == states(new)
}

fn machine_changed(cx: &Cx, old: Option<&Machine>, new: Option<&Machine>) -> Vec<ObjectKey> {
    if let (Some(old), Some(new)) = (old, new)
        && same_to_checks(old, new)
    {
        return Vec::new();
    }
    let mut found = Vec::new();
    for machine in [old, new].into_iter().flatten() {
        let all = checks_of(cx, machine.metadata.namespace(), &machine.spec.cluster_name);
        let labels = machine.metadata.labels.as_ref();
        found.extend(
            all.iter()
                .filter(|check| selector::owns(&check.spec.selector, labels))
                .map(key),
        );
    }
    found.sort();
    found.dedup();
    found
}

fn cluster_changed(cx: &Cx, old: Option<&Cluster>, new: Option<&Cluster>) -> Vec<ObjectKey> {
    let Some(cluster) = new else { return Vec::new() };
    // A gate that closes and opens again settles what was left open while it was closed.
    let facts = |cluster: &Cluster| {
        let status = cluster.status.as_ref();
        (status.and_then(|status| status.initialization.clone()), gates(cluster))
    };
    match old {
        Some(old) if facts(old) == facts(cluster) => Vec::new(),
        Some(_) => checks_of(cx, cluster.metadata.namespace(), cluster.metadata.name())
            .iter()
            .map(key)
            .collect(),
        // A check that waits for its Cluster may not have its label yet.
        None => {
            let all = cx.cache::<MachineHealthCheck>().list(cluster.metadata.namespace());
            all.iter()
                .filter(|check| check.spec.cluster_name == cluster.metadata.name())
                .map(key)
                .collect()
        }
    }
}

fn remote_changed(cx: &Cx, event: &RemoteEvent) -> Vec<ObjectKey> {
    match event {
        RemoteEvent::Connected(cluster) | RemoteEvent::Listed(cluster) => {
            checks_of(cx, &cluster.namespace, &cluster.name)
                .iter()
                .map(key)
                .collect()
        }
        RemoteEvent::Disconnected(_) | RemoteEvent::Probed(_) => Vec::new(),
        RemoteEvent::Node { cluster, old, new } => {
            let states = |node: &Arc<windlass_api::k8s::Node>| -> Vec<(String, String)> {
                let all = node.status.as_ref().and_then(|status| status.conditions.as_deref());
                all.unwrap_or_default()
                    .iter()
                    .map(|have| (have.type_.clone(), have.status.clone()))
                    .collect()
            };
            if old.as_ref().map(states) == new.as_ref().map(states) {
                return Vec::new();
            }
            let Some(node) = new.as_ref().or(old.as_ref()) else {
                return Vec::new();
            };
            let node = node.metadata.name.as_deref();
            let machines = cx.cache::<Machine>().by_cluster(&cluster.namespace, &cluster.name);
            let of_node = machines.iter().find(|machine| {
                let reference = machine.status.as_ref().and_then(|status| status.node_ref.as_ref());
                reference.map(|reference| reference.name.as_str()) == node
            });
            let Some(machine) = of_node else { return Vec::new() };
            let labels = machine.metadata.labels.as_ref();
            let all = checks_of(cx, &cluster.namespace, &cluster.name);
            all.iter()
                .filter(|check| selector::owns(&check.spec.selector, labels))
                .map(key)
                .collect()
        }
    }
}
