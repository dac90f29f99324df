//! Clients that neither send nor read, and other clients at the same time.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{PostParams, WatchEvent, WatchParams};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::edge::Edge;
use crate::support::client;

fn connector(edge: &Edge, versions: &[&'static rustls::SupportedProtocolVersion], alpn: &str) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from(edge.authority.certificate().der().to_vec());
    roots.add(authority).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    if !alpn.is_empty() {
        config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
    }
    TlsConnector::from(Arc::new(config))
}

pub(crate) async fn connect<S>(
    edge: &Edge,
    stream: S,
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> TlsStream<S>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let name = ServerName::try_from("127.0.0.1").unwrap();
    connector(edge, versions, "http/1.1")
        .connect(name, stream)
        .await
        .unwrap()
}

/// An in-process connection: tests can skip time on it.
pub(crate) async fn piped(edge: &Edge) -> TlsStream<tokio::io::DuplexStream> {
    piped_as(edge, "http/1.1").await
}

/// [`piped`] with a protocol.
pub(crate) async fn piped_as(edge: &Edge, protocol: &str) -> TlsStream<tokio::io::DuplexStream> {
    let (near, far) = tokio::io::duplex(4096);
    let (server, acceptor) = (edge.server.clone(), TlsAcceptor::from(edge.tls.clone()));
    tokio::spawn(async move { server.serve_stream(acceptor.accept(far).await.unwrap()).await });
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let connector = connector(edge, rustls::ALL_VERSIONS, protocol);
    connector.connect(name, near).await.unwrap()
}

#[tokio::test]
async fn both_versions_of_tls_are_spoken_and_clients_without_alpn_too() {
    let edge = Edge::start().await;
    let place = edge.url.trim_start_matches("https://").to_owned();
    for (version, alpn) in [
        (&rustls::version::TLS12, "http/1.1"),
        (&rustls::version::TLS13, "http/1.1"),
        (&rustls::version::TLS13, ""),
    ] {
        let stream = TcpStream::connect(&place).await.unwrap();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let mut stream = connector(&edge, &[version], alpn).connect(name, stream).await.unwrap();
        stream
            .write_all(b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            .await
            .unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        assert!(answer.ends_with("ok"), "{answer}");
    }
}

#[tokio::test]
async fn half_a_request_is_given_up() {
    let edge = Edge::start().await;
    let mut head = piped(&edge).await;
    head.write_all(b"GET /healthz HTTP/1.1\r\nHost: a\r\n").await.unwrap();
    let mut body = piped(&edge).await;
    let start = b"POST /api/v1/namespaces HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer sesame\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
    body.write_all(start).await.unwrap();
    tokio::time::pause();
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(Duration::from_mins(10), head.read_to_end(&mut answer))
        .await
        .expect("it should be hung up");
    let mut answer = vec![0; 12];
    tokio::time::timeout(Duration::from_mins(10), body.read_exact(&mut answer))
        .await
        .expect("it should be answered")
        .unwrap();
    assert_eq!(answer, b"HTTP/1.1 504");
}

#[tokio::test]
async fn an_unread_watch_does_not_affect_other_clients() {
    let edge = Edge::start().await;
    let place = edge.url.trim_start_matches("https://").to_owned();
    let mut stuck = connect(&edge, TcpStream::connect(&place).await.unwrap(), rustls::ALL_VERSIONS).await;
    stuck
        .write_all(b"GET /api/v1/configmaps?watch=1 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer sesame\r\n\r\n")
        .await
        .unwrap();
    let mut piped = piped(&edge).await;
    piped
        .write_all(b"GET /api/v1/configmaps?watch=1 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer sesame\r\n\r\n")
        .await
        .unwrap();
    let api: Api<ConfigMap> = Api::default_namespaced(client(&edge.server));
    let mut events = api
        .watch(&WatchParams::default().timeout(60), "0")
        .await
        .unwrap()
        .boxed();
    let data = "x".repeat(30 << 10);
    for i in 0..100 {
        let object =
            serde_json::from_value(json!({"metadata": {"name": format!("m{i}")}, "data": {"k": data}})).unwrap();
        api.create(&PostParams::default(), &object).await.unwrap();
        let event = tokio::time::timeout(Duration::from_mins(1), events.next())
            .await
            .expect("others go on");
        assert!(matches!(event, Some(Ok(WatchEvent::Added(_)))));
    }
    // The bytes that wait for a client that reads nothing are dropped in the end.
    tokio::time::pause();
    tokio::time::sleep(Duration::from_mins(5)).await;
    tokio::time::resume();
    let mut rest = Vec::new();
    let _ = tokio::time::timeout(Duration::from_mins(1), piped.read_to_end(&mut rest))
        .await
        .expect("it should be hung up");
    assert!(rest.len() < 1 << 20, "{} bytes were kept for it", rest.len());
}
