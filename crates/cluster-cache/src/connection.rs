//! One connection to one workload cluster.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http_body_util::{BodyExt, Limited};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::config::KubeConfigOptions;
use parking_lot::{Mutex, RwLock};
use tokio::sync::Semaphore;
use windlass_api::k8s::Node;
use windlass_controller_runtime::transport::Bounds;
use windlass_controller_runtime::{Cache, CountedHost, Cx, ObjectKey, Tasks, gvk_of, transport, with_causes};
use windlass_etcd::GrpcEtcd;
use windlass_pki::Purpose;

use crate::certificate;
use crate::error::RemoteError;
use crate::etcd::{self, Credentials};
use crate::health::{Health, Probe};
use crate::kubeconfig;
use crate::options::{EtcdTimeouts, Options};
use crate::own_pod::{OwnPod, share_authority};
use crate::read_only::ReadOnly;
use crate::tunnel::Tunnels;

/// Index of Nodes by providerID.
const BY_PROVIDER_ID: &str = "providerID";

/// The most bytes of the answer to a probe. It says the version.
const LARGEST_PROBE: usize = 1 << 20;

/// How long the first list of Nodes may keep other connections from their lists.
const TURN: Duration = Duration::from_secs(30);

/// A connection to a workload cluster: client, Nodes, tunnels to its pods.
pub struct RemoteCluster {
    cluster: ObjectKey,
    read_only: Option<ReadOnly>,
    etcd: EtcdTimeouts,
    config: kube::Config,
    client: kube::Client,
    tunnels: OnceLock<Tunnels>,
    bounds: Bounds,
    nodes: Cache<Node>,
    /// When the connection was established.
    since: Timestamp,
    /// Whether the Nodes were not listed in time.
    is_late: AtomicBool,
    health: Arc<RwLock<Health>>,
    secrets: Cache<Secret>,
    credentials: tokio::sync::Mutex<Option<Credentials>>,
    cx: Cx,
    /// Keeps the watch of the Nodes.
    watches: Watches,
}

/// What is known of the Nodes of a connected cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nodes {
    /// All of them.
    Listed,
    /// Nothing yet.
    Awaited,
    /// Nothing, although there was time for a list.
    Late,
}

/// The watches of a connection. They end with it, also when it is given up before it is complete.
struct Watches(Tasks);

impl std::fmt::Debug for RemoteCluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteCluster")
            .field("cluster", &self.cluster)
            .field("host", &transport::host_of(&self.config.cluster_url))
            .finish_non_exhaustive()
    }
}

impl Drop for Watches {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl RemoteCluster {
    /// Connects, and waits for the API server's first answer. The Nodes are listed afterwards, one of the `turns` at a time: that may take
    /// minutes.
    pub(crate) async fn connect(
        cx: &Cx,
        cluster: &ObjectKey,
        kubeconfig: &[u8],
        (health, host, bounds): (Arc<RwLock<Health>>, &Mutex<Option<CountedHost>>, &Bounds),
        options: &Options,
        turns: &Arc<Semaphore>,
    ) -> Result<Arc<Self>, RemoteError> {
        let (timeout, own_pod, read_only) = (options.timeout, options.own_pod.as_ref(), options.read_only.as_ref());
        let failed = |what: &'static str, why: &dyn ToString| RemoteError::new(cluster, what, why.to_string());
        let kubeconfig = kubeconfig::read(kubeconfig).map_err(|why| failed("read the kubeconfig", &why))?;
        let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .map_err(|_| failed("use the kubeconfig", &"context, cluster or user is missing"))?;
        config.connect_timeout = Some(timeout);
        let reach = async |config: &kube::Config| {
            *host.lock() = Some(cx.metrics().host(transport::host_of(&config.cluster_url)));
            let client = transport::connect_bounded(config, cx.metrics(), bounds);
            let client = client.map_err(|e| failed("make a client from the kubeconfig", &e))?;
            let client = fenced(cx, cluster, read_only, client);
            match probe(&client, timeout).await {
                Probe::Answered => Ok(client),
                Probe::Unauthorized => {
                    let why = "the API server refuses the kubeconfig's credentials";
                    Err(failed("connect", &why))
                }
                Probe::Failed(why) => Err(failed("connect", &why)),
            }
        };
        let runs_in = async |own: &OwnPod, client: &kube::Client| {
            let runs = tokio::time::timeout(timeout, own.runs_in(client)).await;
            let runs = runs.unwrap_or_else(|_| Err(format!("no answer in {} s", timeout.as_secs_f32())));
            let unknown = |why| format!("cannot tell whether this manager runs in the cluster: {why}");
            runs.map_err(|why| failed("look for the pod of this manager", &unknown(why)))
        };
        let client = match (reach(&config).await, own_pod) {
            (outside, None) => outside?,
            (Ok(outside), Some(own)) => {
                if runs_in(own, &outside).await? {
                    let home = own.at_home(&config);
                    config = home.map_err(|why| failed("find the address inside", &why))?;
                    reach(&config).await?
                } else {
                    outside
                }
            }
            (Err(unreachable), Some(own)) => {
                // Only an authority in common lets a user of this kubeconfig be shown at the address inside.
                let home = own.at_home(&config).ok();
                let home = home.filter(|home| bounds.refusal().is_none() && share_authority(home, &config));
                let Some(home) = home else { return Err(unreachable) };
                match reach(&home).await {
                    Ok(client) if runs_in(own, &client).await.unwrap_or(false) => {
                        config = home;
                        client
                    }
                    _ => return Err(unreachable),
                }
            }
        };
        let watches = Watches(cx.tasks().child());
        let (kind, turns) = (gvk_of::<Node>(), (turns.clone(), TURN));
        let nodes = Cache::stand_alone_in_turn(client.clone(), "/api/v1/nodes", kind, &watches.0, turns);
        nodes.add_index(BY_PROVIDER_ID, provider_id);
        Ok(Arc::new(Self {
            cluster: cluster.clone(),
            read_only: read_only.cloned(),
            etcd: options.etcd,
            config,
            client,
            tunnels: OnceLock::new(),
            bounds: bounds.clone(),
            nodes,
            since: cx.now(),
            is_late: AtomicBool::new(false),
            health,
            secrets: cx.cache(),
            credentials: tokio::sync::Mutex::default(),
            cx: cx.clone(),
            watches,
        }))
    }

