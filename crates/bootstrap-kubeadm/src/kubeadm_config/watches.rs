//! What wakes a KubeadmConfig besides its own events.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use kube::Resource as _;
use windlass_api::core::v1beta2::{Cluster, ContractVersionedObjectReference, Machine, MachinePool};
use windlass_api::kind::ApiKind as _;
use windlass_api_kubeadm::bootstrap::KubeadmConfig;
use windlass_controller_runtime::owner::owner_of_kind;
use windlass_controller_runtime::{Cx, ObjectKey, Watch};
use windlass_pki::Purpose;

use crate::workload::WorkloadClusters;

use super::observed::{endpoint, is_initialized, is_provisioned};

/// The watches of the controller.
pub(super) fn watches(clusters: Arc<dyn WorkloadClusters>) -> Vec<Watch> {
    vec![
        Watch::map::<Machine>(machine),
        Watch::map::<MachinePool>(pool),
        Watch::map::<Cluster>(cluster),
        Watch::map::<Secret>(secret),
        Watch::source(move |cx, wake| {
            clusters.on_change(Box::new(move |cluster| {
                let (namespace, name) = (&cluster.namespace, &cluster.name);
                wake.add_all(keys(&cx, namespace, name, is_kept));
            }));
        }),
    ]
}

/// The KubeadmConfig that a reference means.
fn config_of(namespace: Option<&String>, reference: Option<&ContractVersionedObjectReference>) -> Vec<ObjectKey> {
    let of_kind =
        |to: &&ContractVersionedObjectReference| to.kind == KubeadmConfig::KIND && to.api_group == KubeadmConfig::GROUP;
    let namespace = namespace.map_or("", String::as_str);
    let to = reference.filter(of_kind);
    to.map(|to| ObjectKey::new(namespace, to.name.as_str()))
        .into_iter()
        .collect()
}

/// A MachinePool matters when it comes, changes what its data is made from, gets or loses Nodes, or goes.
fn pool(_: &Cx, old: Option<&MachinePool>, new: Option<&MachinePool>) -> Vec<ObjectKey> {
    let facts = |pool: &MachinePool| {
        (
            pool.status.as_ref().map(|status| status.node_refs.len()),
            pool.metadata.deletion_timestamp.is_some(),
            pool.spec.replicas,
            pool.spec.template.spec.version.clone(),
            pool.spec.template.spec.bootstrap.config_ref.clone(),
        )
    };
    let Some(new) = new.filter(|new| old.is_none_or(|old| facts(old) != facts(new))) else {
        return Vec::new();
    };
    let reference = new.spec.template.spec.bootstrap.config_ref.as_ref();
    config_of(new.metadata.namespace.as_ref(), reference)
}

/// A Machine matters when it comes, becomes a node, or goes; one that goes may have held the init lock.
fn machine(cx: &Cx, old: Option<&Machine>, new: Option<&Machine>) -> Vec<ObjectKey> {
    let joined = |machine: &Machine| machine.status.as_ref().is_some_and(|status| status.node_ref.is_some());
    let facts = |machine: &Machine| {
        (
            joined(machine),
            machine.metadata.deletion_timestamp.is_some(),
            machine.spec.bootstrap.data_secret_name.clone(),
        )
    };
    match (old, new) {
        (Some(old), None) => {
            let cluster = &old.spec.cluster_name;
            unfinished(cx, old.metadata.namespace.as_deref().unwrap_or_default(), cluster)
        }
        (Some(old), Some(new)) if facts(old) == facts(new) => Vec::new(),
        (_, Some(new)) => config_of(new.metadata.namespace.as_ref(), new.spec.bootstrap.config_ref.as_ref()),
        (None, None) => Vec::new(),
    }
}

/// A Cluster matters when one of the things that data waits for comes true.
fn cluster(cx: &Cx, old: Option<&Cluster>, new: Option<&Cluster>) -> Vec<ObjectKey> {
    let facts = |cluster: &Cluster| (is_provisioned(cluster), is_initialized(cluster), endpoint(cluster));
    let Some(new) = new else {
        return Vec::new();
    };
    if old.is_some_and(|old| facts(old) == facts(new)) {
        return Vec::new();
    }
    let meta = new.meta();
    of_cluster(
        cx,
        meta.namespace.as_deref().unwrap_or_default(),
        meta.name.as_deref().unwrap_or_default(),
    )
}

/// A Secret matters when it is one of the cluster's certificates and a config waits for it or is that of a MachinePool, whose data follows
/// them; when the owners of a config's data Secret change; or when the data Secret of a MachinePool goes.
fn secret(cx: &Cx, old: Option<&Secret>, new: Option<&Secret>) -> Vec<ObjectKey> {
    let Some(secret) = new.or(old) else {
        return Vec::new();
    };
    let name = secret.metadata.name.as_deref().unwrap_or_default();
    let namespace = secret.metadata.namespace.as_deref().unwrap_or_default();
    let Some(new) = new else {
        let key = ObjectKey::new(namespace, name);
        let config = cx.cache::<KubeadmConfig>().get(&key);
        return config
            .filter(|config| is_of_pool(config))
            .map(|_| key)
            .into_iter()
            .collect();
    };
    if old.is_some_and(|old| old.data == new.data) {
        let owners = |secret: &Secret| secret.metadata.owner_references.clone();
        let key = ObjectKey::new(namespace, name);
        let disowned =
            old.is_some_and(|old| owners(old) != owners(new)) && cx.cache::<KubeadmConfig>().get(&key).is_some();
        return disowned.then_some(key).into_iter().collect();
    }
    Purpose::CONTROL_PLANE
        .into_iter()
        .chain([Purpose::ApiServerEtcdClient])
        .filter_map(|purpose| name.strip_suffix(purpose.suffix())?.strip_suffix('-'))
        .flat_map(|cluster| keys(cx, namespace, cluster, is_kept))
        .collect()
}

/// All configs of a cluster.
pub(super) fn of_cluster(cx: &Cx, namespace: &str, cluster: &str) -> Vec<ObjectKey> {
    keys(cx, namespace, cluster, |_| true)
}

/// The configs of a cluster whose data has not been made.
pub(super) fn unfinished(cx: &Cx, namespace: &str, cluster: &str) -> Vec<ObjectKey> {
    keys(cx, namespace, cluster, is_unfinished)
}

fn is_unfinished(config: &KubeadmConfig) -> bool {
    let status = config.status.as_ref();
    status.is_none_or(|status| status.data_secret_name.is_none())
}

/// Whether a config is that of a MachinePool, whose token and data are kept all the time.
fn is_of_pool(config: &KubeadmConfig) -> bool {
    owner_of_kind(&config.metadata, MachinePool::GROUP, MachinePool::KIND).is_some()
}

/// Whether its data or its token is not made yet, or is kept all the time.
fn is_kept(config: &KubeadmConfig) -> bool {
    is_unfinished(config) || is_of_pool(config)
}

fn keys(cx: &Cx, namespace: &str, cluster: &str, wanted: impl Fn(&KubeadmConfig) -> bool) -> Vec<ObjectKey> {
    cx.cache::<KubeadmConfig>()
        .by_cluster(namespace, cluster)
        .iter()
        .filter(|config| wanted(config))
        .map(|config| ObjectKey::new(namespace, config.metadata.name.as_deref().unwrap_or_default()))
        .collect()
}
