//! Everything the Cluster controller reads, as plain data. The only file of this controller that reads.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use windlass_api::core::{
    Cluster, ClusterClass, ContractVersionedObjectReference, Machine, MachineDeployment, MachinePool, MachineSet,
};
use windlass_api::labels;
use windlass_api::meta::MetaExt as _;
use windlass_cluster_cache::{Clusters, Workload};
use windlass_controller_runtime::{Cx, ObjectKey, Seen, key_of, owner};
use windlass_pki::{KeyMaterial, Purpose};

use super::hook::BeforeDelete;
use crate::shared::clusters::is_standalone;
use crate::shared::machines::controller;
use crate::shared::read::{self, Referenced};

/// What one pass over a Cluster knows.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    /// The Cluster.
    pub(crate) cluster: Arc<Cluster>,
    /// Its class, for the availability gates.
    pub(crate) class: Option<Arc<ClusterClass>>,
    /// The infrastructure cluster; none when the Cluster names none.
    pub(crate) infrastructure: Option<Seen<Referenced>>,
    /// The control plane object; none when the Cluster names none.
    pub(crate) control_plane: Option<Seen<Referenced>>,
    /// The MachineDeployments of the Cluster.
    pub(crate) deployments: Vec<Arc<MachineDeployment>>,
    /// The MachinePools of the Cluster.
    pub(crate) pools: Vec<Arc<MachinePool>>,
    /// MachineSets that belong to the Cluster itself.
    pub(crate) sets: Vec<Arc<MachineSet>>,
    /// Control plane Machines.
    pub(crate) control_plane_machines: Vec<Arc<Machine>>,
    /// All other Machines.
    pub(crate) worker_machines: Vec<Arc<Machine>>,
    /// The Secrets that the Cluster makes itself; none when its control plane makes them.
    pub(crate) credentials: Option<Credentials>,
    /// The connection to the workload cluster.
    pub(crate) probe: Workload<()>,
    /// Why this process refuses the workload cluster's API server, if it does.
    pub(crate) refused: Option<String>,
    /// What extensions say to the deletion; none before they were asked.
    pub(crate) before_delete: Option<BeforeDelete>,
}

/// What a kubeconfig is made of, for a Cluster whose control plane has no object.
#[derive(Clone, Debug)]
pub(crate) struct Credentials {
    /// Whether there is a kubeconfig, whatever it says.
    pub(crate) kubeconfig: bool,
    /// The authority of the workload cluster.
    pub(crate) authority: Seen<KeyMaterial>,
}

impl Observed {
    /// Whether the Cluster is being deleted.
    pub(crate) fn deleting(&self) -> bool {
        self.cluster.metadata.deletion_timestamp.is_some()
    }

    /// Whether the Cluster is the controller of the objects it references. Without a topology it is an owner like others: what made
    /// the objects may be their controller.
    pub(crate) fn controls(&self) -> bool {
        self.cluster.spec.topology.is_some()
    }

    /// Whether an object belongs to the Cluster itself, not to something of it.
    pub(crate) fn owns(&self, metadata: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta) -> bool {
        owner::is_owned_by(metadata, self.cluster.metadata.uid.as_deref().unwrap_or_default())
    }

    /// The workers that the conditions report. Those of MachinePools are left out, as in Cluster API.
    pub(crate) fn judged_workers(&self) -> impl Iterator<Item = &Arc<Machine>> {
        let is_of_pool = |machine: &Machine| machine.metadata.label(labels::MACHINE_POOL_NAME).is_some();
        self.worker_machines.iter().filter(move |machine| !is_of_pool(machine))
    }

    /// The infrastructure cluster, when it is there.
    pub(crate) fn infrastructure(&self) -> Option<&Referenced> {
        self.infrastructure.as_ref().and_then(Seen::found)
    }

    /// The control plane object, when it is there.
    pub(crate) fn control_plane(&self) -> Option<&Referenced> {
        self.control_plane.as_ref().and_then(Seen::found)
    }
}

/// Reads everything.
pub(crate) async fn observe(cx: &Cx, clusters: &Clusters, cluster: Arc<Cluster>) -> Observed {
    let key = key_of(&cluster.metadata);
    let machines = cx.cache::<Machine>().by_cluster(&key.namespace, &key.name);
    let is_control_plane = |machine: &Arc<Machine>| {
        machine
            .metadata
            .labels
            .as_ref()
            .is_some_and(|all| all.contains_key(labels::CONTROL_PLANE))
    };
    let (control_plane_machines, worker_machines) = machines.into_iter().partition(is_control_plane);
    let class = cluster.spec.topology.as_ref().and_then(|topology| {
        let namespace = topology
            .class_ref
            .namespace
            .clone()
            .unwrap_or_else(|| key.namespace.clone());
        cx.cache::<ClusterClass>()
            .get(&ObjectKey::new(&namespace, &topology.class_ref.name))
    });
    let uid = cluster.metadata.uid.clone().unwrap_or_default();
    let mut sets = cx.cache::<MachineSet>().by_cluster(&key.namespace, &key.name);
    // A set that has lost its owner counts as one of its MachineDeployment until nothing else would delete it.
    let is_lost = |set: &MachineSet| cluster.metadata.is_deleting() && controller(&set.metadata).is_none();
    sets.retain(|set| owner::is_owned_by(&set.metadata, &uid) || is_lost(set));
    Observed {
        class,
        infrastructure: reference(cx, &cluster, cluster.spec.infrastructure_ref.as_ref()).await,
        control_plane: reference(cx, &cluster, cluster.spec.control_plane_ref.as_ref()).await,
        deployments: cx.cache::<MachineDeployment>().by_cluster(&key.namespace, &key.name),
        pools: cx.cache::<MachinePool>().by_cluster(&key.namespace, &key.name),
        sets,
        control_plane_machines,
        worker_machines,
        credentials: is_standalone(&cluster).then(|| credentials(cx, &key)),
        probe: clusters.probe(&key),
        refused: clusters.refusal(&key),
        before_delete: None,
        cluster,
    }
}

fn credentials(cx: &Cx, cluster: &ObjectKey) -> Credentials {
    let secret = |purpose: Purpose| {
        let name = purpose.secret_name(&cluster.name);
        cx.cache::<Secret>()
            .get(&ObjectKey::new(cluster.namespace.as_str(), name))
    };
    let authority = secret(Purpose::ClusterCa).map(|secret| {
        let data = secret.data.as_ref();
        KeyMaterial::read(&Purpose::ClusterCa.secret_name(&cluster.name), |key| {
            data.and_then(|data| data.get(key)).map(|bytes| bytes.0.as_slice())
        })
    });
    Credentials {
        kubeconfig: secret(Purpose::Kubeconfig).is_some(),
        authority: match authority {
            None => Seen::NotFound,
            Some(Ok(material)) => Seen::Found(material),
            Some(Err(error)) => Seen::Failed(error.to_string()),
        },
    }
}

async fn reference(
    cx: &Cx,
    cluster: &Cluster,
    to: Option<&ContractVersionedObjectReference>,
) -> Option<Seen<Referenced>> {
    let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
    let found = read::referenced(cx, namespace, to?).await;
    Some(if cluster.spec.topology.is_some() {
        read::unless_foreign(found, "Cluster", &cluster.metadata)
    } else {
        read::unless_taken(found, "Cluster", &cluster.metadata)
    })
}
