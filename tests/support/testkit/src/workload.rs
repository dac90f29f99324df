//! The API server of a workload cluster, on loopback, without machines.

use std::net::SocketAddr;
use std::sync::Arc;

use jiff::Timestamp;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio::net::TcpListener;
use windlass_apiserver::{ApiServer, Options, UserInfo, tls_config};
use windlass_pki::{CaRequest, CertificateAuthority, KeyAlgorithm, Kubeconfig, LeafRequest, PrivateKey};
use windlass_store::{Limits, Store};

/// An empty API server with a kubeconfig.
pub struct Workload {
    server: ApiServer,
    address: SocketAddr,
    authority: CertificateAuthority,
}

impl std::fmt::Debug for Workload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workload")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Workload {
    /// Starts one.
    pub async fn start() -> Self {
        let store = Store::memory(Limits::default());
        let server = ApiServer::start(Options::new(store))
            .await
            .expect("an API server starts");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a free port");
        let address = listener.local_addr().expect("a listener has an address");
        let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).expect("keys can be made");
        let authority = CertificateAuthority::self_signed(&CaRequest::new("kubernetes"), key, now());
        let authority = authority.expect("an authority can be made");
        let trusted = [CertificateDer::from(authority.certificate().der().to_vec())];
        let certified = Arc::new(SingleCertAndKey::from(certified(&authority)));
        let tls = tls_config(certified, &trusted).expect("the certificate can be served");
        let serving = server.clone();
        tokio::spawn(async move { serving.serve(listener, tls).await });
        Self {
            server,
            address,
            authority,
        }
    }

    /// An administrator's kubeconfig.
    pub fn kubeconfig(&self) -> String {
        let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).expect("keys can be made");
        let certificate = self.authority.issue(&LeafRequest::administrator(), &key, now());
        Kubeconfig {
            cluster: "workload".to_owned(),
            server: format!("https://{}", self.address),
            authority: self.authority.certificate().to_pem(),
            client_certificate: certificate.expect("certificates can be issued").to_pem(),
            client_key: key.to_pem(),
        }
        .render()
    }

    /// The client of the test.
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.server.client_service(UserInfo::admin("test")), "default")
    }

    /// The number of answered requests for a resource, from all clients.
    pub fn requests_for(&self, resource: &str) -> u64 {
        let all = self.server.counters().snapshot();
        let found = all.iter().filter(|(request, _)| request.resource == resource);
        found.map(|(_, count)| count).sum()
    }

    /// Stops it; its port has no listener afterwards.
    pub fn stop(&self) {
        self.server.shutdown();
    }
}

impl Drop for Workload {
    fn drop(&mut self) {
        self.stop();
    }
}

fn now() -> Timestamp {
    Timestamp::now()
}

fn certified(authority: &CertificateAuthority) -> CertifiedKey {
    let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).expect("keys can be made");
    let request = LeafRequest::server("server", vec!["127.0.0.1".to_owned()]);
    let certificate = authority
        .issue(&request, &key, now())
        .expect("certificates can be issued");
    let chain = vec![CertificateDer::from(certificate.der().to_vec())];
    let key = PrivateKeyDer::from_pem_slice(key.to_pem().as_bytes()).expect("the key was just written");
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    CertifiedKey::from_der(chain, key, &provider).expect("the key is that of the certificate")
}
