//! Which events wake which MachinePools.

use windlass_api::core::{Cluster, Machine, MachinePool};
use windlass_api::k8s::Node;
use windlass_api::labels;
use windlass_api::meta::MetaExt as _;
use windlass_cluster_cache::{Clusters, RemoteEvent};
use windlass_controller_runtime::{Cx, Dynamic, Later, ObjectKey, Wake, Watch, key_of, refers_to};
use windlass_meta::label_or_hash;

use crate::shared::machines::controller;
use crate::shared::wake::{MOMENT, Urgency, of_machine};

use super::facts::provider_id;

/// The index of pools by the names of their Nodes, and by the provider IDs of their machines.
const NODES: &str = "machine pools by node";

pub(super) fn watches(clusters: &Clusters) -> Vec<Watch> {
    vec![
        Watch::dynamic_owned(),
        Watch::referenced::<MachinePool>(references),
        Watch::dynamic_map(host_changed),
        Watch::map::<Cluster>(cluster_changed),
        Watch::source(follow_machines),
        Watch::source(|cx, _| cx.cache::<MachinePool>().add_index(NODES, nodes)),
        clusters.watch(remote_changed),
    ]
}

/// What a pool refers to may come after it, with its kind, and when it went it may come again.
fn references(pool: &MachinePool) -> Vec<String> {
    let namespace = pool.metadata.namespace();
    let template = &pool.spec.template.spec;
    let all = template
        .bootstrap
        .config_ref
        .iter()
        .chain([&template.infrastructure_ref]);
    all.flat_map(|to| refers_to(&to.group_kind(), &ObjectKey::new(namespace, &to.name)))
        .collect()
}

/// The Nodes that a pool knows, by name and by provider ID.
fn nodes(pool: &MachinePool) -> Vec<String> {
    let cluster = pool.spec.cluster_name.as_str();
    let space = pool.metadata.namespace();
    let ids = pool.spec.provider_id_list.iter().map(|id| by_id(space, cluster, id));
    let status = pool.status.as_ref();
    let named = status.into_iter().flat_map(|status| &status.node_refs);
    let named = named.filter_map(|reference| Some(by_name(space, cluster, reference.name.as_deref()?)));
    ids.chain(named).collect()
}

fn by_id(namespace: &str, cluster: &str, id: &str) -> String {
    format!("{namespace}/{cluster}/id/{id}")
}

fn by_name(namespace: &str, cluster: &str, name: &str) -> String {
    format!("{namespace}/{cluster}/name/{name}")
}

/// The pools of a label: its value may be a hash of the name.
fn pools_of(cx: &Cx, namespace: &str, cluster: &str, label: &str) -> Vec<ObjectKey> {
    let pools = cx.cache::<MachinePool>().by_cluster(namespace, cluster);
    let named = pools.iter().filter(|pool| label_or_hash(pool.metadata.name()) == label);
    named.map(|pool| key_of(&pool.metadata)).collect()
}

/// The objects of single machines come, go and learn their provider IDs.
fn host_changed(cx: &Cx, old: Option<&Dynamic>, new: Option<&Dynamic>) -> Vec<ObjectKey> {
    let Some(host) = new.or(old) else { return Vec::new() };
    let (Some(label), Some(cluster)) = (host.label(labels::MACHINE_POOL_NAME), host.label(labels::CLUSTER_NAME)) else {
        return Vec::new();
    };
    let facts = |host: &Dynamic| {
        let id = windlass_contract::infra_machine::provider_id(host.value()).map(str::to_owned);
        (id, host.is_deleting(), host.metadata().labels.clone())
    };
    if let (Some(old), Some(new)) = (old, new)
        && facts(old) == facts(new)
    {
        return Vec::new();
    }
    pools_of(cx, host.metadata().namespace(), cluster, label)
}

