//! Certificates for the names of the forge.

use std::io;
use std::sync::Arc;

use jiff::Timestamp;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::server::ResolvesServerCertUsingSni;
use rustls::sign::CertifiedKey;
use windlass_pki::{CaRequest, CertificateAuthority, KeyAlgorithm, LeafRequest, PrivateKey};

/// The server certificates, and the authority that clients must trust.
pub(crate) struct Tls {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) authority: String,
}

/// A certificate for each name. The certificates of `strangers` come from an authority that clients do not know.
pub(crate) fn tls(names: &[&str], strangers: &[&str]) -> io::Result<Tls> {
    let now = Timestamp::now();
    let authority = |name: &str| {
        let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256)?;
        CertificateAuthority::self_signed(&CaRequest::new(name), key, now)
    };
    let known = authority("forge").map_err(io::Error::other)?;
    let unknown = authority("stranger").map_err(io::Error::other)?;
    let mut resolver = ResolvesServerCertUsingSni::new();
    for (authority, names) in [(&known, names), (&unknown, strangers)] {
        let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).map_err(io::Error::other)?;
        let all = names.iter().map(|&name| name.to_owned()).collect();
        let request = LeafRequest::server("forge", all);
        let certificate = authority.issue(&request, &key, now).map_err(io::Error::other)?;
        let signer = aws_lc_rs::sign::any_supported_type(&PrivatePkcs8KeyDer::from(key.to_pkcs8_der()).into());
        let signer = signer.map_err(io::Error::other)?;
        let certified = CertifiedKey::new(vec![CertificateDer::from(certificate.der().to_vec())], signer);
        for &name in names {
            resolver.add(name, certified.clone()).map_err(io::Error::other)?;
        }
    }
    let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let builder = builder
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    let mut config = builder.with_no_client_auth().with_cert_resolver(Arc::new(resolver));
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Tls {
        config: Arc::new(config),
        authority: known.certificate().to_pem(),
    })
}
