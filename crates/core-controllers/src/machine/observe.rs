//! Everything the Machine controller reads, as plain data. The only file of this controller that reads.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api::core::{Cluster, Machine, MachineDeployment, MachineDrainRule, MachineSet};
use windlass_api::k8s::{DaemonSet, Namespace, Node, PersistentVolume, Pod, VolumeAttachment};
use windlass_api::{labels, owner};
use windlass_cluster_cache::{Clusters, RemoteCluster, Workload};
use windlass_controller_runtime::{ApiClient, Budget, Cx, ListQuery, Object, ObjectKey, Seen, key_of};

use super::drain::rules::{Namespaces, Rules};
use super::in_place::Update;
use super::{NodeSync, drain, facts, volumes};
use crate::shared::clusters::is_standalone;
use crate::shared::nodes::PATIENCE;
use crate::shared::read::{self, Referenced};

/// What was found in the workload cluster.
#[derive(Clone, Debug)]
pub(crate) struct Remote {
    /// The Machine's Node.
    pub(crate) node: Option<Arc<Node>>,
    /// The names of the Nodes that have its provider ID, if there are several: which of them is its Node cannot be told.
    pub(crate) rivals: Vec<String>,
    /// The Pods on the Node; not looked for unless the Machine is being deleted.
    pub(crate) pods: Seen<Vec<Pod>>,
    /// The DaemonSets; not looked for unless one of those Pods belongs to one.
    pub(crate) daemon_sets: Seen<BTreeSet<ObjectKey>>,
    /// The labels of the namespaces; not looked for unless a rule about the Machine selects by them.
    pub(crate) namespaces: Seen<Namespaces>,
    /// The attachments of volumes to the Node; not looked for unless the Machine is being deleted.
    pub(crate) attachments: Seen<Vec<VolumeAttachment>>,
    /// The PersistentVolumes; not looked for unless a volume is attached to the Node.
    pub(crate) volumes: Seen<Vec<PersistentVolume>>,
}

