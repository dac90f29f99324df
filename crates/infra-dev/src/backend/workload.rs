//! A simulated workload cluster: an embedded API server with its certificates, behind which etcd members answer.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;
use tokio_util::task::TaskTracker;
use windlass_apiserver::{ApiServer, Options, PodConnection, PodTunnel, UserInfo};
use windlass_controller_runtime::ObjectKey;
use windlass_etcd::server::EtcdService;
use windlass_meta::KubernetesVersion;
use windlass_pki::CertificateAuthority;
use windlass_store::{Limits, Store};

use super::etcd::EtcdCluster;
use super::nodes::{self, Kubelet, NodeSpec};
use super::site::lost;
use super::tls;
use super::trouble::Trouble;
use super::{Authorities, Before, CloudError, Member};

/// The user of the simulation itself. Limits of users are by name, and those who have the kubeconfig of the cluster must not use up its own.
const SIMULATOR: &str = "windlass-dev";
/// The port on which etcd answers its clients.
const ETCD_PORT: u16 = 2379;
/// The port on which an API server answers.
const API_SERVER_PORT: u16 = 6443;

/// A running simulated cluster. A clone is another handle to it.
#[derive(Clone)]
pub(super) struct Workload {
    key: ObjectKey,
    server: ApiServer,
    client: Client,
    etcd: EtcdCluster,
    etcd_id: u64,
    tls: Arc<rustls::ServerConfig>,
    /// The version of each control plane machine.
    versions: Arc<Mutex<BTreeMap<String, String>>>,
    authority: CertificateAuthority,
    shown: Shown,
    // The task that answers on the port, and how to end it alone.
    listening: TaskTracker,
    accepting: Arc<Mutex<Option<AbortHandle>>>,
}

impl fmt::Debug for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workload")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// The certificates of API servers that differ from that of the cluster's address, by machine.
type Shown = Arc<Mutex<BTreeMap<String, TlsAcceptor>>>;

/// A number that stays the same for the same name.
fn number(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    // Tools print these numbers as signed ones now and then.
    (hasher.finish() >> 1).max(1)
}

impl Workload {
    /// Makes the API server of clients that come by `host`, and answers on `listener`. The first machine has a version of kubeadm, and
    /// leaves its configuration in the cluster.
    pub(super) async fn start(
        key: &ObjectKey,
        listener: TcpListener,
        host: &str,
        authorities: &Authorities,
        (version, configuration): (&str, &str),
        now: Timestamp,
    ) -> Result<Self, CloudError> {
        let certificates = |why: String| CloudError::Certificates {
            cluster: key.clone(),
            why,
        };
        let server_error = |why: String| CloudError::Server {
            cluster: key.clone(),
            why,
        };
        let mut hosts = vec![host.to_owned()];
        hosts.extend(listener.local_addr().map(|address| address.ip().to_string()));
        let tls = tls::api_server(&authorities.cluster, &hosts, now).map_err(certificates)?;
        let etcd_id = number(&key.to_string());
        let etcd = EtcdCluster::new(etcd_id);
        let shown = Shown::default();
        let ours = (Arc::clone(&tls), Arc::clone(&shown));
        let tunnel = Tunnel::new(&authorities.etcd, etcd.clone(), ours, now).map_err(certificates)?;
        let mut options = Options::new(Store::memory(Limits::small()));
        // Its administrators are the tenants who may read its kubeconfig, and it is part of this process.
        options.limits_masters = true;
        options.pod_tunnel = Some(Arc::new(tunnel));
        version.clone_into(&mut options.kubernetes_version);
        let server = ApiServer::start(options)
            .await
            .map_err(|error| server_error(error.to_string()))?;
        let client = Client::new(server.client_service(UserInfo::admin(SIMULATOR)), "default");
        let workload = Self {
            key: key.clone(),
            server,
            client,
            etcd,
            etcd_id,
            tls,
            versions: Arc::default(),
            authority: authorities.cluster.clone(),
            shown,
            listening: TaskTracker::new(),
            accepting: Arc::default(),
        };
        workload.answer(listener);
        for object in nodes::kubeadm_objects(version, configuration) {
            workload.put(&object).await?;
        }
        Ok(workload)
    }

