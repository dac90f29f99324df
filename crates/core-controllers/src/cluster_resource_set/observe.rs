//! Reads everything that the ClusterResourceSet controller decides from.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use windlass_api::addons::{ClusterResourceSet, ClusterResourceSetBinding, RESOURCE_SET_SECRET_TYPE, ResourceRef};
use windlass_api::core::Cluster;
use windlass_api::kind::ApiKind as _;
use windlass_api::meta::MetaExt as _;
use windlass_cluster_cache::{Clusters, Workload};
use windlass_contract::Selector;
use windlass_controller_runtime::{Cx, ObjectKey, Seen, Selection};

use super::contents;
use super::observed::{Observed, Read, Resource, Trace};

/// The kind of resources that are Secrets.
const SECRET: &str = "Secret";

/// ConfigMaps, of which any may be a resource.
pub(super) fn config_maps() -> Selection {
    Selection::metadata("")
}

/// Secrets that may be resources. No others are listed.
pub(super) fn secrets() -> Selection {
    Selection::metadata(format!("type={RESOURCE_SET_SECRET_TYPE}"))
}

pub(super) async fn observe(cx: &Cx, clusters: &Clusters, set: &Arc<ClusterResourceSet>) -> Observed {
    let namespace = set.metadata.namespace().to_owned();
    let chosen = chosen(cx, clusters, set);
    let records = cx.cache::<ClusterResourceSetBinding>().list(&namespace);
    let is_about = |record: &ClusterResourceSetBinding| {
        record.entry(set.metadata.name()).is_some()
            || chosen
                .as_ref()
                .is_ok_and(|chosen| chosen.contains_key(record.metadata.name()))
    };
    let mut bindings: BTreeMap<_, _> = records
        .into_iter()
        .filter(|record| is_about(record))
        .map(|record| (record.metadata.name().to_owned(), record))
        .collect();
    // Another set may have made the record a moment ago, and a cache has no object that it cannot decode.
    let mut unreadable = BTreeMap::new();
    for cluster in chosen.iter().flat_map(BTreeMap::keys) {
        if bindings.contains_key(cluster) {
            continue;
        }
        let key = ObjectKey::new(namespace.as_str(), cluster.as_str());
        match cx.read::<ClusterResourceSetBinding>(&key).await {
            Seen::Found(record) => drop(bindings.insert(cluster.clone(), Arc::new(record))),
            Seen::NotFound => {}
            Seen::Failed(why) => drop(unreadable.insert(cluster.clone(), why)),
        }
    }
    let resources = set.spec.resources.iter().map(|reference| Resource {
        reference: reference.clone(),
        found: trace(cx, &namespace, reference),
        read: None,
    });
    Observed {
        resources: resources.collect(),
        set: Arc::clone(set),
        chosen,
        bindings,
        unreadable,
    }
}

/// The Clusters that a set selects. An empty selector selects none.
fn chosen(cx: &Cx, clusters: &Clusters, set: &ClusterResourceSet) -> Result<BTreeMap<String, Workload<()>>, String> {
    let selector = Selector::parse(&set.spec.cluster_selector).map_err(|error| error.to_string())?;
    if selector.is_everything() {
        return Ok(BTreeMap::new());
    }
    let all = cx.cache::<Cluster>().list(set.metadata.namespace());
    let chosen = all
        .iter()
        .filter(|cluster| !cluster.is_deleting() && selector.matches(cluster.metadata.labels.as_ref()));
    let known = chosen.map(|cluster| {
        let key = cluster.key();
        (key.name.clone(), clusters.workload(&key).map(drop))
    });
    Ok(known.collect())
}

fn trace(cx: &Cx, namespace: &str, resource: &ResourceRef) -> Option<Arc<Trace>> {
    let key = ObjectKey::new(namespace, resource.name.as_str());
    if resource.kind == SECRET {
        cx.part::<Secret, Trace>(&secrets()).get(&key)
    } else {
        cx.part::<ConfigMap, Trace>(&config_maps()).get(&key)
    }
}

/// Reads these resources from the API server.
pub(super) async fn read(cx: &Cx, mut seen: Observed, asked: &[usize]) -> Observed {
    let namespace = seen.set.metadata.namespace().to_owned();
    for (index, resource) in seen.resources.iter_mut().enumerate() {
        if !asked.contains(&index) {
            continue;
        }
        let key = ObjectKey::new(namespace.as_str(), resource.reference.name.as_str());
        resource.read = Some(if resource.reference.kind == SECRET {
            match cx.read::<Secret>(&key).await {
                Seen::Found(secret) => match secret.type_.as_deref() {
                    Some(RESOURCE_SET_SECRET_TYPE) => Read::Contents(Seen::Found(contents::of_secret(&secret))),
                    other => Read::WrongType(other.unwrap_or("Opaque").to_owned()),
                },
                Seen::NotFound => Read::Contents(Seen::NotFound),
                Seen::Failed(why) => Read::Contents(Seen::Failed(why)),
            }
        } else {
            let map = cx.read::<ConfigMap>(&key).await;
            Read::Contents(map.map(|map| contents::of_config_map(&map)))
        });
    }
    seen
}
