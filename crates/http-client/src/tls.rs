//! TLS of clients: crypto provider, protocol versions, trusted CA certificates.

use std::sync::{Arc, LazyLock};

use rustls::client::WantsClientCert;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ConfigBuilder, DigitallySignedStruct, RootCertStore, SignatureScheme, WantsVerifier};

/// Why CA certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadAuthorities {
    /// The text is not PEM.
    #[error(transparent)]
    Pem(#[from] pem::Error),
    /// A block is not a certificate.
    #[error(transparent)]
    Certificate(#[from] rustls::Error),
    /// There is no certificate in the text.
    #[error("no block that begins with -----BEGIN CERTIFICATE-----")]
    None,
}

/// The crypto provider of all clients.
pub fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: LazyLock<Arc<CryptoProvider>> =
        LazyLock::new(|| Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
    Arc::clone(&PROVIDER)
}

/// The beginning of a configuration: crypto provider and protocol versions.
pub fn builder() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, rustls::Error> {
    ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()
}

/// The same with trusted CA certificates.
pub fn trusting(
    roots: impl Into<Arc<RootCertStore>>,
) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, rustls::Error> {
    Ok(builder()?.with_root_certificates(roots))
}

/// Accepts any server that has the key of the certificate that it shows. It is for connections whose server is trusted otherwise, or only
/// asked for its certificate.
#[derive(Debug)]
pub struct AnyServer(Arc<CryptoProvider>);

impl Default for AnyServer {
    fn default() -> Self {
        Self(provider())
    }
}

impl ServerCertVerifier for AnyServer {
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
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// The CA certificates of the system; read once in the life of a process.
pub fn system_roots() -> Arc<RootCertStore> {
    static ROOTS: LazyLock<Arc<RootCertStore>> = LazyLock::new(|| {
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::warn!(%error, "cannot read the CA certificates of the system");
        }
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(found.certs);
        Arc::new(roots)
    });
    Arc::clone(&ROOTS)
}

/// The certificates of a text in PEM, each of which could be a CA certificate. Other blocks are ignored.
pub fn authorities(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, BadAuthorities> {
    let mut found = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate?;
        // A certificate that is none would only be missed in a handshake.
        RootCertStore::empty().add(certificate.clone())?;
        found.push(certificate);
    }
    if found.is_empty() {
        return Err(BadAuthorities::None);
    }
    Ok(found)
}

/// The CA certificates of a text in PEM, and no others.
pub fn roots(pem: &[u8]) -> Result<RootCertStore, BadAuthorities> {
    let mut roots = RootCertStore::empty();
    for certificate in authorities(pem)? {
        roots.add(certificate)?;
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_usable_certificates_is_an_error() {
        assert!(matches!(authorities(b"no PEM"), Err(BadAuthorities::None)));
        let cut = b"-----BEGIN CERTIFICATE-----\nAAAA\n";
        assert!(matches!(authorities(cut), Err(BadAuthorities::Pem(_))));
        let empty = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(matches!(authorities(empty), Err(BadAuthorities::Certificate(_))));
        assert!(roots(b"").is_err());
    }
}
