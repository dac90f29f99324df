//! Everything the Machine controller reads, as plain data. The only file of this controller that reads.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api::core::{Cluster, Machine, MachineDeployment, MachineSet};
use windlass_api::k8s::{Node, Pod, VolumeAttachment};
use windlass_api::{labels, owner};
use windlass_cluster_cache::{Clusters, RemoteCluster, Workload};
use windlass_controller_runtime::{ApiClient, Cx, ListQuery, ObjectKey, Seen};

use super::facts;
use crate::shared::read::{self, Referenced};

/// What was found in the workload cluster.
#[derive(Clone, Debug)]
pub(crate) struct Remote {
    /// The Machine's Node.
    pub(crate) node: Option<Arc<Node>>,
    /// The Pods on the Node; not looked for unless the Machine is being deleted.
    pub(crate) pods: Seen<Vec<Pod>>,
    /// The volumes attached to the Node; not looked for unless the Machine is being deleted.
    pub(crate) attachments: Seen<Vec<VolumeAttachment>>,
}

impl Default for Remote {
    fn default() -> Self {
        Self {
            node: None,
            pods: Seen::NotFound,
            attachments: Seen::NotFound,
        }
    }
}

/// What one pass over a Machine knows.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    /// The Machine.
    pub(crate) machine: Arc<Machine>,
    /// Its Cluster.
    pub(crate) cluster: Seen<Arc<Cluster>>,
    /// The bootstrap configuration; none when the user brings the data Secret.
    pub(crate) bootstrap: Option<Seen<Referenced>>,
    /// The infrastructure machine.
    pub(crate) infrastructure: Seen<Referenced>,
    /// The control plane object of the Cluster.
    pub(crate) control_plane: Seen<Referenced>,
    /// The control plane Machines of the Cluster.
    pub(crate) control_plane_machines: Vec<Arc<Machine>>,
    /// The MachineSet that controls this Machine.
    pub(crate) machine_set: Option<Arc<MachineSet>>,
    /// The MachineDeployment that controls that MachineSet.
    pub(crate) machine_deployment: Option<Arc<MachineDeployment>>,
    /// The workload cluster's side.
    pub(crate) remote: Workload<Remote>,
}

impl Observed {
    /// Whether the Machine is being deleted.
    pub(crate) fn deleting(&self) -> bool {
        self.machine.metadata.deletion_timestamp.is_some()
    }

    /// The Node, when the workload cluster answers and has it. Nothing follows from its absence alone.
    pub(crate) fn node(&self) -> Option<&Arc<Node>> {
        self.remote.up()?.node.as_ref()
    }

    /// The name of the Node this Machine became, also when the Node is gone.
    pub(crate) fn node_name(&self) -> Option<&str> {
        let recorded = self
            .machine
            .status
            .as_ref()
            .and_then(|s| s.node_ref.as_ref())
            .map(|r| r.name.as_str());
        self.node().and_then(|node| node.metadata.name.as_deref()).or(recorded)
    }
}

/// Reads everything.
pub(crate) async fn observe(cx: &Cx, clusters: &Clusters, machine: Arc<Machine>) -> Observed {
    let namespace = machine.metadata.namespace.clone().unwrap_or_default();
    let cluster_key = ObjectKey::new(&namespace, &machine.spec.cluster_name);
    let cluster: Seen<_> = cx.cache::<Cluster>().get(&cluster_key).into();
    let bootstrap = match &machine.spec.bootstrap.config_ref {
        Some(reference) => Some(read::referenced(cx, &namespace, reference).await),
        None => None,
    };
    let bootstrap = bootstrap.map(|found| read::unless_taken(found, "Machine", &machine.metadata));
    let infrastructure = read::referenced(cx, &namespace, &machine.spec.infrastructure_ref).await;
    let infrastructure = read::unless_taken(infrastructure, "Machine", &machine.metadata);
    let mut seen = Observed {
        cluster,
        bootstrap,
        infrastructure,
        control_plane: Seen::NotFound,
        control_plane_machines: Vec::new(),
        machine_set: None,
        machine_deployment: None,
        remote: Workload::NotTried(String::new()),
        machine,
    };
    if seen.deleting() {
        let reference = seen
            .cluster
            .found()
            .and_then(|cluster| cluster.spec.control_plane_ref.clone());
        if let Some(reference) = reference {
            seen.control_plane = read::referenced(cx, &namespace, &reference).await;
        }
        seen.control_plane_machines = cx
            .cache::<Machine>()
            .by_cluster(&namespace, &seen.machine.spec.cluster_name)
            .into_iter()
            .filter(|machine| {
                machine
                    .metadata
                    .labels
                    .as_ref()
                    .is_some_and(|all| all.contains_key(labels::CONTROL_PLANE))
            })
            .collect();
    }
    seen.machine_set = controller_of(&seen.machine.metadata, "MachineSet")
        .and_then(|name| cx.cache::<MachineSet>().get(&ObjectKey::new(&namespace, &name)));
    seen.machine_deployment = seen
        .machine_set
        .as_ref()
        .and_then(|set| controller_of(&set.metadata, "MachineDeployment"))
        .and_then(|name| cx.cache::<MachineDeployment>().get(&ObjectKey::new(&namespace, &name)));
    seen.remote = remote(clusters, &cluster_key, &seen).await;
    seen
}

/// The name of the controlling owner of that kind.
fn controller_of(metadata: &ObjectMeta, kind: &str) -> Option<String> {
    owner::controller_of(metadata)
        .filter(|owner| owner.kind == kind)
        .map(|owner| owner.name.clone())
}

/// The workload cluster's side. There is no connection before the control plane has answered once.
async fn remote(clusters: &Clusters, cluster: &ObjectKey, seen: &Observed) -> Workload<Remote> {
    let found = seen.cluster.found();
    if found
        .and_then(|cluster| facts::control_plane_initialized(cluster))
        .is_none()
    {
        return Workload::NotTried("the control plane is not initialized".to_owned());
    }
    match clusters.workload(cluster) {
        Workload::NotTried(why) => Workload::NotTried(why),
        Workload::Down(outage) => Workload::Down(outage),
        Workload::Up(connection) => Workload::Up(look(&connection, seen).await),
    }
}

/// The Node, and when the Machine is being deleted what is on the Node.
async fn look(connection: &RemoteCluster, seen: &Observed) -> Remote {
    let by_id = facts::provider_id(seen).and_then(|id| connection.node_by_provider_id(&id));
    let recorded = seen.machine.status.as_ref().and_then(|status| status.node_ref.as_ref());
    let mut remote = Remote {
        node: by_id.or_else(|| connection.node(&recorded?.name)),
        ..Remote::default()
    };
    let name = remote.node.as_ref().and_then(|node| node.metadata.name.clone());
    if let (true, Some(name)) = (seen.deleting(), name) {
        // Deletions are rare, and caches of all Pods and attachments are not cheap.
        let client = ApiClient::from(connection.client());
        let on_node = ListQuery {
            fields: &format!("spec.nodeName={name}"),
            ..ListQuery::default()
        };
        remote.pods = match client.list::<Pod>(on_node).await {
            Ok(pods) => Seen::Found(pods),
            Err(error) => Seen::Failed(error.to_string()),
        };
        remote.attachments = match client.list::<VolumeAttachment>(ListQuery::default()).await {
            Ok(attachments) => Seen::Found(
                attachments
                    .into_iter()
                    .filter(|item| item.spec.node_name == name)
                    .collect(),
            ),
            Err(error) => Seen::Failed(error.to_string()),
        };
    }
    remote
}
