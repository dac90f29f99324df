//! What the objects of a MachinePool should be: pure.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value, json};
use windlass_api::core::{Bootstrap, ContractVersionedObjectReference, Machine, MachinePool, MachineSpec};
use windlass_api::k8s::Node;
use windlass_api::meta::MetaExt as _;
use windlass_api::values::NODE_UNINITIALIZED_TAINT;
use windlass_api::{annotations, labels};
use windlass_controller_runtime::{Dynamic, owner};
use windlass_meta::label_or_hash;

/// The Machine of a host. Its bootstrap data is the pool's, so it has none of its own; its version is that of the Node.
pub(super) fn machine(pool: &MachinePool, host: &Dynamic, existing: Option<&Machine>, node: Option<&Node>) -> Machine {
    let metadata = pool.spec.template.metadata.clone().unwrap_or_default();
    let mut all = metadata.labels;
    all.insert(
        labels::MACHINE_POOL_NAME.to_owned(),
        label_or_hash(pool.metadata.name()),
    );
    all.insert(labels::CLUSTER_NAME.to_owned(), pool.spec.cluster_name.clone());
    // While the Node is not seen, the version stays: it is not known to be another one.
    let running = node.and_then(|node| node.status.as_ref()?.node_info.as_ref());
    let running = running
        .map(|info| info.kubelet_version.clone())
        .filter(|version| !version.is_empty());
    let version = running.or_else(|| existing?.spec.version.clone());
    Machine {
        metadata: ObjectMeta {
            name: existing.map_or_else(|| Some(host.name().to_owned()), |machine| machine.metadata.name.clone()),
            namespace: pool.metadata.namespace.clone(),
            uid: existing.and_then(|machine| machine.metadata.uid.clone()),
            labels: Some(all),
            annotations: Some(metadata.annotations).filter(|all| !all.is_empty()),
            owner_references: Some(vec![owner::controller_ref(pool)]),
            ..ObjectMeta::default()
        },
        spec: MachineSpec {
            cluster_name: pool.spec.cluster_name.clone(),
            bootstrap: Bootstrap {
                data_secret_name: Some(String::new()),
                ..Bootstrap::default()
            },
            infrastructure_ref: ContractVersionedObjectReference {
                api_group: host.gvk().group,
                kind: host.kind().to_owned(),
                name: host.name().to_owned(),
            },
            version,
            ..MachineSpec::default()
        },
        status: None,
    }
}

/// Whether a Node leads back to another owner: a Machine, or another pool of the Cluster. Two owners would take it from each other without end.
pub(super) fn is_foreign(node: &Node, pool: &MachinePool, neighbours: &BTreeSet<String>) -> bool {
    let annotation = |key: &str| node.metadata.annotation(key);
    let of_pool = annotation(annotations::NODE_OWNER_KIND) == Some("MachinePool");
    match annotation(annotations::NODE_OWNER_NAME) {
        Some(name) if of_pool => name != pool.metadata.name() && neighbours.contains(name),
        _ => !of_pool && annotation(annotations::NODE_MACHINE).is_some(),
    }
}

/// The merge patch that gives a Node the annotations that lead back to its pool, and takes the taint of a new Node away. `None` if it has
/// all that.
pub(super) fn node_patch(pool: &MachinePool, node: &Node) -> Option<Value> {
    let want = BTreeMap::from([
        (annotations::NODE_CLUSTER_NAME, pool.spec.cluster_name.as_str()),
        (annotations::NODE_CLUSTER_NAMESPACE, pool.metadata.namespace()),
        (annotations::NODE_OWNER_KIND, "MachinePool"),
        (annotations::NODE_OWNER_NAME, pool.metadata.name()),
    ]);
    let missing: BTreeMap<&str, &str> = want
        .into_iter()
        .filter(|(key, value)| node.metadata.annotation(key) != Some(value))
        .collect();
    let mut metadata = Map::new();
    let mut patch = Map::new();
    if !missing.is_empty() {
        metadata.insert("annotations".to_owned(), json!(missing));
    }
    let taints = node
        .spec
        .as_ref()
        .and_then(|spec| spec.taints.clone())
        .unwrap_or_default();
    let kept: Vec<_> = taints
        .iter()
        .filter(|taint| taint.key != NODE_UNINITIALIZED_TAINT)
        .collect();
    if kept.len() != taints.len() {
        // Taints are one value to a merge patch: another writer in between must win, so the patch names the version that it changes.
        metadata.insert("resourceVersion".to_owned(), json!(node.metadata.resource_version));
        patch.insert("spec".to_owned(), json!({ "taints": kept }));
    }
    if !metadata.is_empty() {
        patch.insert("metadata".to_owned(), Value::Object(metadata));
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}