    /// Namespace and name of the Cluster.
    pub fn cluster(&self) -> &ObjectKey {
        &self.cluster
    }

    /// What refuses writes, if nothing may be written. Calls to etcd go past the client, so their callers have to look.
    pub fn read_only(&self) -> Option<&ReadOnly> {
        self.read_only.as_ref()
    }

    /// A client for the workload cluster's API server.
    pub fn client(&self) -> &kube::Client {
        &self.client
    }

    /// Address of the API server.
    pub fn config(&self) -> &kube::Config {
        &self.config
    }

    /// The current kubeconfig from the Secret, for programs that create their own connections. A kubeconfig that refers
    /// to anything outside is refused, and one whose servers have denied addresses.
    pub async fn kubeconfig(&self) -> Result<Vec<u8>, RemoteError> {
        let failed = |why: String| RemoteError::new(&self.cluster, "read the kubeconfig", why);
        let name = Purpose::Kubeconfig.secret_name(&self.cluster.name);
        let secret = self
            .secrets
            .get(&ObjectKey::new(self.cluster.namespace.as_str(), name.as_str()));
        let text = secret.and_then(|secret| secret.data.as_ref()?.get("value").cloned());
        let text = text.ok_or_else(|| failed(format!("Secret {name} with key \"value\" does not exist")))?;
        let read = kubeconfig::read(&text.0).map_err(failed)?;
        kubeconfig::check(&read, self.bounds.reach()).await.map_err(failed)?;
        Ok(text.0)
    }

    /// Calls `f` when the Nodes are listed, and before that when they are not within `limit`.
    pub(crate) fn on_list(self: &Arc<Self>, limit: Duration, f: impl Fn() + Send + 'static) {
        let (listed, this) = (self.nodes.listed(), Arc::downgrade(self));
        self.watches.0.spawn("first list of Nodes", async move {
            tokio::pin!(listed);
            if tokio::time::timeout(limit, &mut listed).await.is_err() {
                if let Some(connection) = this.upgrade() {
                    connection.is_late.store(true, Ordering::Release);
                    tracing::warn!(cluster = %connection.cluster, "the Nodes of the workload cluster cannot be listed");
                }
                f();
                listed.await;
            }
            f();
        });
    }

    /// What is known of the Nodes.
    pub(crate) fn nodes_known(&self) -> Nodes {
        if self.nodes.is_synced() {
            Nodes::Listed
        } else if self.is_late.load(Ordering::Acquire) {
            Nodes::Late
        } else {
            Nodes::Awaited
        }
    }

    /// When the connection was established.
    pub(crate) fn since(&self) -> Timestamp {
        self.since
    }

    /// The Nodes, kept up to date by a watch. Before their first list this is empty: see [`Clusters::with_nodes`](crate::Clusters::with_nodes).
    pub fn nodes(&self) -> &Cache<Node> {
        &self.nodes
    }

