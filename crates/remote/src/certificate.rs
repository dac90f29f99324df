//! The certificate that a pod serves, read through a tunnel.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use tokio_rustls::TlsConnector;

/// How long it may take.
const LIMIT: Duration = Duration::from_secs(10);

/// The first certificate (DER) that a port of a pod in `kube-system` shows.
pub(crate) async fn served(client: kube::Client, pod: &str, port: u16) -> std::io::Result<Vec<u8>> {
    let reading = read(client, pod, port);
    let read = tokio::time::timeout(LIMIT, reading).await;
    read.map_err(|_| std::io::Error::other("no answer in time"))?
}

async fn read(client: kube::Client, pod: &str, port: u16) -> std::io::Result<Vec<u8>> {
    let pods: Api<Pod> = Api::namespaced(client, "kube-system");
    let mut forward = pods.portforward(pod, &[port]).await.map_err(std::io::Error::other)?;
    let stream = forward
        .take_stream(port)
        .ok_or_else(|| std::io::Error::other("the port-forward has no stream"))?;
    let refused = forward.take_error(port);
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(std::io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Reader(provider)))
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").map_err(std::io::Error::other)?;
    let handshake = TlsConnector::from(Arc::new(config)).connect(name, stream);
    tokio::pin!(handshake);
    let stream = match refused {
        None => handshake.await?,
        Some(refused) => tokio::select! {
            stream = &mut handshake => stream?,
            Some(why) = refused => return Err(std::io::Error::other(why)),
        },
    };
    let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
    let first = certificates.first();
    first
        .map(|certificate| certificate.as_ref().to_vec())
        .ok_or_else(|| std::io::Error::other("the server shows no certificate"))
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
