//! A management cluster in this process, and workload API servers on loopback ports.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Node, NodeSpec, Pod, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use windlass_api::core::Cluster;
use windlass_apiserver::{ApiServer, Options as ServerOptions, PodTunnel, UserInfo, tls_config};
use windlass_cluster_cache::{Clusters, Options, OwnPod, Policy, RemoteCluster};
use windlass_controller_runtime::{Backoff, Metrics, ObjectKey, Runtime, Scope, transport};
use windlass_pki::{CaRequest, CertificateAuthority, KeyAlgorithm, Kubeconfig, LeafRequest, PrivateKey};
use windlass_store::{Limits, Store};

use crate::slow::{self, Gate};

pub(crate) struct World {
    server: ApiServer,
    pub(crate) admin: kube::Client,
    pub(crate) kit: Runtime,
    pub(crate) clusters: Clusters,
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::start_with(Backoff::new(Duration::from_millis(20), Duration::from_millis(100))).await
    }

    /// Starts with these delays between attempts to connect.
    pub(crate) async fn start_with(backoff: Backoff) -> Self {
        Self::start_for(Self::options(backoff)).await
    }

    /// Starts as in that pod.
    pub(crate) async fn start_in(pod: OwnPod) -> Self {
        let backoff = Backoff::new(Duration::from_millis(20), Duration::from_millis(100));
        Self::start_for(Options {
            own_pod: Some(pod),
            ..Self::options(backoff)
        })
        .await
    }

    pub(crate) fn options(backoff: Backoff) -> Options {
        Options {
            interval: Duration::from_millis(40),
            timeout: Duration::from_secs(2),
            threshold: 3,
            backoff,
            ..Options::default()
        }
    }

    pub(crate) async fn start_for(options: Options) -> Self {
        Self::start_under(options, Policy::default()).await
    }

    /// Starts with limits of workload clusters and their addresses.
    pub(crate) async fn start_under(options: Options, workloads: Policy) -> Self {
        Self::start_within(options, workloads, Scope::default()).await
    }

    /// Starts within a scope.
    pub(crate) async fn start_within(options: Options, workloads: Policy, scope: Scope) -> Self {
        let server = ApiServer::start(ServerOptions::new(Store::memory(Limits::default())))
            .await
            .unwrap();
        let admin = kube::Client::new(server.client_service(UserInfo::admin("test")), "default");
        let metrics = Metrics::new();
        let client = transport::in_process(server.client_service(UserInfo::admin("windlass")), &metrics);
        let definition = windlass_api::crd::crd::<Cluster>();
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let request = http::Request::post(definitions)
            .body(serde_json::to_vec(&definition).unwrap())
            .unwrap();
        let _: Value = admin.request(request).await.unwrap();
        let kit = Runtime::builder(client)
            .metrics(metrics)
            .workloads(workloads)
            .scope(scope);
        let kit = kit.build();
        let clusters = Clusters::new(&kit.cx(), options);
        Self {
            server,
            admin,
            kit,
            clusters,
        }
    }

    pub(crate) fn clusters_api(&self) -> Api<Cluster> {
        Api::namespaced(self.admin.clone(), "default")
    }

    pub(crate) fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.admin.clone(), "default")
    }

    pub(crate) async fn make_cluster(&self, name: &str) {
        let cluster: Cluster = serde_json::from_value(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"controlPlaneRef": {"apiGroup": "x.io", "kind": "X", "name": "x"}},
        }))
        .unwrap();
        self.clusters_api()
            .create(&PostParams::default(), &cluster)
            .await
            .unwrap();
    }

    pub(crate) async fn provision(&self, name: &str) {
        let status = json!({"status": {"initialization": {"infrastructureProvisioned": true}}});
        let params = PatchParams::default();
        self.clusters_api()
            .patch_status(name, &params, &Patch::Merge(status))
            .await
            .unwrap();
    }

    /// Changes an annotation of a Cluster.
    pub(crate) async fn annotate(&self, name: &str, text: &str) {
        let patch = json!({"metadata": {"annotations": {"test": text}}});
        let params = PatchParams::default();
        let patched = self.clusters_api().patch(name, &params, &Patch::Merge(patch)).await;
        patched.unwrap();
    }

    /// Changes an annotation of a Secret.
    pub(crate) async fn annotate_secret(&self, name: &str, text: &str) {
        let patch = json!({"metadata": {"annotations": {"test": text}}});
        let params = PatchParams::default();
        let patched = self.secrets().patch(name, &params, &Patch::Merge(patch)).await;
        patched.unwrap();
    }

    /// Creates or replaces the contents of a Secret.
    pub(crate) async fn put_secret(&self, name: &str, data: &[(&str, &str)]) {
        let data: BTreeMap<_, _> = data
            .iter()
            .map(|(k, v)| ((*k).to_owned(), ByteString(v.as_bytes().to_vec())))
            .collect();
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            },
            data: Some(data),
            ..Secret::default()
        };
        let params = PatchParams::apply("test").force();
        self.secrets()
            .patch(name, &params, &Patch::Apply(secret))
            .await
            .unwrap();
    }

    pub(crate) async fn connected(&self, name: &str) -> Arc<RemoteCluster> {
        eventually(&format!("{name} is connected"), async || {
            self.clusters.get(&key(name)).ok()
        })
        .await
    }

    pub(crate) async fn disconnected(&self, name: &str) -> String {
        eventually(&format!("{name} is disconnected"), async || {
            self.clusters.get(&key(name)).err().map(|e| e.why)
        })
        .await
    }

    /// Waits until the reason for not being connected contains this text.
    pub(crate) async fn reason(&self, name: &str, part: &str) {
        eventually(&format!("the reason says {part}"), async || {
            self.clusters.get(&key(name)).err().filter(|e| e.why.contains(part))
        })
        .await;
    }

    /// Waits until the metrics have a line.
    pub(crate) async fn told(&self, line: &str) {
        let metrics = self.kit.cx().metrics().clone();
        eventually(&format!("the metrics say {line}"), async || {
            metrics.encode().lines().any(|one| one == line).then_some(())
        })
        .await;
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.kit.tasks().stop();
        self.server.shutdown();
    }
}

