//! Workload clusters through the shared connections of `windlass-cluster-cache`.

mod cluster_info;
mod dns;
mod extension_authorities;
mod kubeadm;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};
use windlass_api::k8s::{DaemonSet, Deployment, Node, Pod, PodStatus};
use windlass_cluster_cache::{Clusters, RemoteCluster, RemoteEvent, Workload};
use windlass_controller_runtime::{ApiClient, Cache, Codec, Cx, ObjectKey, PatchKind, Stored, Tasks, gvk_of};
use windlass_etcd::{EtcdMembers, GrpcEtcd, async_trait};

use super::read_only::ReadOnlyEtcd;
use super::{WorkloadCluster, WorkloadClusters};
use crate::core_dns::{CORE_DNS, CoreDns, CoreDnsChange, CoreDnsObjects};
use crate::facts::{NodeFacts, PodFacts};
use crate::names::{MANAGER, NODE_ROLE, NODE_UNREACHABLE};

const SYSTEM: &str = "kube-system";
const PODS: &str = "/api/v1/namespaces/kube-system/pods";
const DAEMON_SETS: &str = "/apis/apps/v1/namespaces/kube-system/daemonsets";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/kube-system/deployments";
const CONFIG_MAPS: &str = "/api/v1/namespaces/kube-system/configmaps";
/// The DaemonSet, and its container.
const KUBE_PROXY: &str = "kube-proxy";
/// How long the first list of pods may take.
const FIRST_LIST: Duration = Duration::from_secs(10);
/// How long a tunnel that is kept may take to show that it still works.
const KEPT_TUNNEL: Duration = Duration::from_secs(3);
/// The name that kubeadm gives to the serving certificates of API servers.
const API_SERVER: &str = "kube-apiserver";
/// Static pods that make up a control plane, by the beginning of their names.
const COMPONENTS: [&str; 4] = [
    "kube-apiserver-",
    "kube-controller-manager-",
    "kube-scheduler-",
    "etcd-",
];

type Changed = Arc<dyn Fn(&ObjectKey) + Send + Sync>;

/// Workload clusters through the shared connections.
///
/// Adds to each connection that a control plane asks for a watch of the static pods, which end the waits for components, watches of
/// kube-proxy and, where it is asked for, of CoreDNS and its Corefile, and one tunnel to an etcd member that is kept while it works.
pub struct RemoteClusters {
    clusters: Clusters,
    tasks: Tasks,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    links: Mutex<HashMap<ObjectKey, Arc<Link>>>,
    subscribers: Mutex<Vec<Changed>>,
}

/// What is kept beside one connection.
struct Link {
    connection: Arc<RemoteCluster>,
    pods: Cache<SystemPod>,
    kube_proxy: Cache<DaemonSet>,
    /// Watched from the first time that it is asked for: most control planes ask nothing of CoreDNS.
    core_dns: OnceLock<Cache<Deployment>>,
    /// Whether an update of CoreDNS was looked for that was begun before this connection, and there is none.
    core_dns_is_finished: AtomicBool,
    /// Watched from the first time that CoreDNS is to be changed: nothing else shows that a ConfigMap comes that was missing.
    corefile: OnceLock<Cache<ConfigMap>>,
    teller: (Weak<Shared>, ObjectKey),
    etcd: Mutex<Option<(String, GrpcEtcd)>>,
    tasks: Tasks,
}

impl Link {
    fn core_dns(&self) -> &Cache<Deployment> {
        self.core_dns.get_or_init(|| {
            let (client, kind) = (self.connection.client().clone(), gvk_of::<Deployment>());
            let cache = Cache::<Deployment>::stand_alone_object(client, DEPLOYMENTS, kind, CORE_DNS, &self.tasks);
            let (teller, key) = self.teller.clone();
            cache.subscribe(move |change| {
                let read = |deployment: &Option<Arc<Deployment>>| deployment.as_deref().map(dns::shown);
                if let (Some(teller), true) = (teller.upgrade(), read(&change.old) != read(&change.new)) {
                    teller.tell(&key);
                }
            });
            cache
        })
    }

