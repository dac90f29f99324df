//! Certificates of simulated programs, the TLS set-ups made of them, and handshakes in memory.

use std::ops::DerefMut;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::server::{NoServerSessionStorage, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, ClientConnection, ConnectionCommon, ServerConfig, ServerConnection, SideData};
use windlass_http_client::tls;
use windlass_pki::{CaRequest, CertificateAuthority, DEFAULT_LEAF_DAYS, KeyAlgorithm, LeafRequest, PrivateKey};

use super::authority::{Authority, Bundle};

/// A certificate with its key.
type Leaf = (CertificateDer<'static>, PrivateKeyDer<'static>);

/// A certificate and its key. Leaves are ECDSA: no other program reads them, and RSA keys cost a hundred times more.
fn leaf(authority: &CertificateAuthority, request: &LeafRequest, now: Timestamp) -> Result<Leaf, String> {
    let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).map_err(|error| error.to_string())?;
    let certificate = authority.issue(request, &key, now).map_err(|error| error.to_string())?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.to_pkcs8_der()));
    Ok((CertificateDer::from(certificate.der().to_vec()), key))
}

/// Servers keep no sessions: each connection is checked by the machine that it reaches, and idle clusters stay small.
fn without_sessions(config: &mut ServerConfig) {
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
}

/// The set-up of an API server whose certificate expires then. It is asked for its certificate only, by the local address.
pub(super) fn api_server_until(authority: &Authority, expiry: Timestamp) -> Result<Arc<ServerConfig>, String> {
    // Certificates are valid for a year from their issue.
    let issued = expiry.checked_sub(SignedDuration::from_hours(24 * i64::from(DEFAULT_LEAF_DAYS)));
    api_server(authority, &[], issued.map_err(|error| error.to_string())?)
}

/// The set-up of an API server that is reached by these hosts, too: clients are known by certificates of the authorities that it trusts,
/// or come with a token.
pub(super) fn api_server(authority: &Authority, hosts: &[String], now: Timestamp) -> Result<Arc<ServerConfig>, String> {
    let mut names: Vec<String> = [
        "localhost",
        "127.0.0.1",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
    ]
    .map(str::to_owned)
    .into();
    for host in hosts {
        if !names.contains(host) {
            names.push(host.clone());
        }
    }
    let request = LeafRequest::server("kube-apiserver", names);
    let (certificate, key) = leaf(authority.signer(), &request, now)?;
    let signing = aws_lc_rs::sign::any_supported_type(&key).map_err(|error| error.to_string())?;
    let resolver: Arc<dyn ResolvesServerCert> =
        Arc::new(SingleCertAndKey::from(CertifiedKey::new(vec![certificate], signing)));
    let mut config = windlass_apiserver::tls_config(resolver, &authority.trusted().certificates())
        .map_err(|error| error.to_string())?;
    without_sessions(Arc::make_mut(&mut config));
    Ok(config)
}

/// The set-up of an etcd member: HTTP/2 only, and a client certificate of an authority that it trusts is demanded.
pub(super) fn etcd(authority: &Authority, now: Timestamp) -> Result<Arc<ServerConfig>, String> {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let leaf = leaf(authority.signer(), &LeafRequest::server("etcd", names), now)?;
    let mut config = demanding(leaf, authority.trusted())?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Arc::new(config))
}

/// The set-up of a kubelet, whose certificate it has made itself: only clients with a certificate of these authorities are let in.
pub(super) fn kubelet(name: &str, clients: &Bundle, now: Timestamp) -> Result<Arc<ServerConfig>, String> {
    let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).map_err(|error| error.to_string())?;
    let own = CertificateAuthority::self_signed(&CaRequest::new(format!("{name}-ca")), key, now)
        .map_err(|error| error.to_string())?;
    let leaf = leaf(&own, &LeafRequest::server(name, vec![name.to_owned()]), now)?;
    demanding(leaf, clients).map(Arc::new)
}

/// A server that demands a client certificate of these authorities.
fn demanding((certificate, key): Leaf, clients: &Bundle) -> Result<ServerConfig, String> {
    let clients = WebPkiClientVerifier::builder_with_provider(clients.roots()?, tls::provider())
        .build()
        .map_err(|error| error.to_string())?;
    let mut config = ServerConfig::builder_with_provider(tls::provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_client_cert_verifier(clients)
        .with_single_cert(vec![certificate], key)
        .map_err(|error| error.to_string())?;
    without_sessions(&mut config);
    Ok(config)
}

/// The set-up of a client. Without a bundle it accepts any server; without an authority and a request it has no certificate.
pub(super) fn client(
    trust: Option<&Bundle>,
    identity: Option<(&Authority, &LeafRequest, Timestamp)>,
) -> Result<Arc<ClientConfig>, String> {
    let verifier: Arc<dyn ServerCertVerifier> = match trust {
        Some(bundle) => WebPkiServerVerifier::builder_with_provider(bundle.roots()?, tls::provider())
            .build()
            .map_err(|error| error.to_string())?,
        // As API servers do with kubelets unless they are given an authority for them.
        None => Arc::new(tls::AnyServer::default()),
    };
    let builder = tls::builder()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match identity {
        Some((authority, request, now)) => {
            let (certificate, key) = leaf(authority.signer(), request, now)?;
            builder
                .with_client_auth_cert(vec![certificate], key)
                .map_err(|error| error.to_string())?
        }
        None => builder.with_no_client_auth(),
    };
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// A whole handshake in memory, in which each side verifies the other as it is set up to. The error says which side refuses, and why.
pub(super) fn handshake(client: &Arc<ClientConfig>, host: &str, server: &Arc<ServerConfig>) -> Result<(), String> {
    let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
    let mut client = ClientConnection::new(Arc::clone(client), name).map_err(|error| error.to_string())?;
    let mut server = ServerConnection::new(Arc::clone(server)).map_err(|error| error.to_string())?;
    loop {
        let there = carry(&mut client, &mut server).map_err(|why| format!("the server refuses the client: {why}"))?;
        let back = carry(&mut server, &mut client).map_err(|why| format!("the client refuses the server: {why}"))?;
        if !there && !back {
            break;
        }
    }
    if client.is_handshaking() || server.is_handshaking() {
        return Err("the handshake does not end".to_owned());
    }
    Ok(())
}

/// Carries what one side has to say to the other. Returns whether there was anything.
fn carry<A: SideData, B: SideData>(
    from: &mut impl DerefMut<Target = ConnectionCommon<A>>,
    to: &mut impl DerefMut<Target = ConnectionCommon<B>>,
) -> Result<bool, String> {
    let mut bytes = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut bytes).map_err(|error| error.to_string())?;
    }
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        to.read_tls(&mut rest).map_err(|error| error.to_string())?;
        to.process_new_packets().map_err(|error| error.to_string())?;
    }
    Ok(!bytes.is_empty())
}
