//! What wakes a Cluster's topology.

use std::sync::Arc;

use serde_json::Value;
use windlass_api::conditions::TOPOLOGY_RECONCILED;
use windlass_api::core::{Cluster, ClusterClass, Machine, MachineDeployment, MachineHealthCheck, MachinePool};
use windlass_api::kind::{ApiKind, Conditioned as _};
use windlass_api::labels;
use windlass_api::meta::MetaExt as _;
use windlass_api::runtime::ExtensionConfig;
use windlass_api_ext::rollouts::{ClusterClassRevision, ClusterClassRollout, annotations};
use windlass_controller_runtime::{Cx, Dynamic, ObjectKey, Watch};

use super::observe::class_key;
use super::plan::has_external_patches;

/// Index of Clusters by the class they use.
const BY_CLASS: &str = "topology class";

/// Status fields of control planes on which upgrades depend.
const CONTROL_PLANE_STATUS: [&str; 8] = [
    "/status/version",
    "/status/versions",
    "/status/replicas",
    "/status/upToDateReplicas",
    "/status/readyReplicas",
    "/status/availableReplicas",
    "/status/updatedReplicas",
    "/status/unavailableReplicas",
];

pub(super) fn all() -> Vec<Watch> {
    vec![
        Watch::source(|cx, _| index(&cx)),
        Watch::map::<ClusterClass>(|cx, old, new| match (old, new) {
            (old, Some(class)) if old.is_none_or(|old| class_changed(old, class)) => using(cx, &class.key()),
            (Some(class), None) => using(cx, &class.key()),
            _ => Vec::new(),
        }),
        Watch::map::<ClusterClassRevision>(|cx, old, new| {
            let is_changed = match (old, new) {
                // Its name stands for its contents.
                (Some(old), Some(new)) => old.spec != new.spec,
                _ => true,
            };
            let Some(revision) = new.or(old).filter(|_| is_changed) else {
                return Vec::new();
            };
            let class = ObjectKey::new(revision.metadata.namespace(), revision.spec.class_name.as_str());
            let has_it = |cluster: &Arc<Cluster>| {
                cluster.metadata.annotation(annotations::CLASS_REVISION) == Some(revision.metadata.name())
            };
            clusters_of(cx, &class)
                .into_iter()
                .filter(has_it)
                .map(|cluster| cluster.key())
                .collect()
        }),
        // Clusters without a revision wait for one if there is a rollout of their class.
        Watch::map::<ClusterClassRollout>(|cx, old, new| {
            let is_at_work =
                |rollout: Option<&ClusterClassRollout>| rollout.is_some_and(|rollout| !rollout.is_deleting());
            let Some(rollout) = new.or(old).filter(|_| is_at_work(old) != is_at_work(new)) else {
                return Vec::new();
            };
            let has_none = |cluster: &Arc<Cluster>| cluster.metadata.annotation(annotations::CLASS_REVISION).is_none();
            clusters_of(cx, &rollout.key())
                .into_iter()
                .filter(has_none)
                .map(|cluster| cluster.key())
                .collect()
        }),
        Watch::map::<MachineDeployment>(|_, old, new| changed(old, new, |a, b| a.spec != b.spec).into_iter().collect()),
        // A topology that is not reconciled may wait for an extension, and one with external patches may get others.
        Watch::map::<ExtensionConfig>(|cx, _, _| {
            let all = cx.cache::<Cluster>().all();
            let classes = cx.cache::<ClusterClass>();
            let waits = |cluster: &&Arc<Cluster>| {
                let is_reconciled = windlass_conditions::is_true(cluster.conditions(), TOPOLOGY_RECONCILED);
                let is_patched = || {
                    classes
                        .get(&class_key(cluster))
                        .is_some_and(|class| has_external_patches(&class))
                };
                cluster.spec.topology.is_some() && (!is_reconciled || is_patched())
            };
            all.iter().filter(waits).map(|cluster| cluster.key()).collect()
        }),
        // The versions of its Nodes say when it has been upgraded.
        Watch::map::<MachinePool>(|_, old, new| {
            let versions = |pool: &MachinePool| pool.status.as_ref().map(|status| status.versions.clone());
            changed(old, new, |a, b| a.spec != b.spec || versions(a) != versions(b))
                .into_iter()
                .collect()
        }),
        Watch::map::<MachineHealthCheck>(|_, old, new| {
            changed(old, new, |a, b| a.spec != b.spec).into_iter().collect()
        }),
        // Versions of Machines say when a worker set has been upgraded.
        Watch::map::<Machine>(|_, old, new| {
            changed(old, new, |a, b| a.spec.version != b.spec.version)
                .into_iter()
                .collect()
        }),
        Watch::dynamic_map(|cx, old, new| {
            let Some(object) = new.or(old) else { return Vec::new() };
            if let (Some(old), Some(new)) = (old, new)
                && !dynamic_changed(old, new)
            {
                return Vec::new();
            }
            generated(cx, object)
        }),
    ]
}

