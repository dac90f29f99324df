//! Everything the MachinePool controller reads, as plain data. The only file of this controller that reads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use windlass_api::core::{Cluster, Machine, MachinePool};
use windlass_api::k8s::Node;
use windlass_api::labels;
use windlass_api::meta::MetaExt as _;
use windlass_cluster_cache::{Clusters, RemoteCluster, Workload};
use windlass_contract::{infra_machine, infra_machine_pool};
use windlass_controller_runtime::{Cx, Dynamic, GroupKind, ObjectKey, Seen};
use windlass_meta::label_or_hash;

use super::facts;
use crate::shared::machines::controlled_by;
use crate::shared::read::{self, Referenced};

/// What one pass over a MachinePool knows.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    /// The MachinePool.
    pub(crate) pool: Arc<MachinePool>,
    /// Its Cluster.
    pub(crate) cluster: Seen<Arc<Cluster>>,
    /// The bootstrap configuration; none when the user brings the data Secret.
    pub(crate) bootstrap: Option<Seen<Referenced>>,
    /// The infrastructure object.
    pub(crate) infrastructure: Seen<Referenced>,
    /// The objects of single machines; none when the provider has no such kind.
    pub(crate) hosts: Option<Seen<Vec<Arc<Dynamic>>>>,
    /// The Machines of the pool, and those with the name of a host.
    pub(crate) machines: Vec<Arc<Machine>>,
    /// The names of the other pools of the Cluster.
    pub(crate) neighbours: BTreeSet<String>,
    /// The Nodes that the pool knows by name, and those of its hosts, by name.
    pub(crate) nodes: Workload<BTreeMap<String, Arc<Node>>>,
}

impl Observed {
    /// Whether the MachinePool is being deleted.
    pub(crate) fn deleting(&self) -> bool {
        self.pool.metadata.is_deleting()
    }
}

/// Reads everything.
pub(super) async fn observe(cx: &Cx, clusters: &Clusters, pool: Arc<MachinePool>) -> Observed {
    let meta = &pool.metadata;
    let space = meta.namespace();
    let cluster_key = ObjectKey::new(space, pool.spec.cluster_name.as_str());
    let template = &pool.spec.template.spec;
    let bootstrap = match &template.bootstrap.config_ref {
        Some(reference) => Some(read::referenced(cx, space, reference).await),
        None => None,
    };
    let infrastructure = read::referenced(cx, space, &template.infrastructure_ref).await;
    let infrastructure = read::unless_foreign(infrastructure, "MachinePool", meta);
    let hosts = hosts(cx, &pool, &infrastructure).await;
    let mut seen = Observed {
        cluster: cx.cache::<Cluster>().get(&cluster_key).into(),
        bootstrap: bootstrap.map(|found| read::unless_foreign(found, "MachinePool", meta)),
        infrastructure,
        neighbours: neighbours(cx, &pool),
        machines: machines(cx, &pool, hosts.as_ref().and_then(Seen::found)),
        hosts,
        nodes: Workload::NotTried(String::new()),
        pool,
    };
    seen.nodes = clusters
        .with_nodes(&cluster_key)
        .map(|connection| nodes(&connection, &seen));
    seen
}

/// The objects of single machines: of the kind that the infrastructure object names, in its group, with the labels of the pool.
async fn hosts(cx: &Cx, pool: &MachinePool, infrastructure: &Seen<Referenced>) -> Option<Seen<Vec<Arc<Dynamic>>>> {
    let object = infrastructure.found()?;
    let kind = infra_machine_pool::machine_kind(object.value())?;
    let kind = GroupKind::new(object.gvk().group, kind);
    Some(match cx.dynamic(&kind).await {
        Ok(cache) => {
            let mut hosts = cache.by_cluster(pool.metadata.namespace(), &pool.spec.cluster_name);
            let label = label_or_hash(pool.metadata.name());
            hosts.retain(|host| host.label(labels::MACHINE_POOL_NAME) == Some(label.as_str()));
            hosts.sort_by(|one, other| one.name().cmp(other.name()));
            Seen::Found(hosts)
        }
        Err(error) => Seen::Failed(error.to_string()),
    })
}

/// Machines by the labels of the pool, or by their owner when those are lost, and whatever has the name that a Machine gets.
fn machines(cx: &Cx, pool: &MachinePool, hosts: Option<&Vec<Arc<Dynamic>>>) -> Vec<Arc<Machine>> {
    let space = pool.metadata.namespace();
    let label = label_or_hash(pool.metadata.name());
    let cache = cx.cache::<Machine>();
    let mut machines = cache.by_cluster(space, &pool.spec.cluster_name);
    machines.retain(|machine| {
        let meta = &machine.metadata;
        meta.label(labels::MACHINE_POOL_NAME) == Some(label.as_str()) || controlled_by(meta, pool.metadata.uid())
    });
    let known: BTreeSet<String> = machines
        .iter()
        .flat_map(|machine| {
            [
                machine.metadata.name().to_owned(),
                machine.spec.infrastructure_ref.name.clone(),
            ]
        })
        .collect();
    let others = hosts.into_iter().flatten().filter(|host| !known.contains(host.name()));
    machines.extend(others.filter_map(|host| cache.get(&ObjectKey::new(space, host.name()))));
    machines.sort_by(|one, other| one.metadata.name().cmp(other.metadata.name()));
    machines
}

fn neighbours(cx: &Cx, pool: &MachinePool) -> BTreeSet<String> {
    let pools = cx
        .cache::<MachinePool>()
        .by_cluster(pool.metadata.namespace(), &pool.spec.cluster_name);
    let names = pools.iter().filter_map(|other| other.metadata.name.clone());
    names.filter(|name| name != pool.metadata.name()).collect()
}

/// The Nodes that the status names, and those of the provider IDs that are known.
fn nodes(connection: &RemoteCluster, seen: &Observed) -> BTreeMap<String, Arc<Node>> {
    let status = seen.pool.status.as_ref();
    let named = status.into_iter().flat_map(|status| &status.node_refs);
    let named = named.filter_map(|reference| connection.node(reference.name.as_deref()?));
    let listed = facts::provider_ids(seen);
    let hosts = seen.hosts.as_ref().and_then(Seen::found).into_iter().flatten();
    let of_hosts = hosts.filter_map(|host| infra_machine::provider_id(host.value()));
    let by_id = listed.iter().map(String::as_str).chain(of_hosts);
    let by_id = by_id.filter_map(|id| connection.node_by_provider_id(id));
    let all = named.chain(by_id);
    all.filter_map(|node| Some((node.metadata.name.clone()?, node)))
        .collect()
}
