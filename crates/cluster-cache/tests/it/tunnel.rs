//! gRPC to an etcd member: TLS in a port-forward.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::PostParams;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::server::WebPkiClientVerifier;
use rustls::sign::SingleCertAndKey;
use tokio_rustls::TlsAcceptor;
use windlass_apiserver::{PodConnection, PodTunnel};
use windlass_cluster_cache::{EtcdTimeouts, Options, RemoteCluster};
use windlass_controller_runtime::Backoff;
use windlass_etcd::{EtcdError, EtcdMembers};
use windlass_pki::CertificateAuthority;

use crate::slow::Gate;
use crate::world::{Workload, World, authority, server_certificate};

/// Answers every call with the pod's name and that in the client's greeting, and requires a client certificate of the etcd authority.
struct Etcd(TlsAcceptor);

impl Etcd {
    fn new(authority: &CertificateAuthority) -> Arc<Self> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from(authority.certificate().der().to_vec()))
            .unwrap();
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .build()
            .unwrap();
        // The name of the pod is not in the certificate, as with kubeadm.
        let certificate = server_certificate(authority, &["node-1", "10.0.0.1"]);
        let mut tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(clients)
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(certificate)));
        tls.alpn_protocols = vec![b"h2".to_vec()];
        Arc::new(Self(TlsAcceptor::from(Arc::new(tls))))
    }
}

impl PodTunnel for Etcd {
    fn connect(&self, _: &str, pod: &str, port: u16) -> BoxFuture<'static, std::io::Result<PodConnection>> {
        let (acceptor, pod) = (self.0.clone(), pod.to_owned());
        Box::pin(async move {
            if port != 2379 {
                return Err(std::io::Error::other("no listener there"));
            }
            let (near, far) = tokio::io::duplex(64 << 10);
            tokio::spawn(async move {
                let stream = acceptor.accept(far).await.ok()?;
                let called = stream.get_ref().1.server_name().unwrap_or("nothing").to_owned();
                let service = service_fn(move |_: Request<Incoming>| {
                    let answer = Response::builder()
                        .header("content-type", "application/grpc")
                        .header("grpc-status", "14")
                        .header("grpc-message", format!("this is {pod}, called {called}"))
                        .body(Empty::<Bytes>::new());
                    async move { Ok::<_, Infallible>(answer.unwrap()) }
                });
                let http2 = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                http2.serve_connection(TokioIo::new(stream), service).await.ok()
            });
            Ok(Box::pin(near) as PodConnection)
        })
    }
}

/// A member that hangs: before the handshake, or after it.
enum Hanging {
    Handshake,
    Calls(Arc<Etcd>),
}

impl PodTunnel for Hanging {
    fn connect(&self, _: &str, _: &str, _: u16) -> BoxFuture<'static, std::io::Result<PodConnection>> {
        let (near, far) = tokio::io::duplex(64 << 10);
        let acceptor = match self {
            Self::Handshake => None,
            Self::Calls(etcd) => Some(etcd.0.clone()),
        };
        tokio::spawn(async move {
            let stream = match acceptor {
                Some(acceptor) => acceptor.accept(far).await.ok()?,
                None => return std::future::pending().await,
            };
            let service =
                service_fn(|_: Request<Incoming>| std::future::pending::<Result<Response<Empty<Bytes>>, Infallible>>());
            let http2 = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            http2.serve_connection(TokioIo::new(stream), service).await.ok()
        });
        Box::pin(async move { Ok(Box::pin(near) as PodConnection) })
    }
}

async fn add_pod(workload: &Workload, name: &str) {
    let pod = Pod {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        spec: Some(PodSpec {
            containers: vec![Container {
                name: "etcd".to_owned(),
                image: Some("etcd".to_owned()),
                ..Container::default()
            }],
            node_name: Some("node-1".to_owned()),
            ..PodSpec::default()
        }),
        ..Pod::default()
    };
    let pods: Api<Pod> = Api::namespaced(workload.admin.clone(), "kube-system");
    pods.create(&PostParams::default(), &pod).await.unwrap();
}