    fn corefile(&self) -> &Cache<ConfigMap> {
        self.corefile.get_or_init(|| {
            let (client, kind) = (self.connection.client().clone(), gvk_of::<ConfigMap>());
            let cache = Cache::<ConfigMap>::stand_alone_object(client, CONFIG_MAPS, kind, CORE_DNS, &self.tasks);
            let (teller, key) = self.teller.clone();
            cache.subscribe(move |change| {
                let data = |map: &Option<Arc<ConfigMap>>| map.as_deref().map(|map| map.data.clone());
                if let (Some(teller), true) = (teller.upgrade(), data(&change.old) != data(&change.new)) {
                    teller.tell(&key);
                }
            });
            cache
        })
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.tasks.stop();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn tell(&self, cluster: &ObjectKey) {
        let subscribers = locked(&self.subscribers).clone();
        for subscriber in subscribers {
            subscriber(cluster);
        }
    }
}

impl RemoteClusters {
    /// Workload clusters that `clusters` connects to.
    pub fn new(cx: &Cx, clusters: Clusters) -> Self {
        let shared = Arc::new(Shared::default());
        let follow = Arc::downgrade(&shared);
        clusters.subscribe(move |event| {
            let Some(shared) = follow.upgrade() else {
                return;
            };
            match event {
                RemoteEvent::Disconnected(cluster) => {
                    locked(&shared.links).remove(cluster);
                    shared.tell(cluster);
                }
                RemoteEvent::Connected(cluster) | RemoteEvent::Listed(cluster) | RemoteEvent::Probed(cluster) => {
                    shared.tell(cluster);
                }
                RemoteEvent::Node { cluster, old, new } => {
                    if matters(old.as_deref(), new.as_deref()) {
                        shared.tell(cluster);
                    }
                }
            }
        });
        Self {
            clusters,
            tasks: cx.tasks().clone(),
            shared,
        }
    }

    fn link(&self, cluster: &ObjectKey, connection: Arc<RemoteCluster>) -> Arc<Link> {
        let mut links = locked(&self.shared.links);
        if let Some(link) = links.get(cluster)
            && Arc::ptr_eq(&link.connection, &connection)
        {
            return Arc::clone(link);
        }
        let tasks = self.tasks.child();
        let client = connection.client().clone();
        let pods = Cache::<SystemPod>::stand_alone(client.clone(), PODS, gvk_of::<Pod>(), &tasks);
        let kind = gvk_of::<DaemonSet>();
        let kube_proxy = Cache::<DaemonSet>::stand_alone_object(client, DAEMON_SETS, kind, KUBE_PROXY, &tasks);
        let (teller, key) = (Arc::downgrade(&self.shared), cluster.clone());
        kube_proxy.subscribe(move |change| {
            let image = |set: &Option<Arc<DaemonSet>>| set.as_deref().and_then(kube_proxy_image);
            if let (Some(teller), true) = (teller.upgrade(), image(&change.old) != image(&change.new)) {
                teller.tell(&key);
            }
        });
        let (teller, key) = (Arc::downgrade(&self.shared), cluster.clone());
        pods.subscribe(move |change| {
            let component = change.object().is_some_and(|pod| is_component(&pod.metadata));
            if let (Some(teller), true) = (teller.upgrade(), component) {
                teller.tell(&key);
            }
        });
        let link = Arc::new(Link {
            connection,
            pods,
            kube_proxy,
            core_dns: OnceLock::new(),
            core_dns_is_finished: AtomicBool::new(false),
            corefile: OnceLock::new(),
            teller: (Arc::downgrade(&self.shared), cluster.clone()),
            etcd: Mutex::default(),
            tasks,
        });
        links.insert(cluster.clone(), Arc::clone(&link));
        link
    }
}

impl WorkloadClusters for RemoteClusters {
    fn workload(&self, cluster: &ObjectKey) -> Workload<Box<dyn WorkloadCluster>> {
        self.clusters.workload(cluster).map(|connection| {
            let link = self.link(cluster, connection);
            Box::new(Remote { link }) as Box<dyn WorkloadCluster>
        })
    }

    fn subscribe(&self, changed: Changed) {
        locked(&self.shared.subscribers).push(changed);
    }
}

/// A Node that comes or goes, or whose role, reachability or readiness changes; heartbeats do not matter.
fn matters(old: Option<&Node>, new: Option<&Node>) -> bool {
    match (old.map(node), new.map(node)) {
        (Some(old), Some(new)) => old != new && (old.role_label || new.role_label),
        (Some(only), None) | (None, Some(only)) => only.role_label,
        (None, None) => false,
    }
}

fn is_component(metadata: &ObjectMeta) -> bool {
    let name = metadata.name.as_deref().unwrap_or_default();
    COMPONENTS.iter().any(|component| name.starts_with(component))
}

/// What is kept of a pod: only the state of those of the control plane is read.
#[derive(Clone, Debug)]
struct SystemPod {
    metadata: ObjectMeta,
    status: Option<PodStatus>,
}

impl Stored for SystemPod {
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn encode(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&json!({ "metadata": self.metadata }))
    }
}

