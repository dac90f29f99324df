//! Everything the Machine controller reads, as plain data. The only file of this controller that reads.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api::core::{Cluster, Machine, MachineDeployment, MachineSet};
use windlass_api::k8s::{Node, Pod, VolumeAttachment};
use windlass_api::{conditions, labels, owner};
use windlass_kit::{ApiClient, Cx, ListQuery, ObjectKey, Seen};
use windlass_remote::Clusters;

use super::plan;
use crate::shared::read::{self, Referenced};

/// What is known of the workload cluster and of this Machine's Node.
#[derive(Clone, Debug)]
pub(crate) struct Remote {
    /// When the connection last proved to work; none before the first time.
    pub(crate) last_probe: Option<Timestamp>,
    /// Why nobody can ask at the moment.
    pub(crate) disconnected: Option<String>,
    /// The Node.
    pub(crate) node: Seen<Arc<Node>>,
    /// The Pods on the Node; read only when the Machine is being drained.
    pub(crate) pods: Seen<Vec<Pod>>,
    /// The volumes attached to the Node; read only when the Machine waits for them.
    pub(crate) attachments: Seen<Vec<VolumeAttachment>>,
}

impl Default for Remote {
    fn default() -> Self {
        Self {
            last_probe: None,
            disconnected: None,
            node: Seen::NotFound,
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
    pub(crate) remote: Remote,
}

impl Observed {
    /// Whether the Machine is being deleted.
    pub(crate) fn deleting(&self) -> bool {
        self.machine.metadata.deletion_timestamp.is_some()
    }

    /// The Node, when it is there.
    pub(crate) fn node(&self) -> Option<&Arc<Node>> {
        self.remote.node.found()
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
        remote: Remote::default(),
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

/// The workload cluster's side. Nobody connects before the control plane has answered once.
async fn remote(clusters: &Clusters, cluster: &ObjectKey, seen: &Observed) -> Remote {
    let initialized = seen
        .cluster
        .found()
        .and_then(|cluster| cluster.status.as_ref())
        .is_some_and(|status| windlass_conditions::is_true(&status.conditions, conditions::CONTROL_PLANE_INITIALIZED));
    if !initialized {
        return Remote {
            disconnected: Some("the control plane is not initialized".to_owned()),
            ..Remote::default()
        };
    }
    let last_probe = clusters.last_probe_success(cluster);
    let connection = match clusters.get(cluster) {
        Ok(connection) => connection,
        Err(why) => {
            return Remote {
                last_probe,
                disconnected: Some(why.to_string()),
                ..Remote::default()
            };
        }
    };
    let node = plan::provider_id(seen)
        .and_then(|id| connection.node_by_provider_id(&id))
        .or_else(|| {
            let name = seen.machine.status.as_ref()?.node_ref.as_ref()?.name.clone();
            connection.nodes().get(&ObjectKey::new("", &name))
        });
    let mut remote = Remote {
        last_probe,
        node: node.into(),
        ..Remote::default()
    };
    if seen.deleting()
        && let Some(name) = remote.node.found().and_then(|node| node.metadata.name.clone())
    {
        // Pods and attachments are read only while a Machine goes: a drain is rare, a cache of all Pods is not cheap.
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