pub(crate) fn key(name: &str) -> ObjectKey {
    ObjectKey::new("default", name)
}

/// An authority for tests.
pub(crate) fn authority(name: &str) -> CertificateAuthority {
    let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
    CertificateAuthority::self_signed(&CaRequest::new(name), key, Timestamp::now()).unwrap()
}

/// A certificate with its key for a server.
pub(crate) fn server_certificate(authority: &CertificateAuthority, names: &[&str]) -> CertifiedKey {
    let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
    let names = names.iter().map(|n| (*n).to_owned()).collect();
    let certificate = authority
        .issue(&LeafRequest::server("server", names), &key, Timestamp::now())
        .unwrap();
    let chain = vec![CertificateDer::from(certificate.der().to_vec())];
    let key = PrivateKeyDer::from_pem_slice(key.to_pem().as_bytes()).unwrap();
    CertifiedKey::from_der(chain, key, &rustls::crypto::aws_lc_rs::default_provider()).unwrap()
}

/// A workload cluster's API server.
pub(crate) struct Workload {
    pub(crate) server: ApiServer,
    pub(crate) admin: kube::Client,
    pub(crate) address: SocketAddr,
    authority: CertificateAuthority,
}

impl Workload {
    pub(crate) async fn start(tunnel: Option<Arc<dyn PodTunnel>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::serve(listener, authority("kubernetes"), tunnel, None).await
    }

    /// Starts one whose Nodes a gate holds back.
    pub(crate) async fn start_slow(gate: &Arc<Gate>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::serve(listener, authority("kubernetes"), None, Some(gate.clone())).await
    }