impl Codec for SystemPod {
    fn decode(json: &[u8]) -> serde_json::Result<Self> {
        let Pod {
            mut metadata, status, ..
        } = Pod::decode(json)?;
        let status = status.filter(|_| is_component(&metadata));
        metadata.annotations = None;
        metadata.managed_fields = None;
        if status.is_none() {
            metadata.labels = None;
        }
        Ok(Self { metadata, status })
    }
}

fn kube_proxy_image(set: &DaemonSet) -> Option<String> {
    let mut containers = set.spec.template.spec.containers.iter();
    containers.find(|c| c.name == KUBE_PROXY).and_then(|c| c.image.clone())
}

fn node(node: &Node) -> NodeFacts {
    let meta = &node.metadata;
    let taints = node.spec.as_ref().and_then(|s| s.taints.as_ref());
    let has_taint = |key: &str, effect: &str| {
        let mut taints = taints.into_iter().flatten();
        taints.any(|t| t.key == key && t.effect == effect)
    };
    let conditions = node.status.as_ref().and_then(|s| s.conditions.as_ref());
    let ready = conditions.into_iter().flatten().find(|c| c.type_ == "Ready");
    NodeFacts {
        name: meta.name.clone().unwrap_or_default(),
        provider_id: node.spec.as_ref().and_then(|s| s.provider_id.clone()),
        role_label: meta.labels.as_ref().is_some_and(|l| l.contains_key(NODE_ROLE)),
        role_taint: has_taint(NODE_ROLE, "NoSchedule"),
        unreachable: has_taint(NODE_UNREACHABLE, "NoExecute"),
        ready: ready.map(|c| c.status.clone()),
        created: meta.creation_timestamp.as_ref().map(|t| t.0),
    }
}

fn pod(pod: &SystemPod) -> PodFacts {
    let Some(status) = &pod.status else {
        return PodFacts::default();
    };
    let conditions = status.conditions.iter().flatten();
    let mut facts = PodFacts {
        phase: status.phase.clone().unwrap_or_else(|| "Unknown".to_owned()),
        true_conditions: conditions
            .filter(|c| c.status == "True")
            .map(|c| c.type_.clone())
            .collect(),
        ..PodFacts::default()
    };
    for container in status.container_statuses.iter().flatten() {
        let state = container.state.as_ref();
        if let Some(waiting) = state.and_then(|s| s.waiting.as_ref()) {
            facts.waiting.extend(waiting.reason.clone());
        }
        if let Some(terminated) = state.and_then(|s| s.terminated.as_ref()) {
            facts.terminated.extend(terminated.reason.clone());
        }
        let before = container.last_state.as_ref();
        let before = before.and_then(|s| s.terminated.as_ref());
        facts.failed_before |= before.is_some_and(|t| t.exit_code != 0);
    }
    facts
}

/// One workload cluster.
struct Remote {
    link: Arc<Link>,
}

impl Remote {
    fn client(&self) -> ApiClient {
        ApiClient::from(self.link.connection.client())
    }

    /// The etcd member on a Node, through a tunnel that is kept.
    async fn member(&self, node: &str) -> Result<GrpcEtcd, String> {
        let name = format!("etcd-{node}");
        let kept = locked(&self.link.etcd).clone();
        if let Some((_, etcd)) = kept.filter(|(pod, _)| *pod == name) {
            // A tunnel ends silently with its pod; asking finds out soon.
            if etcd.answers_within(KEPT_TUNNEL).await {
                return Ok(etcd);
            }
            *locked(&self.link.etcd) = None;
        }
        let etcd = self.link.connection.etcd(&name).await;
        let etcd = etcd.map_err(|e| e.to_string())?;
        *locked(&self.link.etcd) = Some((name, etcd.clone()));
        Ok(etcd)
    }

    /// The Deployment of CoreDNS.
    async fn deployment(&self) -> Result<Option<Deployment>, String> {
        let found = self.client().get::<Deployment>(&ObjectKey::new(SYSTEM, CORE_DNS)).await;
        found.map_err(|e| format!("reading Deployment kube-system/coredns: {e}"))
    }

    /// Changes kubeadm's configuration, if there is a change.
    async fn store(&self, patch: Option<Value>) -> Result<(), String> {
        let Some(patch) = patch else {
            return Ok(());
        };
        let (client, key) = (self.client(), ObjectKey::new(SYSTEM, "kubeadm-config"));
        let patched = client.patch::<ConfigMap>(MANAGER, &key, PatchKind::Merge, &patch);
        patched
            .await
            .map_err(|e| format!("changing ConfigMap kube-system/kubeadm-config: {e}"))
    }

