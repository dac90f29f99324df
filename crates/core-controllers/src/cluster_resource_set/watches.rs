//! Which events wake which ClusterResourceSets.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use windlass_api::addons::{ClusterResourceSet, ClusterResourceSetBinding, ResourceSetBinding};
use windlass_api::core::Cluster;
use windlass_api::kind::ApiKind as _;
use windlass_api::meta::MetaExt as _;
use windlass_cluster_cache::{Clusters, RemoteEvent};
use windlass_contract::{Labels, Selector};
use windlass_controller_runtime::{Cx, ObjectKey, Stored as _, Watch};

use super::observe::{config_maps, secrets};
use super::observed::Trace;

/// The index of sets by their resources.
const BY_RESOURCE: &str = "resource";

pub(super) fn watches(clusters: &Clusters) -> Vec<Watch> {
    vec![
        Watch::source(|cx, _| cx.cache::<ClusterResourceSet>().add_index(BY_RESOURCE, resources)),
        Watch::map::<Cluster>(cluster_changed),
        Watch::map::<ClusterResourceSetBinding>(record_changed),
        Watch::part::<ConfigMap, Trace>(config_maps(), |cx, old, new| {
            resource_changed(cx, "ConfigMap", old, new)
        }),
        Watch::part::<Secret, Trace>(secrets(), |cx, old, new| resource_changed(cx, "Secret", old, new)),
        clusters.watch(|cx, event| match event {
            // What failed for want of a connection, or was not tried.
            RemoteEvent::Connected(key) => {
                let cluster = cx.cache::<Cluster>().get(key);
                cluster.map_or_else(Vec::new, |cluster| {
                    selecting(cx, &key.namespace, &[cluster.metadata.labels.as_ref()])
                })
            }
            RemoteEvent::Disconnected(_)
            | RemoteEvent::Listed(_)
            | RemoteEvent::Probed(_)
            | RemoteEvent::Node { .. } => Vec::new(),
        }),
    ]
}

/// What [`BY_RESOURCE`] finds a set by.
fn resource(namespace: &str, kind: &str, name: &str) -> String {
    format!("{kind} {namespace}/{name}")
}

fn resources(set: &ClusterResourceSet) -> Vec<String> {
    let namespace = set.metadata.namespace();
    let all = set.spec.resources.iter();
    all.map(|of| resource(namespace, &of.kind, &of.name)).collect()
}

/// The sets of a namespace that select one of these labels.
fn selecting(cx: &Cx, namespace: &str, labels: &[Option<&Labels>]) -> Vec<ObjectKey> {
    let selects = |set: &ClusterResourceSet| {
        Selector::parse(&set.spec.cluster_selector)
            .is_ok_and(|selector| labels.iter().any(|labels| selector.matches(*labels)))
    };
    let sets = cx.cache::<ClusterResourceSet>().list(namespace);
    sets.iter().filter(|set| selects(set)).map(|set| set.key()).collect()
}

/// A Cluster that comes or goes, or whose labels change. Its record goes with it.
fn cluster_changed(cx: &Cx, old: Option<&Cluster>, new: Option<&Cluster>) -> Vec<ObjectKey> {
    let facts = |cluster: Option<&Cluster>| cluster.map(|one| (one.metadata.labels.clone(), one.is_deleting()));
    let Some(cluster) = new.or(old).filter(|_| facts(old) != facts(new)) else {
        return Vec::new();
    };
    let labels: Vec<_> = [old, new]
        .into_iter()
        .flatten()
        .map(|one| one.metadata.labels.as_ref())
        .collect();
    selecting(cx, cluster.metadata.namespace(), &labels)
}

/// The sets whose entry in a record changed. Without the record, its resources are applied again.
fn record_changed(
    _: &Cx,
    old: Option<&ClusterResourceSetBinding>,
    new: Option<&ClusterResourceSetBinding>,
) -> Vec<ObjectKey> {
    let Some(record) = new.or(old) else {
        return Vec::new();
    };
    let namespace = record.metadata.namespace();
    let entries = |record: Option<&'_ ClusterResourceSetBinding>| -> Vec<ResourceSetBinding> {
        record.map(|record| record.spec.bindings.clone()).unwrap_or_default()
    };
    let (before, after) = (entries(old), entries(new));
    let changed = before
        .iter()
        .filter(|entry| !after.contains(entry))
        .chain(after.iter().filter(|entry| !before.contains(entry)));
    changed
        .map(|entry| ObjectKey::new(namespace, entry.cluster_resource_set_name.as_str()))
        .collect()
}

/// The sets that have a resource.
fn resource_changed(cx: &Cx, kind: &str, old: Option<&Trace>, new: Option<&Trace>) -> Vec<ObjectKey> {
    let Some(metadata) = new.or(old).map(Trace::metadata) else {
        return Vec::new();
    };
    let value = resource(metadata.namespace(), kind, metadata.name());
    let sets = cx.cache::<ClusterResourceSet>().by_index(BY_RESOURCE, &value);
    sets.iter().map(|set| set.key()).collect()
}