    /// Starts one whose upgrades go through a gate. Its Nodes are not held back.
    pub(crate) async fn start_gated(tunnel: Arc<dyn PodTunnel>, gate: &Arc<Gate>) -> Self {
        gate.open();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::serve(listener, authority("kubernetes"), Some(tunnel), Some(gate.clone())).await
    }

    /// Starts another one with the same authority.
    pub(crate) async fn start_beside(other: &Self) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::serve(listener, other.authority.clone(), None, None).await
    }

    /// A pod with a name, as the one of a manager that uses the API server `home`.
    pub(crate) async fn add_pod(&self, name: &str, home: &Self) -> OwnPod {
        let pod = serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{"name": "manager", "image": "windlass"}]},
        }));
        let pods: Api<Pod> = Api::default_namespaced(self.admin.clone());
        let pod = pods.create(&PostParams::default(), &pod.unwrap()).await.unwrap();
        let mut config = kube::Config::new(format!("https://{}", home.address).parse().unwrap());
        config.root_cert = Some(vec![home.authority.certificate().der().to_vec()]);
        OwnPod {
            namespace: "default".to_owned(),
            name: name.to_owned(),
            uid: pod.metadata.uid.unwrap(),
            home: Arc::new(move || Ok(config.clone())),
        }
    }

    /// Takes the place of a server that has gone.
    pub(crate) async fn restart(old: Self) -> Self {
        let (address, authority) = (old.address, old.authority.clone());
        drop(old);
        let listener = eventually("the port is free", async || TcpListener::bind(address).await.ok()).await;
        Self::serve(listener, authority, None, None).await
    }

    async fn serve(
        listener: TcpListener,
        authority: CertificateAuthority,
        tunnel: Option<Arc<dyn PodTunnel>>,
        gate: Option<Arc<Gate>>,
    ) -> Self {
        let mut options = ServerOptions::new(Store::memory(Limits::default()));
        options.pod_tunnel = tunnel;
        let server = ApiServer::start(options).await.unwrap();
        let admin = kube::Client::new(server.client_service(UserInfo::admin("test")), "default");
        let address = listener.local_addr().unwrap();
        let certificate = server_certificate(&authority, &["127.0.0.1"]);
        let trusted = [CertificateDer::from(authority.certificate().der().to_vec())];
        let tls = tls_config(Arc::new(SingleCertAndKey::from(certificate)), &trusted).unwrap();
        let serving = server.clone();
        match gate {
            None => drop(tokio::spawn(async move { serving.serve(listener, tls).await })),
            Some(gate) => drop(tokio::spawn(slow::serve(serving, listener, tls, gate))),
        }
        Self {
            server,
            admin,
            address,
            authority,
        }
    }

    pub(crate) fn kubeconfig(&self) -> String {
        let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
        let request = LeafRequest::administrator();
        let certificate = self.authority.issue(&request, &key, Timestamp::now()).unwrap();
        Kubeconfig {
            cluster: "c1".to_owned(),
            server: format!("https://{}", self.address),
            authority: self.authority.certificate().to_pem(),
            client_certificate: certificate.to_pem(),
            client_key: key.to_pem(),
        }
        .render()
    }

    pub(crate) async fn add_node(&self, name: &str, provider_id: &str) {
        let node = Node {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            },
            spec: Some(NodeSpec {
                provider_id: Some(provider_id.to_owned()),
                ..NodeSpec::default()
            }),
            ..Node::default()
        };
        Api::all(self.admin.clone())
            .create(&PostParams::default(), &node)
            .await
            .unwrap();
    }
}

impl Drop for Workload {
    fn drop(&mut self) {
        self.server.shutdown();
    }
}

/// Asks repeatedly until there is an answer.
pub(crate) async fn eventually<T>(what: &str, f: impl AsyncFn() -> Option<T>) -> T {
    let found = async {
        loop {
            if let Some(found) = f().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), found)
        .await
        .unwrap_or_else(|_| panic!("waited in vain until {what}"))
}