    async fn config(&self) -> Result<Option<ConfigMap>, String> {
        let found = self
            .client()
            .get::<ConfigMap>(&ObjectKey::new(SYSTEM, "kubeadm-config"))
            .await;
        found.map_err(|e| format!("reading ConfigMap kube-system/kubeadm-config: {e}"))
    }
}

#[async_trait]
impl WorkloadCluster for Remote {
    async fn has_kubeadm_config(&self) -> Result<bool, String> {
        Ok(self.config().await?.is_some())
    }

    async fn nodes(&self, also: &BTreeSet<String>) -> Result<Vec<NodeFacts>, String> {
        let nodes = self.link.connection.nodes();
        if !nodes.is_synced() {
            let first = tokio::time::timeout(FIRST_LIST, nodes.synced()).await;
            first.map_err(|_| "no list of the Nodes in time".to_owned())?;
        }
        let nodes = nodes.all();
        let nodes = nodes.iter().map(|n| node(n));
        let wanted = nodes.filter(|n| n.role_label || also.contains(&n.name));
        let mut wanted: Vec<NodeFacts> = wanted.collect();
        wanted.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(wanted)
    }

    async fn pods(&self) -> Result<BTreeMap<String, PodFacts>, String> {
        let pods = &self.link.pods;
        if !pods.is_synced() {
            let first = tokio::time::timeout(FIRST_LIST, pods.synced()).await;
            first.map_err(|_| "no list of the pods in kube-system in time".to_owned())?;
        }
        let pods = pods.all();
        let components = pods.iter().filter(|p| is_component(&p.metadata));
        Ok(components
            .map(|p| (p.metadata.name.clone().unwrap_or_default(), pod(p)))
            .collect())
    }

    async fn etcd(&self, node: &str) -> Result<Box<dyn EtcdMembers>, String> {
        let etcd = self.member(node).await?;
        let connection = &self.link.connection;
        Ok(match connection.read_only() {
            None => Box::new(etcd),
            Some(read_only) => Box::new(ReadOnlyEtcd {
                etcd,
                cluster: connection.cluster().clone(),
                read_only: read_only.clone(),
            }),
        })
    }

    async fn kube_proxy_image(&self) -> Result<Option<String>, String> {
        let (watched, key) = (&self.link.kube_proxy, ObjectKey::new(SYSTEM, KUBE_PROXY));
        if watched.is_synced() {
            return Ok(watched.get(&key).as_deref().and_then(kube_proxy_image));
        }
        // A watch that is not allowed never says why: a request does.
        let found = self.client().get::<DaemonSet>(&key).await;
        let found = found.map_err(|e| format!("reading DaemonSet kube-system/kube-proxy: {e}"))?;
        Ok(found.as_ref().and_then(kube_proxy_image))
    }

    async fn set_kube_proxy_image(&self, image: &str) -> Result<(), String> {
        let containers = json!([{ "name": "kube-proxy", "image": image }]);
        let patch = json!({ "spec": { "template": { "spec": { "containers": containers } } } });
        let (client, key) = (self.client(), ObjectKey::new(SYSTEM, "kube-proxy"));
        let patched = client.patch::<DaemonSet>(MANAGER, &key, PatchKind::Strategic, &patch);
        patched
            .await
            .map_err(|e| format!("changing DaemonSet kube-system/kube-proxy: {e}"))
    }

    async fn core_dns(&self) -> Result<Option<CoreDns>, String> {
        let (watched, key) = (self.link.core_dns(), ObjectKey::new(SYSTEM, CORE_DNS));
        if watched.is_synced() {
            return Ok(watched.get(&key).as_deref().map(dns::core_dns));
        }
        // As for kube-proxy.
        Ok(self.deployment().await?.as_ref().map(dns::core_dns))
    }

    async fn unfinished_core_dns(&self) -> Result<Option<CoreDns>, String> {
        if self.link.core_dns.get().is_none() {
            // One look for each connection: after it, only this process begins updates, and it watches CoreDNS then.
            if self.link.core_dns_is_finished.load(Ordering::Acquire) {
                return Ok(None);
            }
            let found = self.deployment().await?.as_ref().map(dns::core_dns);
            if !found.as_ref().is_some_and(CoreDns::is_unfinished) {
                self.link.core_dns_is_finished.store(true, Ordering::Release);
                return Ok(None);
            }
        }
        Ok(self.core_dns().await?.filter(CoreDns::is_unfinished))
    }

