//! What the Node of a Machine should carry: annotations that lead back to the Machine, labels, annotations and taints from it.
//! The answer is a merge patch of exactly what differs, or nothing.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use windlass_api::core::Machine;
use windlass_api::k8s::Node;
use windlass_api::{annotations, labels, owner};
use windlass_controller_runtime::Seen;

use super::taints;
use crate::machine::NodeSync;
use crate::machine::observe::Observed;

/// The merge patch that brings the Node to what its Machine asks for.
pub(super) fn patch(seen: &Observed, node: &Node) -> Option<Value> {
    let machine = &seen.machine;
    let mut metadata = Map::new();
    let labels = wanted_labels(seen, node);
    let of_machine = (!seen.sync.without_taints).then_some(machine.spec.taints.as_slice());
    let taints = taints::wanted(node, of_machine, is_outdated(seen));
    let mut wanted = wanted_annotations(seen, &labels);
    if let Some(kept) = taints.kept {
        wanted.insert(annotations::TAINTS_FROM_MACHINE.to_owned(), kept);
    }
    let annotations = changes(
        node.metadata.annotations.as_ref(),
        &wanted,
        &dropped_annotations(machine, node),
    );
    let labels = changes(
        node.metadata.labels.as_ref(),
        &labels,
        &tracked(node, annotations::LABELS_FROM_MACHINE),
    );
    if !annotations.is_empty() {
        metadata.insert("annotations".to_owned(), Value::Object(annotations));
    }
    if !labels.is_empty() {
        metadata.insert("labels".to_owned(), Value::Object(labels));
    }
    let mut patch = Map::new();
    let have = node
        .spec
        .as_ref()
        .and_then(|spec| spec.taints.clone())
        .unwrap_or_default();
    if taints.all != have {
        // Taints are one value to a merge patch: another writer in between must win, so the patch names the version that it changes.
        metadata.insert("resourceVersion".to_owned(), json!(node.metadata.resource_version));
        patch.insert("spec".to_owned(), json!({ "taints": taints.all }));
    }
    if !metadata.is_empty() {
        patch.insert("metadata".to_owned(), Value::Object(metadata));
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// Additions, changes and removals, as a merge patch says them.
fn changes(
    have: Option<&BTreeMap<String, String>>,
    want: &BTreeMap<String, String>,
    drop: &BTreeSet<String>,
) -> Map<String, Value> {
    let live = |key: &str| have.and_then(|map| map.get(key));
    let added = want
        .iter()
        .filter(|(key, value)| live(key) != Some(value))
        .map(|(key, value)| (key.clone(), json!(value)));
    let removed = drop
        .iter()
        .filter(|key| !want.contains_key(*key) && live(key).is_some())
        .map(|key| (key.clone(), Value::Null));
    added.chain(removed).collect()
}

/// The annotations of a Node that lead back to its Machine, and the lists of what came from there.
const OURS: [&str; 8] = [
    annotations::NODE_CLUSTER_NAME,
    annotations::NODE_CLUSTER_NAMESPACE,
    annotations::NODE_MACHINE,
    annotations::NODE_OWNER_KIND,
    annotations::NODE_OWNER_NAME,
    annotations::LABELS_FROM_MACHINE,
    annotations::ANNOTATIONS_FROM_MACHINE,
    annotations::TAINTS_FROM_MACHINE,
];

/// Annotations of the Machine that go to its Node: those of the domain `node.cluster.x-k8s.io`, and those that an option selects.
fn synced_annotations(machine: &Machine, sync: &NodeSync) -> BTreeMap<String, String> {
    let all = machine.metadata.annotations.clone().unwrap_or_default();
    all.into_iter()
        // A broad pattern of an option may match those whose values are ours on a Node.
        .filter(|(key, _)| !OURS.contains(&key.as_str()))
        .filter(|(key, _)| in_domain(key, "node.cluster.x-k8s.io") || sync.has_annotation(key))
        .collect()
}

/// Labels of the Machine that go to its Node, by name or domain, and those that an option selects.
fn synced_labels(machine: &Machine, sync: &NodeSync) -> BTreeMap<String, String> {
    let all = machine.metadata.labels.clone().unwrap_or_default();
    all.into_iter()
        .filter(|(key, _)| {
            key.starts_with("node-role.kubernetes.io/")
                || in_domain(key, "node-restriction.kubernetes.io")
                || in_domain(key, "node.cluster.x-k8s.io")
                || sync.has_label(key)
        })
        .collect()
}

fn wanted_annotations(seen: &Observed, labels: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let machine = &seen.machine;
    let synced = synced_annotations(machine, &seen.sync);
    let keys = |map: &BTreeMap<String, String>| map.keys().cloned().collect::<Vec<_>>().join(",");
    let metadata = &machine.metadata;
    let mut want = synced.clone();
    let mut put = |key: &str, value: String| want.insert(key.to_owned(), value);
    put(annotations::NODE_CLUSTER_NAME, machine.spec.cluster_name.clone());
    put(
        annotations::NODE_CLUSTER_NAMESPACE,
        metadata.namespace.clone().unwrap_or_default(),
    );
    put(annotations::NODE_MACHINE, metadata.name.clone().unwrap_or_default());
    if let Some(owner) = owner::controller_of(metadata) {
        put(annotations::NODE_OWNER_KIND, owner.kind.clone());
        put(annotations::NODE_OWNER_NAME, owner.name.clone());
    }
    put(annotations::ANNOTATIONS_FROM_MACHINE, keys(&synced));
    put(annotations::LABELS_FROM_MACHINE, keys(labels));
    want
}

/// What an earlier pass put there and this one may no longer want.
fn dropped_annotations(machine: &Machine, node: &Node) -> BTreeSet<String> {
    let mut drop = tracked(node, annotations::ANNOTATIONS_FROM_MACHINE);
    if machine
        .metadata
        .owner_references
        .iter()
        .flatten()
        .all(|owner| owner.controller != Some(true))
    {
        drop.extend([
            annotations::NODE_OWNER_KIND.to_owned(),
            annotations::NODE_OWNER_NAME.to_owned(),
        ]);
    }
    drop
}

/// Labels that come from the Machine, and the one of interruptible machines. While the infrastructure machine cannot be read, that one stays
/// as it is.
fn wanted_labels(seen: &Observed, node: &Node) -> BTreeMap<String, String> {
    let mut want = synced_labels(&seen.machine, &seen.sync);
    let has = || tracked(node, annotations::LABELS_FROM_MACHINE).contains(labels::INTERRUPTIBLE);
    let interruptible = match &seen.infrastructure {
        Seen::Found(infrastructure) => {
            let value = infrastructure.value().pointer("/status/interruptible");
            value.and_then(Value::as_bool) == Some(true)
        }
        Seen::Failed(_) | Seen::NotFound => has(),
    };
    if interruptible {
        want.insert(labels::INTERRUPTIBLE.to_owned(), String::new());
    }
    want
}

/// Whether a patch of a Node marks it as interruptible.
pub(super) fn becomes_interruptible(patch: &Value) -> bool {
    patch["metadata"]["labels"]
        .get(labels::INTERRUPTIBLE)
        .is_some_and(Value::is_string)
}

/// The keys that an annotation of the Node says came from its Machine.
fn tracked(node: &Node, annotation: &str) -> BTreeSet<String> {
    let list = node
        .metadata
        .annotations
        .as_ref()
        .and_then(|map| map.get(annotation))
        .map_or("", String::as_str);
    list.split(',')
        .filter(|key| !key.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Whether a key's prefix is the domain or one below it.
fn in_domain(key: &str, domain: &str) -> bool {
    key.split_once('/').is_some_and(|(prefix, _)| {
        prefix == domain || prefix.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
    })
}

/// Whether the Machine's MachineSet is older than the newest revision its MachineDeployment knows.
fn is_outdated(seen: &Observed) -> bool {
    let (Some(set), Some(deployment)) = (&seen.machine_set, &seen.machine_deployment) else {
        return false;
    };
    let revision =
        |all: Option<&BTreeMap<String, String>>| -> Option<i64> { all?.get(annotations::REVISION)?.parse().ok() };
    match (
        revision(set.metadata.annotations.as_ref()),
        revision(deployment.metadata.annotations.as_ref()),
    ) {
        (Some(own), Some(newest)) => own < newest,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_include_what_is_below_them() {
        assert!(in_domain("node.cluster.x-k8s.io/a", "node.cluster.x-k8s.io"));
        assert!(in_domain("x.node.cluster.x-k8s.io/a", "node.cluster.x-k8s.io"));
        assert!(!in_domain("othernode.cluster.x-k8s.io/a", "node.cluster.x-k8s.io"));
        assert!(!in_domain("a", "node.cluster.x-k8s.io"));
    }

    #[test]
    fn a_broad_pattern_takes_none_of_the_annotations_that_are_ours() {
        let all = OURS
            .iter()
            .chain(&["note"])
            .map(|key| ((*key).to_owned(), "x".to_owned()));
        let mut machine = Machine::default();
        machine.metadata.annotations = Some(all.collect());
        let sync = NodeSync {
            labels: Vec::new(),
            annotations: vec![".*".parse().unwrap()],
            ..NodeSync::default()
        };
        let synced = synced_annotations(&machine, &sync);
        assert_eq!(synced.into_keys().collect::<Vec<_>>(), ["note"]);
    }

    #[test]
    fn only_differences_are_patched() {
        let have = BTreeMap::from([("keep".to_owned(), "1".to_owned()), ("old".to_owned(), "1".to_owned())]);
        let want = BTreeMap::from([("keep".to_owned(), "1".to_owned()), ("new".to_owned(), "2".to_owned())]);
        let drop = BTreeSet::from(["old".to_owned(), "gone".to_owned()]);
        assert_eq!(
            Value::Object(changes(Some(&have), &want, &drop)),
            json!({"new": "2", "old": null})
        );
    }
}
