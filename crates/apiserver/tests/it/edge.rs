//! Over TLS: which clients are authenticated, and as which user.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::api::{ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use windlass_apiserver::{ApiServer, Authorization, Options, PodConnection, PodTunnel, UserInfo, tls_config};
use windlass_meta::{Clock, SystemClock};
use windlass_pki::{CaRequest, CertificateAuthority, KeyAlgorithm, LeafRequest, PrivateKey};
use windlass_store::{Limits, Store};

use crate::support::{client, status};

/// Answers each port except one: sends its name and then echoes its input.
struct Echo;

impl PodTunnel for Echo {
    fn connect(
        &self,
        namespace: &str,
        pod: &str,
        port: u16,
    ) -> futures::future::BoxFuture<'static, std::io::Result<PodConnection>> {
        let name = format!("{namespace}/{pod}:{port}\n");
        Box::pin(async move {
            if port == 1 {
                return Err(std::io::Error::other("no listener"));
            }
            let (near, mut far) = tokio::io::duplex(1024);
            tokio::spawn(async move {
                far.write_all(name.as_bytes()).await.unwrap();
                let (mut reader, mut writer) = tokio::io::split(far);
                let _ = tokio::io::copy(&mut reader, &mut writer).await;
            });
            Ok(Box::pin(near) as PodConnection)
        })
    }
}

pub(crate) struct Edge {
    pub(crate) server: ApiServer,
    pub(crate) authority: CertificateAuthority,
    pub(crate) url: String,
    pub(crate) tls: Arc<rustls::ServerConfig>,
    clock: Arc<Later>,
}

/// A clock that is this many hours ahead.
#[derive(Debug)]
struct Later(AtomicI64);

impl Clock for Later {
    fn now(&self) -> Timestamp {
        SystemClock.now() + jiff::SignedDuration::from_hours(self.0.load(Ordering::Relaxed))
    }
}

impl Edge {
    pub(crate) async fn start() -> Self {
        Self::with(Authorization::AllowAuthenticated).await
    }

    pub(crate) async fn with(authorization: Authorization) -> Self {
        let authority = new_authority();
        let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
        let request = LeafRequest::server("kube-apiserver", vec!["127.0.0.1".to_owned()]);
        let certificate = authority.issue(&request, &key, SystemClock.now()).unwrap();
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.to_pkcs8_der()));
        let signer = rustls::crypto::aws_lc_rs::sign::any_supported_type(&private).unwrap();
        let chain = vec![CertificateDer::from(certificate.der().to_vec())];
        let certified = rustls::sign::CertifiedKey::new(chain, signer);
        let roots = [CertificateDer::from(authority.certificate().der().to_vec())];
        let tls = tls_config(Arc::new(rustls::sign::SingleCertAndKey::from(certified)), &roots).unwrap();
        let clock = Arc::new(Later(AtomicI64::new(0)));
        let mut options = Options::new(Store::memory(Limits::default()));
        options.clock = clock.clone();
        options.authorization = authorization;
        options.tokens = [("sesame".to_owned(), UserInfo::new("ali", &["forty"]))].into();
        options.pod_tunnel = Some(Arc::new(Echo));
        let server = ApiServer::start(options).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let (serving, config) = (server.clone(), tls.clone());
        tokio::spawn(async move { serving.serve(listener, config).await.unwrap() });
        Self {
            server,
            authority,
            url,
            tls,
            clock,
        }
    }

    /// A kubeconfig for the address of the server.
    pub(crate) fn kubeconfig(&self, user: &serde_json::Value) -> serde_json::Value {
        kubeconfig(&self.url, &self.authority.certificate().to_pem(), user)
    }

    pub(crate) async fn client(&self, user: &serde_json::Value) -> Client {
        client_of(&self.url, &self.authority.certificate().to_pem(), user).await
    }

    async fn with_certificate(&self, issuer: &CertificateAuthority, user: &str, group: &str) -> Client {
        let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
        let certificate = issuer
            .issue(&LeafRequest::client(user, group), &key, SystemClock.now())
            .unwrap();
        let user = json!({
            "client-certificate-data": base64(&certificate.to_pem()), "client-key-data": base64(&key.to_pem()),
        });
        self.client(&user).await
    }
}

fn kubeconfig(url: &str, authority: &str, user: &serde_json::Value) -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": url, "certificate-authority-data": base64(authority)}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    })
}

/// A client for an address and an authority.
pub(crate) async fn client_of(url: &str, authority: &str, user: &serde_json::Value) -> Client {
    let config: Kubeconfig = serde_json::from_value(kubeconfig(url, authority, user)).unwrap();
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default())
        .await
        .unwrap();
    Client::try_from(config).unwrap()
}

