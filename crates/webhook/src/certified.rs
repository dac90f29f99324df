//! The current certificate of the server.

use std::sync::Arc;

use parking_lot::RwLock;
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use windlass_http_client::tls::provider;
use windlass_pki::{Certificate, PrivateKey};

/// The TLS configuration for a chain and its key, PEM. The key belongs to the first certificate.
pub(crate) fn certified(chain: &str, key: &str) -> Result<Arc<CertifiedKey>, String> {
    let certificates = Certificate::all_from_pem(chain).map_err(|error| error.to_string())?;
    let key = PrivateKey::from_pem(key).map_err(|error| error.to_string())?;
    let first = certificates.first().ok_or("there is no certificate in it")?;
    if first.public_key_der() != key.public_der() {
        return Err(format!(
            "the private key does not belong to the certificate of {:?}",
            first.common_name()
        ));
    }
    let chain = certificates
        .iter()
        .map(|certificate| CertificateDer::from(certificate.der().to_vec()));
    let key = PrivatePkcs8KeyDer::from(key.to_pkcs8_der()).into();
    CertifiedKey::from_der(chain.collect(), key, &provider())
        .map(Arc::new)
        .map_err(|error| error.to_string())
}

/// Checks that clients which trust the authorities accept a chain for a name at a time; the error is the reason.
pub(crate) fn accepted(
    authorities: &[Certificate],
    chain: &[Certificate],
    name: &str,
    now: jiff::Timestamp,
) -> Result<(), String> {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        let added = roots.add(CertificateDer::from(authority.der().to_vec()));
        added.map_err(|error| error.to_string())?;
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider());
    let verifier = verifier.build().map_err(|error| error.to_string())?;
    let chain: Vec<_> = chain
        .iter()
        .map(|certificate| CertificateDer::from(certificate.der()))
        .collect();
    let (first, others) = chain.split_first().ok_or("there is no certificate in it")?;
    let server = ServerName::try_from(name).map_err(|error| error.to_string())?;
    let seconds = u64::try_from(now.as_second()).unwrap_or_default();
    let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
    let verified = verifier.verify_server_cert(first, others, &server, &[], now);
    verified.map(drop).map_err(|error| error.to_string())
}

/// The certificate for new connections; a clone is another handle to it.
#[derive(Clone)]
pub(crate) struct Served(Arc<RwLock<Arc<CertifiedKey>>>);

impl std::fmt::Debug for Served {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Served").finish_non_exhaustive()
    }
}

impl Served {
    pub(crate) fn new(certificate: Arc<CertifiedKey>) -> Self {
        Self(Arc::new(RwLock::new(certificate)))
    }

    pub(crate) fn get(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.0.read())
    }

    pub(crate) fn set(&self, certificate: Arc<CertifiedKey>) {
        *self.0.write() = certificate;
    }
}

impl ResolvesServerCert for Served {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.get())
    }
}