    async fn core_dns_objects(&self) -> Result<Option<CoreDnsObjects>, String> {
        let (watched, key) = (self.link.corefile(), ObjectKey::new(SYSTEM, CORE_DNS));
        if watched.is_synced() && watched.get(&key).is_none() {
            return Ok(None);
        }
        let Some(deployment) = self.deployment().await? else {
            return Ok(None);
        };
        let found = self.client().get::<ConfigMap>(&key).await;
        let found = found.map_err(|e| format!("reading ConfigMap kube-system/coredns: {e}"))?;
        Ok(found.map(|map| CoreDnsObjects {
            deployment: dns::core_dns(&deployment),
            corefile: dns::corefile(map),
        }))
    }

    async fn change_core_dns(&self, change: &CoreDnsChange) -> Result<(), String> {
        let (client, key) = (self.client(), ObjectKey::new(SYSTEM, CORE_DNS));
        let patch = dns::patch(change);
        let (kind, changed) = match change {
            CoreDnsChange::Corefile { .. } => {
                let changed = client.patch::<ConfigMap>(MANAGER, &key, PatchKind::Merge, &patch);
                ("ConfigMap", changed.await)
            }
            CoreDnsChange::Deployment { .. } => {
                let changed = client.patch::<Deployment>(MANAGER, &key, PatchKind::Strategic, &patch);
                ("Deployment", changed.await)
            }
        };
        changed.map_err(|e| format!("changing {kind} kube-system/coredns: {e}"))
    }

    async fn update_kubeadm_dns(&self, dns: &Value, version: &str) -> Result<(), String> {
        self.store(kubeadm::update_dns(self.config().await?, dns, version)?)
            .await
    }

    async fn update_kubeadm_config(&self, configuration: &Value, version: &str) -> Result<(), String> {
        self.store(kubeadm::update(self.config().await?, configuration, version)?)
            .await
    }

    async fn ensure_rbac(&self, version: &str) -> Result<(), String> {
        let client = self.client();
        for binding in kubeadm::bindings(version) {
            let name = binding.metadata.name.clone().unwrap_or_default();
            let key = ObjectKey::cluster_scoped(name.as_str());
            let found = client.get::<ClusterRoleBinding>(&key).await;
            if found
                .map_err(|e| format!("reading ClusterRoleBinding {name}: {e}"))?
                .is_some()
            {
                continue;
            }
            match client.create(MANAGER, &binding).await {
                Err(error) if !error.is_already_exists() => {
                    return Err(format!("making ClusterRoleBinding {name}: {error}"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    async fn cluster_info(&self) -> Result<Option<String>, String> {
        let found = self.client().get::<ConfigMap>(&cluster_info::key()).await;
        let found = found.map_err(|e| format!("reading ConfigMap kube-public/cluster-info: {e}"))?;
        found.map(|map| cluster_info::authorities(&map)).transpose()
    }

    async fn update_cluster_info(&self, authorities: &str) -> Result<(), String> {
        let (client, key) = (self.client(), cluster_info::key());
        let found = client.get::<ConfigMap>(&key).await;
        let found = found.map_err(|e| format!("reading ConfigMap kube-public/cluster-info: {e}"))?;
        let Some(map) = found else {
            return Ok(());
        };
        let patch = cluster_info::patch(&map, authorities)?;
        let patched = client.patch::<ConfigMap>(MANAGER, &key, PatchKind::Merge, &patch);
        patched
            .await
            .map_err(|e| format!("changing ConfigMap kube-public/cluster-info: {e}"))
    }

    async fn extension_authorities(&self) -> Result<Option<BTreeSet<String>>, String> {
        extension_authorities::read(&self.client()).await
    }

    async fn drop_extension_authorities(&self, fingerprints: &BTreeSet<String>) -> Result<(), String> {
        extension_authorities::take_out(&self.client(), fingerprints).await
    }

    async fn certificate_expiry(&self, node: &str, port: u16) -> Result<Timestamp, String> {
        let pod = format!("kube-apiserver-{node}");
        let served = self.link.connection.server_certificates(&pod, port).await;
        let served = served.map_err(|e| e.to_string())?;
        let read = served.into_iter().map(windlass_pki::Certificate::from_der);
        let read: Result<Vec<_>, _> = read.collect();
        let read = read.map_err(|e| e.to_string())?;
        // The chain may have others that kubeadm does not renew.
        let own = read.iter().rfind(|certificate| certificate.common_name() == API_SERVER);
        own.map(windlass_pki::Certificate::not_after)
            .ok_or_else(|| format!("pod {pod} shows no certificate with the common name {API_SERVER}"))
    }
}