    /// The Node with this name, once the Nodes are listed.
    pub fn node(&self, name: &str) -> Option<Arc<Node>> {
        self.nodes.get(&ObjectKey::cluster_scoped(name))
    }

    /// The Node with this `spec.providerID`, once the Nodes are listed; none when several claim it.
    pub fn node_by_provider_id(&self, provider_id: &str) -> Option<Arc<Node>> {
        let mut nodes = self.nodes_by_provider_id(provider_id);
        if nodes.len() > 1 {
            return None;
        }
        nodes.pop()
    }

    /// All Nodes with a provider ID. More than one is a mistake of the provider.
    pub fn nodes_by_provider_id(&self, provider_id: &str) -> Vec<Arc<Node>> {
        self.nodes.by_index(BY_PROVIDER_ID, provider_id)
    }

    /// When the API server last answered a probe.
    pub fn last_probe_success(&self) -> Option<Timestamp> {
        self.health.read().last_success
    }

    /// Probes the API server.
    pub(crate) async fn probe(&self, timeout: Duration) -> Probe {
        probe(&self.client, timeout).await
    }

    /// The etcd member in a pod of `kube-system`, through a port-forward of the API server, with the credentials that the cluster's etcd
    /// authority gives. Close it by dropping it.
    pub async fn etcd(&self, pod: &str) -> Result<GrpcEtcd, RemoteError> {
        let tls = {
            let mut credentials = self.credentials.lock().await;
            etcd::credentials(&self.cluster, &self.secrets, self.cx.now(), &mut credentials)?
        };
        let (tunnels, term) = (self.tunnels()?.clone(), self.cx.term().clone());
        let channel = etcd::channel(&self.cluster, tunnels, pod, tls, (term, self.etcd.dial)).await?;
        Ok(GrpcEtcd::new(channel).named(pod).with_call_timeout(self.etcd.call))
    }

    /// The certificates (DER) that a port of a pod in `kube-system` serves, for their dates. Nothing is trusted because of them.
    pub async fn server_certificates(&self, pod: &str, port: u16) -> Result<Vec<Vec<u8>>, RemoteError> {
        let served = certificate::served(self.tunnels()?, pod, port, self.cx.term()).await;
        served.map_err(|e| RemoteError::new(&self.cluster, format!("read the certificate of pod {pod}"), e))
    }

    /// The tunnels of this connection, with a client for upgraded connections, which need HTTP/1.1; made when first asked for.
    fn tunnels(&self) -> Result<&Tunnels, RemoteError> {
        if let Some(tunnels) = self.tunnels.get() {
            return Ok(tunnels);
        }
        let client = transport::connect_http1(&self.config, self.cx.metrics(), &self.bounds)
            .map_err(|e| RemoteError::new(&self.cluster, "make a client for tunnels", e))?;
        let read_only = self.read_only.as_ref();
        let make = || Tunnels::new(fenced(&self.cx, &self.cluster, read_only, client));
        Ok(self.tunnels.get_or_init(make))
    }
}

/// A client within the term of this process, and of what it may do.
fn fenced(cx: &Cx, cluster: &ObjectKey, read_only: Option<&ReadOnly>, client: kube::Client) -> kube::Client {
    let client = cx.term().fence(client);
    match read_only {
        Some(read_only) => read_only.fence(cluster, client),
        None => client,
    }
}

/// Any answer means that the server is alive, except for answers about bad credentials or server errors.
async fn probe(client: &kube::Client, timeout: Duration) -> Probe {
    let request = match http::Request::get("/version").body(kube::client::Body::empty()) {
        Ok(request) => request,
        Err(error) => return Probe::Failed(error.to_string()),
    };
    let answer = async {
        let answer = client.send(request).await.map_err(|e| with_causes(&e))?;
        let status = answer.status();
        // Read to the end, so that the connection can be used again.
        let body = Limited::new(answer.into_body(), LARGEST_PROBE);
        body.collect().await.map_err(|e| e.to_string())?;
        Ok::<_, String>(status)
    };
    match tokio::time::timeout(timeout, answer).await {
        Err(_) => Probe::Failed(format!("no answer in {} s", timeout.as_secs_f32())),
        Ok(Err(why)) => Probe::Failed(why),
        Ok(Ok(status)) if status.as_u16() == 401 => Probe::Unauthorized,
        Ok(Ok(status)) if status.is_server_error() => Probe::Failed(format!("the API server answers {status}")),
        Ok(Ok(_)) => Probe::Answered,
    }
}

fn provider_id(node: &Node) -> Vec<String> {
    let spec = node.spec.as_ref();
    spec.and_then(|spec| spec.provider_id.clone())
        .filter(|id| !id.is_empty())
        .into_iter()
        .collect()
}
