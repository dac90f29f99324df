//! The certificate that a pod serves, read through a tunnel.

use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
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
    let mut config = tls::builder()
        .map_err(std::io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Reader(tls::provider())))
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

/// Accepts any certificate: it is only inspected, and no data is sent over the connection. The tunnel itself is trusted.
#[derive(Debug)]
struct Reader(Arc<rustls::crypto::CryptoProvider>);

impl ServerCertVerifier for Reader {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
