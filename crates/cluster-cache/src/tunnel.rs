//! Port-forwards to pods in `kube-system`, and TLS inside them.
//!
//! They go over WebSockets, and over SPDY where the API server does not upgrade to these: servers before Kubernetes 1.31 leave WebSockets to
//! kubelets and container runtimes, and some forward ports over SPDY alone. `kubectl` does the same.

mod spdy;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::core::Status;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use windlass_controller_runtime::{Term, with_causes};

/// The namespace of all pods.
const NAMESPACE: &str = "kube-system";

/// Bytes in both directions.
trait Bytes: AsyncRead + AsyncWrite + Send {}

impl<T: AsyncRead + AsyncWrite + Send> Bytes for T {}

/// A connection to a port of a pod.
struct Forwarded {
    stream: Pin<Box<dyn Bytes>>,
    /// What the server says of a connection that it ends. None if it ends in order, or if reading fails with these words.
    refused: BoxFuture<'static, Option<String>>,
}

/// Why a port is not forwarded.
#[derive(Debug)]
enum Failed {
    /// The server does not upgrade the connection: it may in another protocol.
    Upgrade(String),
    /// Another protocol is of no help.
    Other(io::Error),
}

impl Failed {
    /// What an error answer means. Credentials, pods and a server with too many requests are the same for each protocol. Rights are not:
    /// WebSockets need "get", SPDY needs "create".
    fn answer(status: &Status) -> Self {
        let kind = status.details.as_ref().map(|details| details.kind.as_str());
        let has_no_pod = status.reason == "NotFound" && kind == Some("pods");
        let why = format!("{}: {}", status.code, status.message);
        match status.code {
            401 | 429 => Self::Other(io::Error::other(why)),
            404 if has_no_pod => Self::Other(io::Error::other(status.message.clone())),
            _ => Self::Upgrade(why),
        }
    }
}

/// The port-forwards of a connection to a workload cluster.
#[derive(Clone)]
pub(crate) struct Tunnels {
    client: kube::Client,
    /// Whether the API server upgraded the last one to SPDY, which is asked for first then.
    is_spdy: Arc<AtomicBool>,
}

impl Tunnels {
    /// Tunnels over the upgraded connections of a client, which is for HTTP/1.1.
    pub(crate) fn new(client: kube::Client) -> Self {
        Self {
            client,
            is_spdy: Arc::default(),
        }
    }

    /// Connects to a port of a pod in the protocol that the server knows. Each is asked for at most once.
    async fn open(&self, pod: &str, port: u16, term: &Term) -> io::Result<Forwarded> {
        let mut refusals = Vec::new();
        let known = self.is_spdy.load(Ordering::Relaxed);
        for is_spdy in [known, !known] {
            let opened = if is_spdy {
                spdy::open(&self.client, pod, port, term).await
            } else {
                self.websocket(pod, port).await
            };
            match opened {
                Ok(forwarded) => {
                    self.is_spdy.store(is_spdy, Ordering::Relaxed);
                    return Ok(forwarded);
                }
                Err(Failed::Other(error)) => return Err(error),
                Err(Failed::Upgrade(why)) => {
                    let protocol = if is_spdy { "SPDY" } else { "a WebSocket" };
                    refusals.push(format!("not over {protocol} ({why})"));
                }
            }
        }
        let refusals = refusals.join(", ");
        Err(io::Error::other(format!(
            "the API server does not forward the port: {refusals}"
        )))
    }

    async fn websocket(&self, pod: &str, port: u16) -> Result<Forwarded, Failed> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), NAMESPACE);
        let mut forward = pods.portforward(pod, &[port]).await.map_err(|error| match error {
            kube::Error::Api(status) => Failed::answer(&status),
            kube::Error::UpgradeConnection(error) => Failed::Upgrade(with_causes(&error)),
            error => Failed::Other(io::Error::other(error)),
        })?;
        let stream = forward
            .take_stream(port)
            .ok_or_else(|| Failed::Other(io::Error::other("the port-forward has no stream")))?;
        let refused = forward.take_error(port);
        Ok(Forwarded {
            stream: Box::pin(stream),
            refused: Box::pin(async move { refused?.await }),
        })
    }

    /// Opens a tunnel to a port of a pod. The TLS configuration decides which certificate it accepts: the pod's name is in none. The name
    /// is sent all the same, unless the configuration sends none, as Cluster API sends it to etcd: a server behind the ports of several pods
    /// chooses its certificate by it. After the term of this process nothing more goes through the tunnel.
    pub(crate) async fn tls(
        &self,
        pod: &str,
        port: u16,
        config: Arc<ClientConfig>,
        term: &Term,
    ) -> io::Result<TlsStream<impl AsyncRead + AsyncWrite + Unpin + use<>>> {
        let Forwarded { stream, refused } = self.open(pod, port, term).await?;
        // Not every name of a pod is one of a host, whose parts are shorter.
        let name = ServerName::try_from(pod.to_owned()).or_else(|_| ServerName::try_from("localhost"));
        let name = name.map_err(io::Error::other)?;
        let handshake = TlsConnector::from(config).connect(name, term.fence_stream(stream));
        tokio::select! {
            // What the server says explains why the handshake fails.
            biased;
            Some(why) = refused => Err(io::Error::other(why)),
            stream = handshake => stream,
        }
    }
}