/// Adds the index of Clusters by the class they use.
pub(crate) fn index(cx: &Cx) {
    cx.cache::<Cluster>().add_index(BY_CLASS, classes_of);
}

fn classes_of(cluster: &Cluster) -> Vec<String> {
    let managed = cluster.spec.topology.is_some();
    managed.then(|| class_key(cluster).to_string()).into_iter().collect()
}

/// The Clusters that use a class.
pub(crate) fn clusters_of(cx: &Cx, class: &ObjectKey) -> Vec<Arc<Cluster>> {
    cx.cache::<Cluster>().by_index(BY_CLASS, &class.to_string())
}

fn using(cx: &Cx, class: &ObjectKey) -> Vec<ObjectKey> {
    clusters_of(cx, class).iter().map(|cluster| cluster.key()).collect()
}

fn class_changed(old: &ClusterClass, new: &ClusterClass) -> bool {
    let (a, b) = (&old.metadata, &new.metadata);
    a.generation != b.generation || a.deletion_timestamp != b.deletion_timestamp || old.status != new.status
}

/// The Cluster of a generated object, when something about the object changed that matters.
fn changed<K: ApiKind>(old: Option<&K>, new: Option<&K>, differs: impl Fn(&K, &K) -> bool) -> Option<ObjectKey> {
    let object = new.or(old)?;
    let marks = object.meta().labels.as_ref()?;
    marks.get(labels::TOPOLOGY_OWNED)?;
    let matters = match (old, new) {
        (Some(old), Some(new)) => {
            let (a, b) = (old.meta(), new.meta());
            a.labels != b.labels
                || a.annotations != b.annotations
                || a.deletion_timestamp != b.deletion_timestamp
                || differs(old, new)
        }
        _ => true,
    };
    let namespace = object.meta().namespace.as_deref().unwrap_or_default();
    matters.then(|| {
        marks
            .get(labels::CLUSTER_NAME)
            .map(|name| ObjectKey::new(namespace, name.as_str()))
    })?
}

fn dynamic_changed(old: &Dynamic, new: &Dynamic) -> bool {
    let (a, b) = (old.metadata(), new.metadata());
    a.labels != b.labels
        || a.annotations != b.annotations
        || a.owner_references != b.owner_references
        || a.deletion_timestamp != b.deletion_timestamp
        || old.value().get("spec") != new.value().get("spec")
        || CONTROL_PLANE_STATUS
            .iter()
            .any(|field| at(old, field) != at(new, field))
}

fn at<'a>(object: &'a Dynamic, pointer: &str) -> Option<&'a Value> {
    object.value().pointer(pointer)
}

/// The Cluster of a generated object, and the Clusters that use a template through its class.
fn generated(cx: &Cx, object: &Dynamic) -> Vec<ObjectKey> {
    let meta = object.metadata();
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    let mut out = Vec::new();
    if object.label(labels::TOPOLOGY_OWNED).is_some()
        && let Some(cluster) = object.label(labels::CLUSTER_NAME)
    {
        out.push(ObjectKey::new(namespace, cluster));
    }
    for owner in meta.owner_references.iter().flatten() {
        if owner.kind == ClusterClass::KIND && owner.api_version.starts_with(ClusterClass::GROUP) {
            out.extend(using(cx, &ObjectKey::new(namespace, owner.name.as_str())));
        }
    }
    out
}
