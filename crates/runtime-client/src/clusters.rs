//! Clusters in requests to extensions.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api::annotations::{CONVERSION_DATA, PENDING_HOOKS, TOPOLOGY_UPGRADE_STEP};
use windlass_api::codec::{LAST_APPLIED, Stored as _};
use windlass_api::core::Cluster;

/// The Cluster as extensions see it: without its status, and without what only controllers and API servers need.
pub fn shown(cluster: &Cluster) -> Cluster {
    let mut shown = Cluster {
        status: None,
        ..cluster.clone()
    };
    shown.metadata.managed_fields = None;
    if let Some(annotations) = &mut shown.metadata.annotations {
        for of_tools in [CONVERSION_DATA, LAST_APPLIED] {
            annotations.remove(of_tools);
        }
    }
    shown
}

/// Changes with what a user says of the Cluster, and not with its status or with marks of controllers.
pub fn version(cluster: &Cluster) -> u64 {
    let mut annotations = cluster.metadata.annotations.clone();
    for mark in [PENDING_HOOKS, TOPOLOGY_UPGRADE_STEP] {
        annotations.as_mut().and_then(|all| all.remove(mark));
    }
    let said = Cluster {
        metadata: ObjectMeta {
            labels: cluster.metadata.labels.clone(),
            annotations: annotations.filter(|all| !all.is_empty()),
            ..ObjectMeta::default()
        },
        status: None,
        ..cluster.clone()
    };
    let mut hasher = DefaultHasher::new();
    said.to_json().to_string().hash(&mut hasher);
    hasher.finish()
}