#[tokio::test]
async fn a_member_is_reached_by_its_pod() {
    let world = World::start().await;
    let etcd = authority("etcd-ca");
    let workload = Workload::start(Some(Etcd::new(&etcd))).await;
    add_pod(&workload, "etcd-node-1").await;
    world
        .put_secret("c1-kubeconfig", &[("value", &workload.kubeconfig())])
        .await;
    world.make_cluster("c1").await;
    world.provision("c1").await;
    let connection = world.connected("c1").await;
    let error = connection.etcd("etcd-node-1").await.unwrap_err().to_string();
    assert!(error.contains("there is no Secret c1-etcd"), "{error}");

    let (crt, pem) = (etcd.certificate().to_pem(), etcd.key().to_pem());
    world
        .put_secret("c1-etcd", &[("tls.crt", &crt), ("tls.key", &pem)])
        .await;
    let secret = world.kit.cx().cache::<k8s_openapi::api::core::v1::Secret>();
    crate::world::eventually("the Secret is cached", async || {
        secret.get(&crate::world::key("c1-etcd"))
    })
    .await;
    let etcd = connection.etcd("etcd-node-1").await.unwrap();
    let error = etcd.members().await.unwrap_err().to_string();
    // A server behind the ports of several pods tells them apart by it.
    assert!(error.contains("this is etcd-node-1, called etcd-node-1"), "{error}");

    // A certificate of another authority is refused, and the error says so.
    let other = authority("etcd-ca");
    let (crt, pem) = (other.certificate().to_pem(), other.key().to_pem());
    world
        .put_secret("c1-etcd", &[("tls.crt", &crt), ("tls.key", &pem)])
        .await;
    crate::world::eventually("the new authority is used", async || {
        connection
            .etcd("etcd-node-1")
            .await
            .err()
            .filter(|e| e.to_string().contains("certificate"))
    })
    .await;
}

/// A connected cluster `c1` with an etcd member in `etcd-node-1`, behind a gate.
async fn gated(gate: &Arc<Gate>) -> (World, Workload, Arc<RemoteCluster>) {
    let etcd = authority("etcd-ca");
    let workload = Workload::start_gated(Etcd::new(&etcd), gate).await;
    connected(World::start().await, workload, &etcd).await
}

/// A connected cluster `c1` with an etcd member in `etcd-node-1`.
async fn connected(
    world: World,
    workload: Workload,
    etcd: &CertificateAuthority,
) -> (World, Workload, Arc<RemoteCluster>) {
    add_pod(&workload, "etcd-node-1").await;
    let (crt, pem) = (etcd.certificate().to_pem(), etcd.key().to_pem());
    world
        .put_secret("c1-etcd", &[("tls.crt", &crt), ("tls.key", &pem)])
        .await;
    world
        .put_secret("c1-kubeconfig", &[("value", &workload.kubeconfig())])
        .await;
    world.make_cluster("c1").await;
    world.provision("c1").await;
    let connection = world.connected("c1").await;
    (world, workload, connection)
}

/// Asks the member, which answers with the name of its pod.
async fn ask(connection: &RemoteCluster) {
    let etcd = connection.etcd("etcd-node-1").await.unwrap();
    let error = etcd.members().await.unwrap_err().to_string();
    assert!(error.contains("this is etcd-node-1"), "{error}");
}

#[tokio::test]
async fn a_member_is_reached_over_spdy_where_there_are_no_websockets() {
    let gate = Arc::new(Gate::default());
    gate.refuse("websocket", Some(403));
    let (world, workload, connection) = gated(&gate).await;
    ask(&connection).await;
    assert_eq!(gate.upgrades(), ["websocket", "SPDY/3.1"]);
    // What the server knows is remembered.
    ask(&connection).await;
    assert_eq!(gate.upgrades(), ["SPDY/3.1"]);
    let certificates = connection.server_certificates("etcd-node-1", 2379).await.unwrap();
    assert_eq!((certificates.len(), gate.upgrades()), (1, vec!["SPDY/3.1".to_owned()]));
    // The server says why a port is not forwarded.
    let error = connection.server_certificates("etcd-node-1", 1).await.unwrap_err();
    assert!(error.to_string().contains("no listener there"), "{error}");
    assert_eq!(gate.upgrades(), ["SPDY/3.1"]);
    // A server that was replaced: nothing is taken for granted.
    gate.refuse("websocket", None);
    gate.refuse("SPDY/3.1", Some(400));
    ask(&connection).await;
    assert_eq!(gate.upgrades(), ["SPDY/3.1", "websocket"]);
    ask(&connection).await;
    assert_eq!(gate.upgrades(), ["websocket"]);
    // A new connection begins with WebSockets.
    gate.refuse("websocket", Some(500));
    gate.refuse("SPDY/3.1", None);
    ask(&connection).await;
    gate.upgrades();
    world
        .put_secret("c1-kubeconfig", &[("value", &workload.kubeconfig())])
        .await;
    let connection = crate::world::eventually("there is another connection", async || {
        let now = world.clusters.get(&crate::world::key("c1")).ok()?;
        (!Arc::ptr_eq(&now, &connection)).then_some(now)
    })
    .await;
    ask(&connection).await;
    assert_eq!(gate.upgrades(), ["websocket", "SPDY/3.1"]);
}

