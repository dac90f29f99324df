//! Certificates of simulated servers, and the TLS set-ups made of them.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use rustls::RootCertStore;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use windlass_pki::{CertificateAuthority, DEFAULT_LEAF_DAYS, KeyAlgorithm, LeafRequest, PrivateKey};

/// A certificate and its key. Leaves are ECDSA: no other program reads them, and RSA keys cost a hundred times more.
fn leaf(
    authority: &CertificateAuthority,
    name: &str,
    alternative_names: &[&str],
    now: Timestamp,
) -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>), String> {
    let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).map_err(|error| error.to_string())?;
    let request = LeafRequest::server(name, alternative_names.iter().map(|name| (*name).to_owned()).collect());
    let certificate = authority
        .issue(&request, &key, now)
        .map_err(|error| error.to_string())?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.to_pkcs8_der()));
    Ok((CertificateDer::from(certificate.der().to_vec()), key))
}

fn root(authority: &CertificateAuthority) -> CertificateDer<'static> {
    CertificateDer::from(authority.certificate().der().to_vec())
}

/// The set-up of an API server whose certificate expires then. It is asked for its certificate only, by the local address.
pub(super) fn api_server_until(
    authority: &CertificateAuthority,
    expiry: Timestamp,
) -> Result<Arc<rustls::ServerConfig>, String> {
    // Certificates are valid for a year from their issue.
    let issued = expiry.checked_sub(SignedDuration::from_hours(24 * i64::from(DEFAULT_LEAF_DAYS)));
    api_server(authority, &[], issued.map_err(|error| error.to_string())?)
}

/// The set-up of an API server that is reached by these hosts, too: clients are known by certificates of the same authority, or
/// come with a token.
pub(super) fn api_server(
    authority: &CertificateAuthority,
    hosts: &[String],
    now: Timestamp,
) -> Result<Arc<rustls::ServerConfig>, String> {
    let mut names = vec![
        "localhost",
        "127.0.0.1",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
    ];
    for host in hosts {
        if !names.contains(&host.as_str()) {
            names.push(host);
        }
    }
    let (certificate, key) = leaf(authority, "kube-apiserver", &names, now)?;
    let signing = aws_lc_rs::sign::any_supported_type(&key).map_err(|error| error.to_string())?;
    let resolver: Arc<dyn ResolvesServerCert> =
        Arc::new(SingleCertAndKey::from(CertifiedKey::new(vec![certificate], signing)));
    windlass_apiserver::tls_config(resolver, &[root(authority)]).map_err(|error| error.to_string())
}

/// The set-up of an etcd member: HTTP/2 only, and a client certificate of the same authority is demanded.
pub(super) fn etcd(authority: &CertificateAuthority, now: Timestamp) -> Result<Arc<rustls::ServerConfig>, String> {
    let (certificate, key) = leaf(authority, "etcd", &["localhost", "127.0.0.1"], now)?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(root(authority)).map_err(|error| error.to_string())?;
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
        .build()
        .map_err(|error| error.to_string())?;
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_client_cert_verifier(clients)
        .with_single_cert(vec![certificate], key)
        .map_err(|error| error.to_string())?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Arc::new(config))
}