    /// A client in this process.
    #[cfg(test)]
    pub(super) fn client(&self) -> Client {
        self.client.clone()
    }

    /// Answers on a port, until the server is stopped or its network is cut.
    pub(super) fn answer(&self, listener: TcpListener) {
        let listening_at = listener.local_addr();
        let serving = self.server.serve(listener, Arc::clone(&self.tls));
        let address = listening_at.map_or_else(|_| "unknown".to_owned(), |address| address.to_string());
        let task = self.listening.spawn(async move {
            if let Err(error) = serving.await {
                lost(&address, &error, "a simulated API server lost its port");
            }
        });
        self.listening.close();
        *self.accepting.lock() = Some(task.abort_handle());
    }

    /// Ends all connections and stops answering; the server runs on. When this returns its port is free.
    pub(super) async fn cut(&self) {
        let accepting = self.accepting.lock().take();
        if let Some(task) = accepting {
            task.abort();
        }
        self.listening.wait().await;
    }

    /// Ends the API server; when this returns its port is free again.
    pub(super) async fn ended(&self) {
        self.server.shutdown();
        self.listening.wait().await;
    }

    /// A control plane machine joins: an etcd member, unless it has left for good, and the static Pods of the control plane.
    pub(super) async fn join(
        &self,
        machine: &Member<'_>,
        troubles: &BTreeSet<Trouble>,
        now: Timestamp,
    ) -> Result<(), CloudError> {
        let Member {
            name, version, before, ..
        } = *machine;
        let member = number(name);
        let learner = troubles.contains(&Trouble::StaysLearner);
        if before != Before::Left {
            let joined = self.etcd.join(name, member, learner);
            joined.map_err(|error| CloudError::Kubeadm {
                machine: name.to_owned(),
                why: error.to_string(),
            })?;
        }
        for trouble in troubles {
            if let Trouble::CertificateExpires(expiry) = trouble {
                self.show(name, *expiry)?;
            }
        }
        tracing::debug!(cluster = %self.key, node = name, at = %now, "simulated control plane machine joins");
        let etcd = nodes::etcd_annotations(self.etcd_id, member);
        for component in nodes::COMPONENTS {
            self.put(&nodes::pod(component, name, version, &etcd)).await?;
            self.put_status(&nodes::pod_status(component, name, version, now))
                .await?;
        }
        self.change_versions(|all| {
            all.insert(name.to_owned(), version.to_owned());
        });
        Ok(())
    }

    /// Changes the versions of the control plane machines. The one API server stands for those of all machines: it has the lowest version, as
    /// a client of several may be answered by any of them.
    fn change_versions(&self, change: impl FnOnce(&mut BTreeMap<String, String>)) {
        let mut all = self.versions.lock();
        change(&mut all);
        let parsed = all
            .values()
            .filter_map(|text| Some((KubernetesVersion::parse_tolerant(text).ok()?, text)));
        if let Some((_, lowest)) = parsed.min_by(|(one, _), (other, _)| one.cmp(other)) {
            self.server.set_kubernetes_version(lowest);
        }
    }

    /// The API server of a machine gets a certificate that expires then.
    fn show(&self, name: &str, expiry: Timestamp) -> Result<(), CloudError> {
        let tls = tls::api_server_until(&self.authority, expiry).map_err(|why| CloudError::Certificates {
            cluster: self.key.clone(),
            why,
        })?;
        self.shown.lock().insert(name.to_owned(), TlsAcceptor::from(tls));
        Ok(())
    }

    /// The members of etcd.
    pub(super) fn etcd(&self) -> &EtcdCluster {
        &self.etcd
    }

