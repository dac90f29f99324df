//! TLS inside a port-forward to a pod in `kube-system`.

use std::io;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use windlass_controller_runtime::Term;

/// Opens a tunnel to a port of a pod. The TLS configuration decides which certificate it accepts: the pod's name is in none. After
/// the term of this process nothing more goes through the tunnel.
pub(crate) async fn tls(
    client: kube::Client,
    pod: &str,
    port: u16,
    config: Arc<ClientConfig>,
    term: &Term,
) -> io::Result<TlsStream<impl AsyncRead + AsyncWrite + Unpin + use<>>> {
    let pods: Api<Pod> = Api::namespaced(client, "kube-system");
    let mut forward = pods.portforward(pod, &[port]).await.map_err(io::Error::other)?;
    let stream = forward
        .take_stream(port)
        .ok_or_else(|| io::Error::other("the port-forward has no stream"))?;
    let refused = forward.take_error(port);
    let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
    let handshake = TlsConnector::from(config).connect(name, term.fence_stream(stream));
    tokio::pin!(handshake);
    let Some(refused) = refused else {
        return handshake.await;
    };
    tokio::select! {
        stream = &mut handshake => stream,
        Some(why) = refused => Err(io::Error::other(why)),
    }
}