#[tokio::test]
async fn a_server_that_forwards_no_ports_is_asked_once_for_each_protocol() {
    let gate = Arc::new(Gate::default());
    gate.refuse("websocket", Some(403));
    gate.refuse("SPDY/3.1", Some(502));
    let (_world, _workload, connection) = gated(&gate).await;
    let error = connection.etcd("etcd-node-1").await.unwrap_err().to_string();
    for part in ["a WebSocket", "403", "SPDY", "502", "no such protocol here"] {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(gate.upgrades(), ["websocket", "SPDY/3.1"]);
    // Refused credentials are the same in each protocol.
    gate.refuse("websocket", Some(401));
    let error = connection.etcd("etcd-node-1").await.unwrap_err().to_string();
    assert!(error.contains("401"), "{error}");
    assert_eq!(gate.upgrades(), ["websocket"]);
    // A pod that does not exist as well.
    gate.refuse("websocket", None);
    let error = connection.etcd("etcd-nowhere").await.unwrap_err().to_string();
    assert!(error.contains("not found"), "{error}");
    assert_eq!(gate.upgrades(), ["websocket"]);
    gate.refuse("websocket", Some(404));
    gate.refuse("SPDY/3.1", None);
    let error = connection.etcd("etcd-nowhere").await.unwrap_err().to_string();
    assert!(error.contains("not found"), "{error}");
    assert_eq!(gate.upgrades(), ["websocket", "SPDY/3.1"]);
}

#[tokio::test]
async fn a_pod_that_does_not_exist_is_an_error() {
    let world = World::start().await;
    let etcd = authority("etcd-ca");
    let workload = Workload::start(Some(Etcd::new(&etcd))).await;
    let (crt, pem) = (etcd.certificate().to_pem(), etcd.key().to_pem());
    world
        .put_secret("c1-etcd", &[("tls.crt", &crt), ("tls.key", &pem)])
        .await;
    world
        .put_secret("c1-kubeconfig", &[("value", &workload.kubeconfig())])
        .await;
    world.make_cluster("c1").await;
    world.provision("c1").await;
    let connection = world.connected("c1").await;
    let error = connection.etcd("etcd-nowhere").await.unwrap_err().to_string();
    assert!(error.contains("reach etcd in pod etcd-nowhere"), "{error}");
    assert!(error.contains("not found"), "{error}");
}

#[tokio::test]
async fn a_member_that_hangs_has_as_long_as_was_chosen() {
    let (soon, late) = (Duration::from_millis(50), Duration::from_hours(1));
    let start = async |hanging: Hanging, etcd: &CertificateAuthority, timeouts: EtcdTimeouts| {
        let backoff = Backoff::new(Duration::from_millis(20), Duration::from_millis(100));
        let world = World::start_for(Options {
            etcd: timeouts,
            ..World::options(backoff)
        });
        connected(world.await, Workload::start(Some(Arc::new(hanging))).await, etcd).await
    };
    let in_time = async |what: &str, answer: BoxFuture<'_, String>| {
        let answer = tokio::time::timeout(Duration::from_secs(5), answer).await;
        answer.unwrap_or_else(|_| panic!("{what} takes too long"))
    };
    let etcd = authority("etcd-ca");
    let timeouts = EtcdTimeouts { dial: soon, call: late };
    let (_world, _workload, connection) = start(Hanging::Handshake, &etcd, timeouts).await;
    let dialled = async { connection.etcd("etcd-node-1").await.unwrap_err().to_string() };
    let error = in_time("the handshake", Box::pin(dialled)).await;
    assert!(error.contains("reach etcd in pod etcd-node-1"), "{error}");

    let timeouts = EtcdTimeouts { dial: late, call: soon };
    let hanging = Hanging::Calls(Etcd::new(&etcd));
    let (_world, _workload, connection) = start(hanging, &etcd, timeouts).await;
    let member = connection.etcd("etcd-node-1").await.unwrap();
    let asked = async {
        let error = member.status().await.unwrap_err();
        assert!(matches!(error, EtcdError::Unreachable { .. }), "{error}");
        error.to_string()
    };
    let error = in_time("the call", Box::pin(asked)).await;
    assert!(error.contains("did not answer Status"), "{error}");
}