fn new_authority() -> CertificateAuthority {
    let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
    CertificateAuthority::self_signed(&CaRequest::new("test"), key, SystemClock.now()).unwrap()
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

async fn who(client: Client) -> kube::Result<String> {
    let api: Api<SelfSubjectReview> = Api::all(client);
    let review = api
        .create(&PostParams::default(), &SelfSubjectReview::default())
        .await?;
    let user = review.status.unwrap().user_info.unwrap();
    Ok(format!("{} {}", user.username.unwrap(), user.groups.unwrap().join(",")))
}

#[tokio::test]
async fn certificates_and_tokens_name_their_users() {
    let edge = Edge::start().await;
    let admin = edge
        .with_certificate(&edge.authority, "kubernetes-admin", "system:masters")
        .await;
    assert_eq!(
        who(admin).await.unwrap(),
        "kubernetes-admin system:masters,system:authenticated"
    );
    let ali = edge.client(&json!({"token": "sesame"})).await;
    assert_eq!(who(ali).await.unwrap(), "ali forty,system:authenticated");
    assert_eq!(
        who(client(&edge.server)).await.unwrap(),
        "test system:masters,system:authenticated"
    );
}

#[tokio::test]
async fn other_clients_are_refused() {
    let edge = Edge::start().await;
    let stranger = edge.client(&json!({})).await;
    assert_eq!(status(who(stranger.clone()).await).code, 401);
    assert_eq!(stranger.apiserver_version().await.unwrap().git_version, "v1.36.0");
    let liar = edge.client(&json!({"token": "barley"})).await;
    assert_eq!(status(who(liar.clone()).await).reason, "Unauthorized");
    assert_eq!(status(liar.apiserver_version().await).code, 401);
    let other = new_authority();
    let forger = edge
        .with_certificate(&other, "kubernetes-admin", "system:masters")
        .await;
    assert!(
        !matches!(who(forger).await, Ok(_) | Err(kube::Error::Api(_))),
        "the handshake must fail"
    );
}

#[tokio::test]
async fn roles_count_over_tls() {
    let edge = Edge::with(Authorization::Rbac).await;
    let stranger = edge.client(&json!({})).await;
    let refused = status(who(stranger.clone()).await);
    assert_eq!((refused.code, refused.reason.as_str()), (403, "Forbidden"));
    assert!(
        refused
            .message
            .contains(r#"User "system:anonymous" cannot create resource "selfsubjectreviews""#),
        "{}",
        refused.message
    );
    stranger.apiserver_version().await.unwrap();
    let liar = edge.client(&json!({"token": "barley"})).await;
    assert_eq!(status(who(liar).await).code, 401);
    let ali = edge.client(&json!({"token": "sesame"})).await;
    assert_eq!(who(ali.clone()).await.unwrap(), "ali forty,system:authenticated");
    let maps: Api<ConfigMap> = Api::namespaced(ali, "default");
    assert_eq!(status(maps.list(&ListParams::default()).await).code, 403);
    let admin = edge
        .with_certificate(&edge.authority, "kubernetes-admin", "system:masters")
        .await;
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "forty"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "forty"}]});
    Api::<RoleBinding>::namespaced(admin, "default")
        .create(&PostParams::default(), &serde_json::from_value(binding).unwrap())
        .await
        .unwrap();
    maps.list(&ListParams::default()).await.unwrap();
}

/// Whether a connection gets as far as a TLS handshake with a certificate of this authority.
async fn shows_certificate_of(address: SocketAddr, authority: &CertificateAuthority) -> bool {
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from(authority.certificate().der().to_vec()))
        .unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    connector.connect("127.0.0.1".try_into().unwrap(), stream).await.is_ok()
}

#[tokio::test]
async fn each_connection_can_have_a_configuration_of_its_own() {
    let (one, other) = (Edge::start().await, Edge::start().await);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (configs, turn) = (
        [Some(one.tls.clone()), None, Some(other.tls.clone())],
        AtomicI64::new(0),
    );
    let choose = move || {
        let turn = usize::try_from(turn.fetch_add(1, Ordering::Relaxed)).unwrap();
        configs[turn % configs.len()].clone()
    };
    let server = one.server.clone();
    tokio::spawn(async move { server.serve_by(listener, Arc::new(choose)).await.unwrap() });
    assert!(shows_certificate_of(address, &one.authority).await);
    assert!(
        !shows_certificate_of(address, &one.authority).await,
        "there is none to choose"
    );
    assert!(shows_certificate_of(address, &other.authority).await);
    assert!(!shows_certificate_of(address, &other.authority).await);
}

#[tokio::test]
async fn a_certificate_counts_no_longer_than_it_lasts() {
    let edge = Edge::start().await;
    let admin = edge
        .with_certificate(&edge.authority, "kubernetes-admin", "system:masters")
        .await;
    who(admin.clone()).await.unwrap();
    // The connection of the first request is reused.
    edge.clock.0.store(24 * 365 * 20, Ordering::Relaxed);
    assert_eq!(status(who(admin).await).code, 401);
}

