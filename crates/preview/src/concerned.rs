//! Which classes and Clusters a change concerns.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_api::core::{Cluster, ClusterClass};
use windlass_controller_runtime::{Cx, ObjectKey, Stored as _, key_of};
use windlass_topology::blueprint::references;
use windlass_topology::model::{ClassSpec, read};

use crate::names::{Id, cluster_of};

/// Classes and Clusters.
#[derive(Debug, Default)]
pub(crate) struct Concerned {
    pub(crate) classes: BTreeSet<ObjectKey>,
    pub(crate) clusters: BTreeSet<ObjectKey>,
}

/// What changed objects concern. Classes and Clusters are gone through once.
pub(crate) fn concerned(cx: &Cx, changed: &[Value]) -> Concerned {
    let mut out = Concerned::default();
    let mut templates: BTreeSet<Id> = BTreeSet::new();
    for object in changed {
        let id = Id::of(object);
        if id.kind == "ClusterClass" {
            out.classes.insert(id.key());
        } else if id.kind.ends_with("Template") {
            out.clusters.extend(cluster_of(object));
            templates.insert(id);
        } else if let Some(cluster) = cluster_of(object) {
            out.clusters.insert(cluster);
        }
    }
    if !templates.is_empty() {
        for class in cx.cache::<ClusterClass>().all() {
            let key = key_of(&class.metadata);
            let spec: ClassSpec = read(&class.to_json(), "/spec").unwrap_or_default();
            let uses = references(&spec).into_iter().any(|reference| {
                templates.contains(&Id {
                    kind: reference.template.kind.clone(),
                    group: reference.template.group().to_owned(),
                    namespace: key.namespace.clone(),
                    name: reference.template.name.clone(),
                })
            });
            if uses {
                out.classes.insert(key);
            }
        }
    }
    if !out.classes.is_empty() {
        let all = cx.cache::<Cluster>().all();
        let using = all
            .iter()
            .filter(|cluster| class_of(cluster).is_some_and(|class| out.classes.contains(&class)));
        out.clusters.extend(using.map(|cluster| key_of(&cluster.metadata)));
    }
    out
}

/// The class of a Cluster with a topology.
pub(crate) fn class_of(cluster: &Cluster) -> Option<ObjectKey> {
    let class = &cluster.spec.topology.as_ref()?.class_ref;
    let own = cluster.metadata.namespace.clone().unwrap_or_default();
    Some(ObjectKey::new(
        class.namespace.clone().unwrap_or(own),
        class.name.clone(),
    ))
}
