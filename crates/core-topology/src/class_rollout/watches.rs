//! What wakes a rollout.

use windlass_api::core::{Cluster, ClusterClass, MachineDeployment, MachinePool, MachineSet};
use windlass_api::kind::{ApiKind, Conditioned as _};
use windlass_api::labels;
use windlass_api::meta::MetaExt as _;
use windlass_api_ext::rollouts::{ClusterClassRevision, ClusterClassRollout};
use windlass_controller_runtime::{Cx, Dynamic, ObjectKey, Watch};

use crate::cluster::observe::class_key;
use crate::{cluster, cluster_class};

pub(super) fn all() -> Vec<Watch> {
    vec![
        Watch::source(|cx, _| {
            cluster::watches::index(&cx);
            cluster_class::index(&cx);
        }),
        Watch::map::<ClusterClass>(|_, old, new| new.or(old).map(ClusterClass::key).into_iter().collect()),
        Watch::map::<ClusterClassRevision>(|_, old, new| {
            let revision = new.or(old);
            let class =
                |one: &ClusterClassRevision| ObjectKey::new(one.metadata.namespace(), one.spec.class_name.as_str());
            revision.map(class).into_iter().collect()
        }),
        Watch::map::<Cluster>(|cx, old, new| {
            // The class that it has left, too.
            let classes = [old, new].into_iter().flatten().map(class_key);
            match (old, new) {
                (Some(old), Some(new)) if !cluster_changed(old, new) => Vec::new(),
                _ => classes.filter(|class| is_rolled_out(cx, class)).collect(),
            }
        }),
        Watch::map::<MachineDeployment>(|cx, old, new| {
            let numbers = |one: &MachineDeployment| {
                let status = one.status.as_ref();
                status.map(|one| (one.observed_generation, one.replicas, one.up_to_date_replicas))
            };
            of_cluster(cx, old, new, |one| (one.metadata.generation, numbers(one)))
        }),
        Watch::map::<MachineSet>(|cx, old, new| {
            let machines = |one: &MachineSet| one.status.as_ref().map(|status| status.replicas);
            of_cluster(cx, old, new, |one| (one.spec.replicas, machines(one)))
        }),
        Watch::map::<MachinePool>(|cx, old, new| {
            let numbers = |one: &MachinePool| {
                let status = one.status.as_ref();
                status.map(|one| (one.observed_generation, one.replicas, one.up_to_date_replicas))
            };
            of_cluster(cx, old, new, |one| (one.metadata.generation, numbers(one)))
        }),
        Watch::dynamic_map(|cx, old, new| {
            let Some(object) = new.or(old) else { return Vec::new() };
            let mut classes = Vec::new();
            if object.kind().ends_with("Template") {
                classes.extend(cluster_class::naming(cx, object));
                classes.retain(|class| is_rolled_out(cx, class));
            }
            if object.label(labels::TOPOLOGY_OWNED).is_some()
                && let Some(name) = object.label(labels::CLUSTER_NAME)
            {
                classes.extend(class_of(cx, object.metadata().namespace(), name));
            }
            // Objects are compared only where there is a rollout.
            if let (false, Some(old), Some(new)) = (classes.is_empty(), old, new)
                && !dynamic_changed(old, new)
            {
                return Vec::new();
            }
            classes
        }),
    ]
}

fn is_rolled_out(cx: &Cx, class: &ObjectKey) -> bool {
    cx.cache::<ClusterClassRollout>().get(class).is_some()
}

/// The class of a Cluster, if it is rolled out.
fn class_of(cx: &Cx, namespace: &str, cluster: &str) -> Option<ObjectKey> {
    let cluster = cx.cache::<Cluster>().get(&ObjectKey::new(namespace, cluster))?;
    let class = class_key(&cluster);
    is_rolled_out(cx, &class).then_some(class)
}

fn cluster_changed(old: &Cluster, new: &Cluster) -> bool {
    let (a, b) = (&old.metadata, &new.metadata);
    let class = |cluster: &Cluster| {
        cluster
            .spec
            .topology
            .as_ref()
            .map(|topology| topology.class_ref.clone())
    };
    a.labels != b.labels
        || a.annotations != b.annotations
        || a.deletion_timestamp != b.deletion_timestamp
        || old.spec.paused != new.spec.paused
        || old.spec.control_plane_ref != new.spec.control_plane_ref
        || class(old) != class(new)
        || old.conditions() != new.conditions()
}

/// The class of the Cluster of an object of a topology, when something about the object changed that matters.
fn of_cluster<K: ApiKind, F: PartialEq>(
    cx: &Cx,
    old: Option<&K>,
    new: Option<&K>,
    facts: impl Fn(&K) -> F,
) -> Vec<ObjectKey> {
    let Some(object) = new.or(old) else { return Vec::new() };
    if let (Some(old), Some(new)) = (old, new)
        && facts(old) == facts(new)
    {
        return Vec::new();
    }
    let metadata = object.meta();
    let cluster = metadata
        .label(labels::CLUSTER_NAME)
        .filter(|_| metadata.label(labels::TOPOLOGY_OWNED).is_some());
    let class = cluster.and_then(|cluster| class_of(cx, metadata.namespace(), cluster));
    class.into_iter().collect()
}

/// Templates matter with their contents, control planes with their numbers.
fn dynamic_changed(old: &Dynamic, new: &Dynamic) -> bool {
    const NUMBERS: [&str; 4] = [
        "/status/observedGeneration",
        "/status/replicas",
        "/status/upToDateReplicas",
        "/status/updatedReplicas",
    ];
    let (a, b) = (old.metadata(), new.metadata());
    a.labels != b.labels
        || a.annotations != b.annotations
        || a.generation != b.generation
        || old.value().get("spec") != new.value().get("spec")
        || NUMBERS
            .iter()
            .any(|pointer| old.value().pointer(pointer) != new.value().pointer(pointer))
}
