//! The certificate that a pod serves, read through a tunnel.

use std::sync::Arc;
use std::time::Duration;

use windlass_controller_runtime::Term;
use windlass_http_client::tls;

use crate::tunnel::Tunnels;

/// How long it may take.
const LIMIT: Duration = Duration::from_secs(10);

/// The certificates (DER) that a port of a pod in `kube-system` shows, its own first.
pub(crate) async fn served(tunnels: &Tunnels, pod: &str, port: u16, term: &Term) -> std::io::Result<Vec<Vec<u8>>> {
    let reading = read(tunnels, pod, port, term);
    let read = tokio::time::timeout(LIMIT, reading).await;
    read.map_err(|_| std::io::Error::other("no answer in time"))?
}

async fn read(tunnels: &Tunnels, pod: &str, port: u16, term: &Term) -> std::io::Result<Vec<Vec<u8>>> {
    // It is only inspected, and no data is sent over the connection. The tunnel itself is trusted.
    let mut config = tls::builder()
        .map_err(std::io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(tls::AnyServer::default()))
        .with_no_client_auth();
    // Servers with several certificates choose by it: that of kubeadm is the one for clients that name none.
    config.enable_sni = false;
    let stream = tunnels.tls(pod, port, Arc::new(config), term).await?;
    let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
    if certificates.is_empty() {
        return Err(std::io::Error::other("the server shows no certificate"));
    }
    let certificates = certificates.iter();
    Ok(certificates.map(|certificate| certificate.as_ref().to_vec()).collect())
}