#[tokio::test]
async fn what_is_refused_is_not_received() {
    // A stranger, and a user without rights.
    let edge = Edge::with(Authorization::Rbac).await;
    for (credentials, code) in [
        ("", "403"),
        ("Authorization: Bearer sesame\r\n", "403"),
        ("Authorization: Bearer x\r\n", "401"),
    ] {
        is_refused_at_once(&edge, credentials, code).await;
    }
    is_refused_at_once(&Edge::start().await, "", "401").await;
}

/// Sends the head of a request, and none of its body.
async fn is_refused_at_once(edge: &Edge, credentials: &str, code: &str) {
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from(edge.authority.certificate().der().to_vec()))
        .unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let address = edge.url.strip_prefix("https://").unwrap();
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let mut stream = tokio_rustls::TlsConnector::from(Arc::new(config))
        .connect("127.0.0.1".try_into().unwrap(), stream)
        .await
        .unwrap();
    let head = format!(
        "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\n{credentials}Content-Length: 1000000\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    let read = tokio::time::timeout(std::time::Duration::from_mins(1), stream.read_exact(&mut answer)).await;
    read.expect("it is answered at once").unwrap();
    assert_eq!(
        std::str::from_utf8(&answer).unwrap(),
        format!("HTTP/1.1 {code}"),
        "{credentials}"
    );
}

#[tokio::test]
async fn many_clients_write_at_once() {
    let edge = Edge::start().await;
    let mut tasks = tokio::task::JoinSet::new();
    for i in 0..8 {
        let client = edge.with_certificate(&edge.authority, "admin", "system:masters").await;
        tasks.spawn(async move {
            let api: Api<ConfigMap> = Api::namespaced(client, "default");
            for j in 0..10 {
                let object: ConfigMap =
                    serde_json::from_value(json!({"metadata": {"name": format!("m{i}-{j}")}})).unwrap();
                api.create(&PostParams::default(), &object).await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    let api: Api<ConfigMap> = Api::namespaced(client(&edge.server), "default");
    assert_eq!(api.list(&ListParams::default()).await.unwrap().items.len(), 80);
    let creations: u64 = edge
        .server
        .counters()
        .snapshot()
        .iter()
        .filter(|(k, _)| k.verb == "create")
        .map(|(_, n)| n)
        .sum();
    assert_eq!(creations, 80);
}

async fn talks(client: Client) {
    let pods: Api<Pod> = Api::namespaced(client, "default");
    let pod: Pod = serde_json::from_value(
        json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}),
    )
    .unwrap();
    assert!(pods.portforward("p", &[2379]).await.is_err());
    pods.create(&PostParams::default(), &pod).await.unwrap();
    let mut forward = pods.portforward("p", &[2379, 1]).await.unwrap();
    let error = forward.take_error(1).unwrap().await.unwrap();
    assert_eq!(error, "error forwarding port 1 to pod p: no listener");
    let mut stream = forward.take_stream(2379).unwrap();
    let greeting = "default/p:2379\n";
    let mut heard = vec![0; greeting.len()];
    stream.read_exact(&mut heard).await.unwrap();
    assert_eq!(String::from_utf8(heard).unwrap(), greeting);
    let sent: Vec<u8> = (0..200_000_u32).map(|n| (n % 251) as u8).collect();
    let (mut reader, mut writer) = tokio::io::split(stream);
    let mut back = vec![0; sent.len()];
    let copy = sent.clone();
    let (written, read) = tokio::join!(
        async move { writer.write_all(&copy).await },
        reader.read_exact(&mut back)
    );
    written.unwrap();
    read.unwrap();
    assert_eq!(back, sent);
}

#[tokio::test]
async fn ports_of_pods_are_reached_over_tls() {
    let edge = Edge::start().await;
    talks(edge.with_certificate(&edge.authority, "admin", "system:masters").await).await;
}

#[tokio::test]
async fn ports_of_pods_are_reached_within_the_process() {
    let edge = Edge::start().await;
    talks(client(&edge.server)).await;
}

#[tokio::test]
async fn a_server_started_again_has_its_objects_and_definitions() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), Limits::default()).unwrap();
    let server = ApiServer::start(Options::new(store)).await.unwrap();
    let before = client(&server);
    crate::support::install(&before, &crate::support::widget_crd()).await;
    let widgets = crate::support::widgets(&before, "v1");
    let made = widgets
        .create(&PostParams::default(), &crate::support::widget("a", json!({"size": 1})))
        .await
        .unwrap();
    server.shutdown();
    server.store().close().await;
    let refused = status(
        widgets
            .create(&PostParams::default(), &crate::support::widget("b", json!({"size": 1})))
            .await,
    );
    assert_eq!(refused.code, 500);
    let store = Store::open(folder.path(), Limits::default()).unwrap();
    let again = client(&ApiServer::start(Options::new(store)).await.unwrap());
    let found = crate::support::widgets(&again, "v1").get("a").await.unwrap();
    assert_eq!(found, made);
    let namespaces: Api<Namespace> = Api::all(again);
    assert_eq!(namespaces.list(&ListParams::default()).await.unwrap().items.len(), 4);
}