impl Default for Remote {
    fn default() -> Self {
        Self {
            node: None,
            rivals: Vec::new(),
            pods: Seen::NotFound,
            daemon_sets: Seen::NotFound,
            namespaces: Seen::NotFound,
            attachments: Seen::NotFound,
            volumes: Seen::NotFound,
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
    /// The rules for drains in the Machine's namespace that are about it, or why that is unknown; none unless it is being deleted.
    pub(crate) drain_rules: Result<Rules, String>,
    /// The workload cluster's side.
    pub(crate) remote: Workload<Remote>,
    /// What goes to the Node beside what always does.
    pub(crate) sync: Arc<NodeSync>,
    /// What an extension says of an update in place; none before it was asked.
    pub(crate) update: Option<Update>,
}

impl Observed {
    /// Whether the Machine is being deleted.
    pub(crate) fn deleting(&self) -> bool {
        self.machine.metadata.deletion_timestamp.is_some()
    }

    /// Whether the workload cluster can have an API server by now.
    pub(crate) fn may_answer(&self) -> bool {
        facts::has_come_up(self) || self.cluster.found().is_some_and(|cluster| is_standalone(cluster))
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
pub(crate) async fn observe(cx: &Cx, clusters: &Clusters, sync: &Arc<NodeSync>, machine: Arc<Machine>) -> Observed {
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
        drain_rules: Ok(Rules::default()),
        remote: Workload::NotTried(String::new()),
        sync: sync.clone(),
        update: None,
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
        let labels = seen
            .cluster
            .found()
            .and_then(|cluster| cluster.metadata.labels.as_ref());
        let rules = cx.cache::<MachineDrainRule>().list(&namespace);
        seen.drain_rules = Rules::about(&rules, seen.machine.metadata.labels.as_ref(), labels);
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

/// The workload cluster's side. There is no connection before the control plane has answered once. Where it has no object, that is known by
/// the Node of its first Machine, which has to be found before.
async fn remote(clusters: &Clusters, cluster: &ObjectKey, seen: &Observed) -> Workload<Remote> {
    if !seen.may_answer() {
        return Workload::NotTried("the control plane is not initialized".to_owned());
    }
    let known = match clusters.with_nodes(cluster) {
        Workload::NotTried(why) => return Workload::NotTried(why),
        Workload::Down(outage) => return Workload::Down(outage),
        Workload::Up(connection) => look(&connection, seen).await,
    };
    // With its Cluster, a Machine goes whatever its Node does.
    let cluster_goes = seen
        .cluster
        .found()
        .is_some_and(|cluster| cluster.metadata.deletion_timestamp.is_some());
    if known.node.is_some() || !seen.deleting() || cluster_goes || facts::provider_id(seen).is_none() {
        return Workload::Up(known);
    }
    // Its host goes for good because of this: a watch that is behind, or whose cluster has gone silent, does not tell.
    let Ok(connection) = clusters.get(cluster) else {
        return clusters.with_nodes(cluster).map(|_| known);
    };
    let client = ApiClient::from(connection.client());
    match Budget::of(PATIENCE).within(node_now(&client, seen)).await {
        Some(Ok(node)) => Workload::Up(around(&client, node, seen).await),
        Some(Err(why)) => clusters.unanswered(cluster, why).map(|()| known),
        None => clusters
            .unanswered(cluster, "the list of Nodes takes too long".to_owned())
            .map(|()| known),
    }
}

/// The Node, and when the Machine is being deleted what is on the Node.
async fn look(connection: &RemoteCluster, seen: &Observed) -> Remote {
    let mut by_id = facts::provider_id(seen).map_or_else(Vec::new, |id| connection.nodes_by_provider_id(&id));
    let mut rivals = Vec::new();
    if by_id.len() > 1 {
        rivals.extend(by_id.drain(..).filter_map(|node| node.metadata.name.clone()));
        rivals.sort_unstable();
    }
    let recorded = || {
        let status = seen.machine.status.as_ref();
        let node = connection.node(&status?.node_ref.as_ref()?.name)?;
        facts::is_node_of(&node, seen).then_some(node)
    };
    let node = by_id.pop().or_else(recorded);
    let remote = around(&ApiClient::from(connection.client()), node, seen).await;
    Remote { rivals, ..remote }
}

/// The Node as the API server has it now.
async fn node_now(client: &ApiClient, seen: &Observed) -> Result<Option<Arc<Node>>, String> {
    let all = client
        .list::<Node>(ListQuery::default())
        .await
        .map_err(|error| error.to_string())?;
    let id = facts::provider_id(seen);
    let status = seen.machine.status.as_ref();
    let recorded = status
        .and_then(|status| status.node_ref.as_ref())
        .map(|node| node.name.as_str());
    let has_id =
        |node: &&Node| id.is_some() && node.spec.as_ref().and_then(|spec| spec.provider_id.as_ref()) == id.as_ref();
    let is_recorded = |node: &&Node| node.metadata.name.as_deref() == recorded && facts::is_node_of(node, seen);
    let found = all.iter().find(has_id).or_else(|| all.iter().find(is_recorded));
    Ok(found.cloned().map(Arc::new))
}

/// The Node, and when the Machine is being deleted what is on it.
async fn around(client: &ApiClient, node: Option<Arc<Node>>, seen: &Observed) -> Remote {
    let mut remote = Remote {
        node,
        ..Remote::default()
    };
    if seen.deleting()
        && facts::node_stages_end(seen).is_none()
        && let Some(node) = remote.node.clone()
    {
        let by_namespace = seen.drain_rules.as_ref().is_ok_and(Rules::ask_for_namespaces);
        look_at_node(client, &node, by_namespace, &mut remote).await;
    }
    remote
}

/// What is on the Node. Deletions are rare, and caches of all Pods and volumes are not cheap.
async fn look_at_node(client: &ApiClient, node: &Node, by_namespace: bool, remote: &mut Remote) {
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let on_node = ListQuery {
        fields: &format!("spec.nodeName={name}"),
        ..ListQuery::default()
    };
    remote.pods = list(client, on_node).await;
    let pods = remote.pods.found();
    if pods.is_some_and(|pods| pods.iter().any(|pod| drain::daemon_set_of(pod).is_some())) {
        let names = ListQuery {
            metadata_only: true,
            ..ListQuery::default()
        };
        let found = list::<DaemonSet>(client, names).await;
        remote.daemon_sets = found.map(|sets| sets.iter().map(|set| key_of(&set.metadata)).collect());
    }
    if by_namespace && pods.is_some_and(|pods| !pods.is_empty()) {
        let names = ListQuery {
            metadata_only: true,
            ..ListQuery::default()
        };
        let named = |namespace: Namespace| {
            let ObjectMeta { name, labels, .. } = namespace.metadata;
            (name.unwrap_or_default(), labels.unwrap_or_default())
        };
        let found = list::<Namespace>(client, names).await;
        remote.namespaces = found.map(|all| all.into_iter().map(named).collect());
    }
    remote.attachments = list(client, ListQuery::default())
        .await
        .map(|all: Vec<VolumeAttachment>| all.into_iter().filter(|item| item.spec.node_name == name).collect());
    let attachments = remote.attachments.found();
    if attachments.is_some_and(|attachments| volumes::is_any(node, attachments)) {
        remote.volumes = list(client, ListQuery::default()).await;
    }
}

async fn list<K: Object>(client: &ApiClient, query: ListQuery<'_>) -> Seen<Vec<K>> {
    match client.list::<K>(query).await {
        Ok(found) => Seen::Found(found),
        Err(error) => Seen::Failed(error.to_string()),
    }
}
