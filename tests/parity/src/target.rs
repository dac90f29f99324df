//! A server as the target of requests.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::config::{KubeConfigOptions, Kubeconfig};
use rustls::pki_types::CertificateDer;
use rustls::sign::SingleCertAndKey;
use tokio::net::TcpListener;
use windlass_apiserver::{ApiServer, Authorization, Options, UserInfo, tls_config};
use windlass_meta::{Clock as _, SystemClock};
use windlass_pki::{CaRequest, CertificateAuthority, KeyAlgorithm, Kubeconfig as Written, LeafRequest, PrivateKey};
use windlass_store::{Limits, Store};

/// A bearer token that the embedded server knows, and the groups of its user.
pub const TOKEN: (&str, &str, &[&str]) = ("parity-token", "token-user", &["token-group"]);

pub(crate) type Http = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// A server as the target of requests.
#[derive(Debug)]
pub struct Target {
    /// `https://HOST:PORT`
    pub(crate) url: String,
    /// With the administrator's certificate.
    pub(crate) admin: Http,
    /// Without credentials.
    pub(crate) anonymous: Http,
    server: Option<ApiServer>,
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some(server) = &self.server {
            server.shutdown();
        }
    }
}

impl Target {
    /// The server that a kubeconfig names.
    pub async fn of(kubeconfig: &Path) -> Result<Self, String> {
        let found = Kubeconfig::read_from(kubeconfig).map_err(|e| format!("{}: {e}", kubeconfig.display()))?;
        Self::with(found, None).await
    }

    async fn with(found: Kubeconfig, server: Option<ApiServer>) -> Result<Self, String> {
        let config = kube::Config::from_custom_kubeconfig(found, &KubeConfigOptions::default())
            .await
            .map_err(|e| e.to_string())?;
        let mut bare = config.clone();
        bare.auth_info = kube::config::AuthInfo::default();
        let client = |config: &kube::Config| -> Result<Http, String> {
            let connector = kube::client::ConfigExt::rustls_https_connector(config).map_err(|e| e.to_string())?;
            Ok(Client::builder(TokioExecutor::new()).build(connector))
        };
        let url = config.cluster_url.to_string();
        Ok(Self {
            url: url.trim_end_matches('/').to_owned(),
            admin: client(&config)?,
            anonymous: client(&bare)?,
            server,
        })
    }

    /// An embedded server on a free port of the loopback interface, with roles and one bearer token.
    pub async fn embedded() -> Result<Self, String> {
        let say = |e: &dyn std::fmt::Display| e.to_string();
        let now = SystemClock.now();
        let key = || PrivateKey::generate(KeyAlgorithm::EcdsaP256).map_err(|e| say(&e));
        let authority =
            CertificateAuthority::self_signed(&CaRequest::new("parity"), key()?, now).map_err(|e| say(&e))?;
        let issue = |request: LeafRequest| -> Result<_, String> {
            let key = key()?;
            Ok((authority.issue(&request, &key, now).map_err(|e| say(&e))?, key))
        };
        let (server_certificate, server_key) = issue(LeafRequest::server(
            "kube-apiserver",
            vec!["127.0.0.1".to_owned(), "localhost".to_owned()],
        ))?;
        let (client_certificate, client_key) = issue(LeafRequest::administrator())?;
        let der = |certificate: &windlass_pki::Certificate| CertificateDer::from(certificate.der().to_vec());
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let signer = provider
            .key_provider
            .load_private_key(rustls::pki_types::PrivatePkcs8KeyDer::from(server_key.to_pkcs8_der()).into())
            .map_err(|e| say(&e))?;
        let resolver = SingleCertAndKey::from(rustls::sign::CertifiedKey::new(vec![der(&server_certificate)], signer));
        let tls = tls_config(Arc::new(resolver), &[der(authority.certificate())]).map_err(|e| say(&e))?;

        let mut options = Options::new(Store::memory(Limits::default()));
        options.authorization = Authorization::Rbac;
        options.tokens = BTreeMap::from([(TOKEN.0.to_owned(), UserInfo::new(TOKEN.1, TOKEN.2))]);
        let server = ApiServer::start(options).await.map_err(|e| say(&e))?;
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|e| say(&e))?;
        let address = listener.local_addr().map_err(|e| say(&e))?;
        let serving = server.clone();
        tokio::spawn(async move { serving.serve(listener, tls).await });

        let kubeconfig = Written {
            cluster: "parity".to_owned(),
            server: format!("https://{address}"),
            authority: authority.certificate().to_pem(),
            client_certificate: client_certificate.to_pem(),
            client_key: client_key.to_pem(),
        };
        let found = Kubeconfig::from_yaml(&kubeconfig.render()).map_err(|e| say(&e))?;
        Self::with(found, Some(server)).await
    }
}