    /// What the kubelet of a machine reports, and the node lifecycle controller makes of it. With the kubelet of a machine that is off, its
    /// Pods are not ready.
    pub(super) async fn report(&self, name: &str, kubelet: Kubelet, with_pods: bool) -> Result<(), CloudError> {
        let all: Api<DynamicObject> = Api::all_with(self.client.clone(), &core("Node"));
        let Some(node) = all.get_opt(name).await.map_err(|error| self.refused(&error))? else {
            return Ok(());
        };
        let how = PatchParams::default();
        let (spec, status) = nodes::reported(&node.data, kubelet, Timestamp::now());
        let taints = all.patch(name, &how, &Patch::Merge(&spec)).await;
        taints.map_err(|error| self.refused(&error))?;
        let reported = all.patch_status(name, &how, &Patch::Merge(&status)).await;
        reported.map_err(|error| self.refused(&error))?;
        if !with_pods {
            return Ok(());
        }
        let pods: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), "kube-system", &core("Pod"));
        let status = nodes::pod_readiness(kubelet, Timestamp::now());
        for component in nodes::COMPONENTS {
            let pod = nodes::pod_name(component, name);
            self.gone(pods.patch_status(&pod, &how, &Patch::Merge(&status)).await)?;
        }
        Ok(())
    }

    /// What `kubeadm join` does first: it reads the configuration of the cluster, in the formats that its version knows.
    pub(super) async fn read_configuration(&self, name: &str, version: &str) -> Result<(), CloudError> {
        let failed = |why: String| CloudError::Kubeadm {
            machine: name.to_owned(),
            why,
        };
        let version = nodes::kubeadm_version(version);
        let maps: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), "kube-system", &core("ConfigMap"));
        let map = maps
            .get(nodes::KUBEADM_CONFIG)
            .await
            .map_err(|error| failed(error.to_string()))?;
        let document = map.data["data"][nodes::CLUSTER_CONFIGURATION]
            .as_str()
            .unwrap_or_default();
        windlass_kubeadm::stored::readable(document, version)
            .map_err(|error| failed(format!("ConfigMap kube-system/{}: {error}", nodes::KUBEADM_CONFIG)))
    }

    /// Registers a Node.
    pub(super) async fn register(&self, spec: &NodeSpec, now: Timestamp) -> Result<(), CloudError> {
        self.put(&nodes::node(spec)).await?;
        self.put_status(&nodes::node_status(spec, now)).await
    }

    /// A machine goes: its Pods and its Node go with it, as the cloud controller of a real cluster removes them.
    pub(super) async fn leave(&self, name: &str, control_plane: bool) -> Result<(), CloudError> {
        if control_plane {
            self.change_versions(|all| {
                all.remove(name);
            });
            self.etcd.lose(name);
            self.shown.lock().remove(name);
            let pods: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), "kube-system", &core("Pod"));
            let at_once = DeleteParams {
                grace_period_seconds: Some(0),
                ..DeleteParams::default()
            };
            for component in nodes::COMPONENTS {
                self.gone(pods.delete(&nodes::pod_name(component, name), &at_once).await)?;
            }
        }
        let all: Api<DynamicObject> = Api::all_with(self.client.clone(), &core("Node"));
        self.gone(all.delete(name, &DeleteParams::default()).await)
    }

    fn refused(&self, error: &kube::Error) -> CloudError {
        CloudError::Server {
            cluster: self.key.clone(),
            why: error.to_string(),
        }
    }

    /// Something that is already gone is what was wanted.
    fn gone<T>(&self, result: Result<T, kube::Error>) -> Result<(), CloudError> {
        match result {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(self.refused(&error)),
        }
    }

    pub(super) async fn put(&self, object: &Value) -> Result<(), CloudError> {
        let (api, name) = self.api(object)?;
        let how = PatchParams::apply("kubelet").force();
        api.patch(&name, &how, &Patch::Apply(object))
            .await
            .map(drop)
            .map_err(|error| self.refused(&error))
    }

    async fn put_status(&self, object: &Value) -> Result<(), CloudError> {
        let (api, name) = self.api(object)?;
        let how = PatchParams::apply("kubelet").force();
        api.patch_status(&name, &how, &Patch::Apply(object))
            .await
            .map(drop)
            .map_err(|error| self.refused(&error))
    }

    fn api(&self, object: &Value) -> Result<(Api<DynamicObject>, String), CloudError> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
        let name = text(&object["metadata"]["name"]);
        if api_version.is_empty() || kind.is_empty() || name.is_empty() {
            return Err(CloudError::Server {
                cluster: self.key.clone(),
                why: "an object to write has no apiVersion, kind or metadata.name".to_owned(),
            });
        }
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &kind));
        let api = match object["metadata"]["namespace"].as_str() {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        Ok((api, name))
    }
}

