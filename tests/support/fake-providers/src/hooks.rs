//! A small HTTPS server that acts as a webhook.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use jiff::Timestamp;
use parking_lot::Mutex;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use windlass_pki::{CaRequest, CertificateAuthority, KeyAlgorithm, LeafRequest, PrivateKey};

/// The response of a webhook.
pub enum Say {
    /// A response; its uid is filled in if it has none.
    Review(Value),
    /// A whole body.
    Raw(u16, String),
    /// The result of a future.
    Later(BoxFuture<'static, Self>),
}

impl Say {
    /// Allowed.
    pub fn yes() -> Self {
        Self::Review(json!({"allowed": true}))
    }

    /// Refused, with this message.
    pub fn no(message: &str) -> Self {
        Self::Review(json!({"allowed": false, "status": {"message": message}}))
    }

    /// No response, for longer than any timeout.
    pub fn nothing() -> Self {
        Self::Later(Box::pin(std::future::pending()))
    }

    /// Allowed, with a patch.
    #[expect(clippy::needless_pass_by_value, reason = "a test reads best with values")]
    pub fn patch(steps: Value) -> Self {
        let patch = base64::engine::general_purpose::STANDARD.encode(steps.to_string());
        Self::Review(json!({"allowed": true, "patchType": "JSONPatch", "patch": patch}))
    }
}

type Answer = dyn Fn(&str, &Value) -> Say + Send + Sync;

/// A running server. It ends with the runtime that it was started on.
pub struct HookServer {
    /// Its address on loopback.
    pub address: SocketAddr,
    /// Base64 of the authority's certificate.
    pub bundle: String,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
    /// The number of connections so far.
    pub connections: Arc<AtomicUsize>,
}

impl std::fmt::Debug for HookServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HookServer")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl HookServer {
    /// Starts a server that answers reviews by path and request.
    pub async fn start(answer: impl Fn(&str, &Value) -> Say + Send + Sync + 'static) -> Self {
        Self::start_with(&[b"h2", b"http/1.1"], usize::MAX, answer).await
    }

    /// Starts a server that speaks only these protocols, and closes a connection after this many requests.
    pub async fn start_with(
        protocols: &[&[u8]],
        patience: usize,
        answer: impl Fn(&str, &Value) -> Say + Send + Sync + 'static,
    ) -> Self {
        Self::serve(protocols, patience, Arc::new(answer)).await
    }

    /// Not generic: an HTTP server for each closure takes the compiler long.
    async fn serve(protocols: &[&[u8]], patience: usize, answer: Arc<Answer>) -> Self {
        let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).expect("a key can be made");
        let authority = CertificateAuthority::self_signed(&CaRequest::new("hooks"), key, Timestamp::now())
            .expect("an authority signs itself");
        let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).expect("a key can be made");
        let names = vec!["127.0.0.1".to_owned(), "hooks.system.svc".to_owned()];
        let certificate = authority
            .issue(&LeafRequest::server("hooks", names), &key, Timestamp::now())
            .expect("the authority issues certificates");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider has default versions")
            .with_no_client_auth()
            .with_single_cert(
                vec![CertificateDer::from(certificate.der().to_vec())],
                PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.to_pkcs8_der())),
            )
            .expect("key and certificate fit");
        tls.alpn_protocols = protocols.iter().map(|p| p.to_vec()).collect();
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(tls));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a free port");
        let out = Self {
            address: listener.local_addr().expect("a listener has an address"),
            bundle: base64::engine::general_purpose::STANDARD.encode(authority.certificate().to_pem()),
            asked: Arc::default(),
            connections: Arc::default(),
        };
        let (asked, connections) = (Arc::clone(&out.asked), Arc::clone(&out.connections));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::Relaxed);
                let (answer, asked, acceptor) = (Arc::clone(&answer), Arc::clone(&asked), acceptor.clone());
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else {
                        return;
                    };
                    let count = AtomicUsize::new(0);
                    let service = service_fn(move |request| {
                        let tired = count.fetch_add(1, Ordering::Relaxed) >= patience;
                        let (answer, asked) = (Arc::clone(&answer), Arc::clone(&asked));
                        async move {
                            if tired {
                                return Err(std::io::Error::other("no more"));
                            }
                            respond(answer, asked, request).await.map_err(std::io::Error::other)
                        }
                    });
                    let _ = auto::Builder::new(TokioExecutor::new())
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        out
    }

    /// A `clientConfig` by URL.
    pub fn config(&self, path: &str) -> Value {
        json!({"url": format!("https://{}{path}", self.address), "caBundle": self.bundle})
    }

    /// The requests so far, in the order in which they came.
    pub fn requests(&self) -> Vec<Value> {
        self.asked
            .lock()
            .iter()
            .map(|(_, review)| review["request"].clone())
            .collect()
    }

    /// Paths and queries of the requests so far.
    pub fn paths(&self) -> Vec<String> {
        self.asked.lock().iter().map(|(path, _)| path.clone()).collect()
    }

    /// The one request since this was last asked.
    pub fn only(&self) -> Value {
        let mut asked = self.asked.lock();
        assert_eq!(asked.len(), 1, "one request is expected, not {asked:?}");
        asked.remove(0).1["request"].clone()
    }

    /// The reviews since this was last asked.
    pub fn take(&self) -> Vec<Value> {
        std::mem::take(&mut *self.asked.lock())
            .into_iter()
            .map(|(_, review)| review)
            .collect()
    }
}

async fn respond(
    answer: Arc<Answer>,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    assert_eq!(request.method(), "POST");
    assert_eq!(request.headers()["content-type"], "application/json");
    let target = request
        .uri()
        .path_and_query()
        .expect("a request has a path")
        .to_string();
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await?.to_bytes();
    let review: Value = serde_json::from_slice(&body).expect("a review is JSON");
    asked.lock().push((target, review.clone()));
    let reply = |code: u16, text: String| {
        let mut response = Response::new(Full::from(text));
        *response.status_mut() = http::StatusCode::from_u16(code).expect("a status code");
        Ok(response)
    };
    let mut said = answer(&path, &review["request"]);
    while let Say::Later(later) = said {
        said = later.await;
    }
    match said {
        Say::Raw(code, text) => reply(code, text),
        Say::Review(mut response) => {
            if response.get("uid").is_none() {
                response["uid"] = review["request"]["uid"].clone();
            }
            let whole = json!({"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response});
            reply(200, whole.to_string())
        }
        Say::Later(_) => unreachable!("awaited above"),
    }
}
