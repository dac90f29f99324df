//! Reads a class, its templates and revisions, and its Clusters with what tells whether they are up to date. The only reader.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use windlass_api::core::{Cluster, ClusterClass, MachineDeployment, MachinePool, MachineSet};
use windlass_api::kind::ApiKind as _;
use windlass_api::labels::TOPOLOGY_OWNED;
use windlass_api::meta::MetaExt as _;
use windlass_api_ext::rollouts::{ClusterClassRevision, ClusterClassRollout};
use windlass_controller_runtime::{Cx, GroupKind, ObjectKey, Seen, Stored as _};
use windlass_topology::blueprint::references;
use windlass_topology::model::{ClassSpec, TemplateRef, read};

use crate::cluster::memory::Memory;
use crate::cluster::observe::version::{Reader, version_for};
use crate::cluster::watches::clusters_of;

/// What was read.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(super) rollout: Arc<ClusterClassRollout>,
    /// The class, if there is one.
    pub(super) class: Option<Arc<ClusterClass>>,
    /// The class as JSON; null without one.
    pub(super) value: Value,
    /// What it names, in order; or why that cannot be read.
    pub(super) references: Result<Vec<TemplateRef>, String>,
    /// The templates that it names.
    pub(super) templates: BTreeMap<TemplateRef, Seen<Arc<Value>>>,
    /// All revisions of classes of its namespace, by name.
    pub(super) revisions: BTreeMap<String, Arc<ClusterClassRevision>>,
    /// The names of those that have other contents than their names stand for, and are not used.
    pub(super) edited: BTreeSet<String>,
    /// Its Clusters that are not being deleted.
    pub(super) clusters: Vec<OfClass>,
}

impl Observed {
    /// A revision that has the contents that its name stands for.
    pub(super) fn usable(&self, revision: &str) -> Option<&Arc<ClusterClassRevision>> {
        self.revisions.get(revision).filter(|_| !self.edited.contains(revision))
    }
}

/// A Cluster and the objects of its topology that have Machines.
#[derive(Debug)]
pub(super) struct OfClass {
    pub(super) cluster: Arc<Cluster>,
    pub(super) control_plane: Seen<Arc<Value>>,
    pub(super) deployments: Vec<Workers>,
    pub(super) pools: Vec<Arc<MachinePool>>,
}

/// A MachineDeployment with its MachineSets.
#[derive(Debug)]
pub(super) struct Workers {
    pub(super) deployment: Arc<MachineDeployment>,
    pub(super) sets: Vec<Arc<MachineSet>>,
}

pub(super) async fn observe(cx: &Cx, rollout: Arc<ClusterClassRollout>, memory: &Memory) -> Observed {
    let key = rollout.key();
    let class = cx.cache::<ClusterClass>().get(&key);
    let value = class.as_ref().map_or(Value::Null, |class| class.to_json());
    let spec = read::<ClassSpec>(&value, "/spec");
    let mut templates = BTreeMap::new();
    let reader = Reader { cx, memory };
    for reference in spec.as_ref().map(references).unwrap_or_default() {
        let template = reference.template;
        if templates.contains_key(template) {
            continue;
        }
        let kind = GroupKind::new(template.group(), template.kind.as_str());
        let of_template = ObjectKey::new(key.namespace.as_str(), template.name.as_str());
        let found = reader
            .get(&kind, version_for(Some(template), &kind), &of_template)
            .await;
        templates.insert(template.clone(), found);
    }
    let references = spec
        .map(|spec| references(&spec).into_iter().map(|one| one.template.clone()).collect())
        .map_err(|error| error.to_string());
    let revisions = cx.cache::<ClusterClassRevision>().list(&key.namespace);
    let revisions: BTreeMap<_, _> = revisions
        .into_iter()
        .map(|one| (one.metadata.name().to_owned(), one))
        .collect();
    let is_edited = |one: &Arc<ClusterClassRevision>| matches!(memory.revision(&one.key(), one), Ok(None));
    let edited = revisions.values().filter(|one| is_edited(one));
    let edited = edited.map(|one| one.metadata.name().to_owned()).collect();
    let mut clusters = Vec::new();
    for cluster in clusters_of(cx, &key) {
        if !cluster.is_deleting() {
            clusters.push(of_class(cx, cluster).await);
        }
    }
    Observed {
        rollout,
        class,
        value,
        references,
        templates,
        revisions,
        edited,
        clusters,
    }
}

async fn of_class(cx: &Cx, cluster: Arc<Cluster>) -> OfClass {
    let (namespace, name) = (cluster.metadata.namespace(), cluster.metadata.name());
    let control_plane = match &cluster.spec.control_plane_ref {
        Some(reference) if !reference.name.is_empty() => match cx.dynamic(&reference.group_kind()).await {
            Ok(cache) => {
                let found = cache.get(&ObjectKey::new(namespace, reference.name.as_str()));
                found.map(|object| object.shared()).into()
            }
            Err(error) => Seen::Failed(error.to_string()),
        },
        _ => Seen::NotFound,
    };
    let deployments = cx.cache::<MachineDeployment>().by_cluster(namespace, name);
    let sets = cx.cache::<MachineSet>();
    let deployments = deployments
        .into_iter()
        .filter(|one| one.metadata.label(TOPOLOGY_OWNED).is_some())
        .map(|deployment| Workers {
            sets: sets.by_owner(deployment.metadata.uid()),
            deployment,
        })
        .collect();
    let mut pools = cx.cache::<MachinePool>().by_cluster(namespace, name);
    pools.retain(|one| one.metadata.label(TOPOLOGY_OWNED).is_some());
    OfClass {
        cluster,
        control_plane,
        deployments,
        pools,
    }
}