fn cluster_changed(cx: &Cx, old: Option<&Cluster>, new: Option<&Cluster>) -> Vec<ObjectKey> {
    match (old, new) {
        (None, Some(cluster)) | (Some(cluster), None) => pools_in(cx, &key_of(&cluster.metadata)),
        _ => Vec::new(),
    }
}

fn pools_in(cx: &Cx, cluster: &ObjectKey) -> Vec<ObjectKey> {
    let pools = cx.cache::<MachinePool>().by_cluster(&cluster.namespace, &cluster.name);
    pools.iter().map(|pool| key_of(&pool.metadata)).collect()
}

/// The pools of a Machine, by owner and by label.
fn follow_machines(cx: Cx, wake: Wake) {
    let later = Later::new(&cx, wake.clone(), MOMENT);
    let cache = cx.cache::<Machine>();
    cache.subscribe(move |change| {
        let (old, new) = (change.old.as_deref(), change.new.as_deref());
        let urgency = of_machine(old, new);
        if urgency == Urgency::Never {
            return;
        }
        if let (Some(gone), None) = (old, new) {
            // It may have had the name of a machine of a pool.
            let key = ObjectKey::new(gone.metadata.namespace(), gone.spec.cluster_name.as_str());
            wake.add_all(pools_in(&cx, &key));
        }
        for machine in [old, new].into_iter().flatten() {
            for pool in pools_of_machine(&cx, machine) {
                if urgency == Urgency::Later {
                    later.add(pool);
                } else {
                    wake.add(pool);
                }
            }
        }
    });
}

fn pools_of_machine(cx: &Cx, machine: &Machine) -> Vec<ObjectKey> {
    let meta = &machine.metadata;
    if let Some(owner) = controller(meta).filter(|owner| owner.kind == "MachinePool") {
        return vec![ObjectKey::new(meta.namespace(), owner.name.as_str())];
    }
    match meta.label(labels::MACHINE_POOL_NAME) {
        Some(label) => pools_of(cx, meta.namespace(), &machine.spec.cluster_name, label),
        None => Vec::new(),
    }
}

/// A connection that comes or goes, and the list of its Nodes, concern all pools of a Cluster, a Node the one that it belongs to.
fn remote_changed(cx: &Cx, event: &RemoteEvent) -> Vec<ObjectKey> {
    match event {
        RemoteEvent::Connected(cluster) | RemoteEvent::Disconnected(cluster) | RemoteEvent::Listed(cluster) => {
            pools_in(cx, cluster)
        }
        RemoteEvent::Probed(_) => Vec::new(),
        RemoteEvent::Node { cluster, old, new } => {
            if let (Some(old), Some(new)) = (old, new)
                && facts_of(old) == facts_of(new)
            {
                return Vec::new();
            }
            let (space, name) = (cluster.namespace.as_str(), cluster.name.as_str());
            let cache = cx.cache::<MachinePool>();
            let values = [old, new].into_iter().flatten().flat_map(|node| {
                let by_name = by_name(space, name, node.metadata.name());
                let by_id = provider_id(node).map(|id| by_id(space, name, id));
                [Some(by_name), by_id].into_iter().flatten()
            });
            let pools = values.flat_map(|value| cache.by_index(NODES, &value));
            pools.map(|pool| key_of(&pool.metadata)).collect()
        }
    }
}

/// What a pool looks at on a Node. A heartbeat changes nothing of it.
fn facts_of(node: &Node) -> impl PartialEq + '_ {
    let status = node.status.as_ref();
    let conditions = status
        .and_then(|status| status.conditions.as_ref())
        .into_iter()
        .flatten();
    let ready = conditions
        .filter(|condition| condition.type_ == "Ready")
        .map(|condition| (&condition.status, &condition.last_transition_time))
        .next();
    let version = status
        .and_then(|status| status.node_info.as_ref())
        .map(|info| &info.kubelet_version);
    let spec = node.spec.as_ref();
    (
        ready,
        version,
        spec.map(|spec| (&spec.provider_id, &spec.taints)),
        &node.metadata.annotations,
        &node.metadata.uid,
    )
}
