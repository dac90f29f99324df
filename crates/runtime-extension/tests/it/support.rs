//! A running extension and its client.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use bytes::Bytes;
use http::Method;
use jiff::Timestamp;
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use windlass_http_client::{Answer, Client, Error, Request, Settings, Url};
use windlass_pki::{CaRequest, CertificateAuthority, KeyAlgorithm, LeafRequest, PrivateKey};
use windlass_runtime_extension::{CancellationToken, Extension, tls};

/// An authority that clients can trust.
pub(crate) fn authority() -> CertificateAuthority {
    let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
    CertificateAuthority::self_signed(&CaRequest::new("test"), key, Timestamp::now()).unwrap()
}

/// Writes a certificate of the authority as cert-manager does: one file after the other.
pub(crate) fn mount(authority: &CertificateAuthority, folder: &Path) {
    let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
    let request = LeafRequest::server("extension", vec!["127.0.0.1".to_owned()]);
    let certificate = authority.issue(&request, &key, Timestamp::now()).unwrap();
    fs::write(folder.join("tls.crt"), certificate.to_pem()).unwrap();
    fs::write(folder.join("tls.key"), key.to_pem()).unwrap();
}

/// A client that sends requests to one address.
#[derive(Clone)]
pub(crate) struct Caller {
    client: Client,
    address: SocketAddr,
}

impl Caller {
    pub(crate) fn trusting(authority: &CertificateAuthority, address: SocketAddr) -> Self {
        let settings = Settings {
            authorities: vec![authority.certificate().to_pem()],
            ..Settings::default()
        };
        Self {
            client: Client::new(settings).unwrap(),
            address,
        }
    }

    pub(crate) async fn send(&self, method: Method, path: &str, body: impl Into<Bytes>) -> Result<Answer, Error> {
        let url = Url::parse(&format!("https://{}{path}", self.address)).unwrap();
        let request = Request {
            method,
            url: &url,
            accept: "application/json",
            // Cluster API does not name the media type.
            content_type: None,
            authorization: None,
            known_tag: None,
            body: body.into(),
        };
        self.client.send(&request).await
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<Bytes>) -> Answer {
        self.send(Method::POST, path, body).await.unwrap()
    }

    /// The status and the text of an answer.
    pub(crate) async fn words(&self, path: &str, body: impl Into<Bytes>) -> (u16, String) {
        text(&self.post(path, body).await)
    }
}

/// The status and the text of an answer.
pub(crate) fn text(answer: &Answer) -> (u16, String) {
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    (answer.status.as_u16(), text)
}

/// The JSON of an answer that has the status 200.
pub(crate) fn json(answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    serde_json::from_slice(&answer.body).unwrap()
}

/// A running extension.
pub(crate) struct Served {
    pub(crate) caller: Caller,
    pub(crate) address: SocketAddr,
    pub(crate) certificates: TempDir,
    pub(crate) stop: CancellationToken,
    pub(crate) task: JoinHandle<()>,
}

impl Served {
    pub(crate) async fn start(extension: Extension) -> Self {
        let certificates = tempfile::tempdir().unwrap();
        let authority = authority();
        mount(&authority, certificates.path());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let tls = tls(certificates.path()).unwrap();
        let task = tokio::spawn(extension.serve(listener, tls, stop.clone()));
        Self {
            caller: Caller::trusting(&authority, address),
            address,
            certificates,
            stop,
            task,
        }
    }
}