/// A kind of the core group. What is deleted is not decoded.
fn core(kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", kind))
}

/// Leads connections to the port of an etcd Pod to the simulated member, and shows the certificate of an API server to those
/// who ask its Pod for it.
struct Tunnel {
    acceptor: TlsAcceptor,
    etcd: EtcdCluster,
    api_server: TlsAcceptor,
    shown: Shown,
}

impl Tunnel {
    fn new(
        authority: &CertificateAuthority,
        etcd: EtcdCluster,
        (api_server, shown): (Arc<rustls::ServerConfig>, Shown),
        now: Timestamp,
    ) -> Result<Self, String> {
        let acceptor = TlsAcceptor::from(tls::etcd(authority, now)?);
        Ok(Self {
            acceptor,
            etcd,
            api_server: TlsAcceptor::from(api_server),
            shown,
        })
    }

    /// A connection on which only the handshake is answered: enough to read the certificate, which is what API server Pods are asked
    /// for. Requests go to the cluster's own address.
    fn handshake(&self, node: &str) -> PodConnection {
        let (near, far) = tokio::io::duplex(16 << 10);
        let shown = self.shown.lock().get(node).cloned();
        let acceptor = shown.unwrap_or_else(|| self.api_server.clone());
        tokio::spawn(async move {
            if let Err(error) = acceptor.accept(far).await {
                tracing::debug!(%error, "handshake with a simulated API server ended");
            }
        });
        Box::pin(near)
    }
}

impl PodTunnel for Tunnel {
    fn connect(&self, namespace: &str, pod: &str, port: u16) -> BoxFuture<'static, io::Result<PodConnection>> {
        let refused = |why: String| io::Error::new(io::ErrorKind::ConnectionRefused, why);
        let of = |component: &str, on: u16| {
            let node = pod
                .strip_prefix(component)
                .filter(|_| namespace == "kube-system" && port == on);
            node.filter(|node| self.etcd.runs(node))
        };
        if let Some(node) = of("kube-apiserver-", API_SERVER_PORT) {
            let connection = self.handshake(node);
            return async move { Ok(connection) }.boxed();
        }
        let Some(node) = of("etcd-", ETCD_PORT) else {
            let why = refused(format!("nothing listens on port {port} of pod {namespace}/{pod}"));
            return async move { Err(why) }.boxed();
        };
        let endpoint = self.etcd.endpoint(node);
        let acceptor = self.acceptor.clone();
        async move {
            let (near, far) = tokio::io::duplex(64 << 10);
            // Ends with the connection: the holder of the near end decides how long it lives.
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(far).await else { return };
                let service = TowerToHyperService::new(EtcdService::new(endpoint));
                let served = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service);
                if let Err(error) = served.await {
                    tracing::debug!(%error, "connection to a simulated etcd member ended");
                }
            });
            Ok(Box::pin(near) as PodConnection)
        }
        .boxed()
    }
}
