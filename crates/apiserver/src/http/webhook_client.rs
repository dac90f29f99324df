//! The client for webhooks: HTTPS, with persistent connections that requests to the same webhook share.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, LazyLock, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use http::{Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::RwLock;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::net::TcpStream;

use crate::http::body::BoxError;
use windlass_objects::metadata::text;

/// The size limit of a response.
const MAX_ANSWER: usize = 16 << 20;
/// How much of an error page is quoted.
const MAX_WORDS: usize = 2048;

/// The addresses of services that webhooks name, by namespace and name. A clone is another handle to the same table, which may
/// change at any time.
#[derive(Debug, Clone, Default)]
pub struct WebhookServices(Arc<RwLock<BTreeMap<String, SocketAddr>>>);

impl WebhookServices {
    /// Sets the address of a service.
    pub fn set(&self, namespace: &str, name: &str, address: SocketAddr) {
        self.0.write().insert(format!("{namespace}/{name}"), address);
    }

    /// Removes a service.
    pub fn remove(&self, namespace: &str, name: &str) {
        self.0.write().remove(&format!("{namespace}/{name}"));
    }

    fn get(&self, namespace: &str, name: &str) -> Option<SocketAddr> {
        self.0.read().get(&format!("{namespace}/{name}")).copied()
    }
}

/// Why a call has no response.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// The endpoint is unusable.
    NoClient(String),
    /// The connection failed, or the response is not usable.
    Lost(String),
}

impl Unanswered {
    /// The message for admission.
    pub(crate) fn of_admission(self) -> String {
        match self {
            Self::NoClient(why) => no_client(&why),
            Self::Lost(why) => format!("failed to call webhook: {why}"),
        }
    }

    /// The message for conversion.
    pub(crate) fn of_conversion(self) -> String {
        match self {
            Self::NoClient(why) => no_client(&why),
            Self::Lost(why) => why,
        }
    }
}

fn no_client(why: &str) -> String {
    format!("could not get REST client: {why}")
}

/// The address of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Address {
    Url(String),
    Service {
        namespace: String,
        name: String,
        port: u16,
        path: String,
    },
}

impl Address {
    /// The address in the `clientConfig` of a webhook.
    fn of(config: &Value) -> Self {
        let Some(service) = config.get("service").filter(|s| !s.is_null()) else {
            return Self::Url(text(config, "url").to_owned());
        };
        let port = service.get("port").and_then(Value::as_u64);
        Self::Service {
            namespace: text(service, "namespace").to_owned(),
            name: text(service, "name").to_owned(),
            port: port.and_then(|p| u16::try_from(p).ok()).unwrap_or(443),
            path: text(service, "path").to_owned(),
        }
    }

    /// The URL with the parameter `timeout`.
    fn url(&self, timeout: Duration) -> String {
        let seconds = timeout.as_secs();
        match self {
            Self::Url(url) => format!("{url}?timeout={seconds}s"),
            Self::Service {
                namespace,
                name,
                port,
                path,
            } => {
                let path = path.trim_start_matches('/');
                format!("https://{name}.{namespace}.svc:{port}/{path}?timeout={seconds}s")
            }
        }
    }
}

/// A webhook's address, its trusted authorities, and the connections to it.
pub(crate) struct Endpoint {
    address: Address,
    roots: Vec<u8>,
    client: OnceLock<Result<Http, String>>,
}

type Http = Client<HttpsConnector<Dial>, Full<Bytes>>;

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Endpoint").field(&self.address).finish()
    }
}

impl Endpoint {
    /// The endpoint of a `clientConfig`: a known one with its connections, or a new one.
    pub(crate) fn of<'k>(config: &Value, known: impl IntoIterator<Item = &'k Arc<Self>>) -> Arc<Self> {
        let address = Address::of(config);
        let roots = base64::engine::general_purpose::STANDARD
            .decode(text(config, "caBundle"))
            .unwrap_or_default();
        let same = known.into_iter().find(|e| e.address == address && e.roots == roots);
        same.map_or_else(
            || {
                Arc::new(Self {
                    address,
                    roots,
                    client: OnceLock::new(),
                })
            },
            Arc::clone,
        )
    }

    /// Sends a body, and returns the body of the response.
    pub(crate) async fn post(
        &self,
        services: &WebhookServices,
        timeout: Duration,
        body: Vec<u8>,
    ) -> Result<Bytes, Unanswered> {
        let url = self.address.url(timeout);
        let failed = |why: String| Unanswered::Lost(format!("Post {url:?}: {why}"));
        if let Address::Service { namespace, name, .. } = &self.address
            && services.get(namespace, name).is_none()
        {
            return Err(failed(format!("service {name:?} not found")));
        }
        let client = self
            .client
            .get_or_init(|| connect(&self.address, &self.roots, services))
            .as_ref()
            .map_err(|why| Unanswered::NoClient(why.clone()))?;
        let body = Bytes::from(body);
        let send = || async {
            let request = Request::post(&url)
                .header(header::CONTENT_TYPE, "application/json")
                .header(header::ACCEPT, "application/json")
                .header(header::USER_AGENT, "kube-apiserver-admission")
                .body(Full::new(body.clone()))
                .map_err(|e| failed(e.to_string()))?;
            Ok::<_, Unanswered>(client.request(request).await)
        };
        let exchange = async {
            let response = match send().await? {
                // The webhook's server may close a persistent connection just when it is used again.
                Err(error) if !error.is_connect() => send().await?,
                other => other,
            };
            let response = response.map_err(|e| failed(chain(&e)))?;
            let status = response.status();
            let kind = response.headers().get(header::CONTENT_TYPE);
            let is_text = kind.is_none_or(|kind| kind.as_bytes().starts_with(b"text/"));
            let body = Limited::new(response.into_body(), MAX_ANSWER)
                .collect()
                .await
                .map_err(|e| failed(format!("the answer could not be read: {}", chain(&*e))))?
                .to_bytes();
            match refusal(status, is_text, &body) {
                Some(why) => Err(Unanswered::Lost(why)),
                None => Ok(body),
            }
        };
        match tokio::time::timeout(timeout, exchange).await {
            Ok(answer) => answer,
            Err(_) => Err(failed("context deadline exceeded".to_owned())),
        }
    }
}

/// The error for a status other than success. The server's message is used if it is sent as text.
fn refusal(status: StatusCode, is_text: bool, body: &[u8]) -> Option<String> {
    if status.is_success() {
        return None;
    }
    let text = String::from_utf8_lossy(&body[..body.len().min(MAX_WORDS)]);
    let text = if is_text { text.trim() } else { "unknown" };
    Some(match status.as_u16() {
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 | 406 | 415 => text.to_owned(),
        404 => "the server could not find the requested resource".to_owned(),
        405 => "the server does not allow this method on the requested resource".to_owned(),
        409 => "the server reported a conflict".to_owned(),
        422 => "the server rejected our request due to an error in our request".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later".to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
                .to_owned()
        }
        500.. => format!("an error on the server ({text:?}) has prevented the request from succeeding"),
        code => format!("the server responded with the status code {code} but did not return more information"),
    })
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    // The error of a failed connection names the peer.
    let outer = error.to_string();
    let skip = outer == "client error (Connect)" && error.source().is_some();
    let mut words = if skip { String::new() } else { outer };
    let mut source = error.source();
    while let Some(inner) = source {
        let text = inner.to_string();
        if !words.contains(&text) {
            words = if words.is_empty() {
                text
            } else {
                format!("{words}: {text}")
            };
        }
        source = inner.source();
    }
    words
}

fn connect(address: &Address, roots: &[u8], services: &WebhookServices) -> Result<Http, String> {
    let roots = if roots.is_empty() {
        Arc::clone(&SYSTEM_ROOTS)
    } else {
        Arc::new(bundle(roots)?)
    };
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let dial = Dial {
        service: match address {
            Address::Url(_) => None,
            Address::Service { namespace, name, .. } => Some((namespace.clone(), name.clone())),
        },
        services: services.clone(),
    };
    let connector = hyper_rustls::HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_only()
        .enable_all_versions()
        .wrap_connector(dial);
    Ok(Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_keep_alive_interval(Duration::from_secs(30))
        .build(connector))
}

/// The authorities that the machine trusts; read once.
static SYSTEM_ROOTS: LazyLock<Arc<RootCertStore>> = LazyLock::new(|| {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "cannot read authorities that this machine trusts");
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    Arc::new(roots)
});

fn bundle(pem: &[u8]) -> Result<RootCertStore, String> {
    let unreadable = |why: &str| format!("unable to load root certificates: {why}");
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|e| unreadable(&e.to_string()))?;
        roots.add(certificate).map_err(|e| unreadable(&e.to_string()))?;
    }
    if roots.is_empty() {
        return Err(unreadable("unable to parse bytes as PEM block"));
    }
    Ok(roots)
}

/// Opens connections to the host of a URL, or to the current address of a service.
#[derive(Clone)]
struct Dial {
    service: Option<(String, String)>,
    services: WebhookServices,
}

impl tower::Service<Uri> for Dial {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let dial = self.clone();
        Box::pin(async move {
            let stream = if let Some((namespace, name)) = &dial.service {
                let found = dial.services.get(namespace, name);
                let address = found.ok_or_else(|| format!("service {name:?} not found"))?;
                connect_to(address, &address.to_string()).await?
            } else {
                let host = uri.host().ok_or("the URL has no host")?;
                let host = host.trim_start_matches('[').trim_end_matches(']');
                let port = uri.port_u16().unwrap_or(443);
                connect_to((host, port), &format!("{host}:{port}")).await?
            };
            Ok(TokioIo::new(stream))
        })
    }
}

async fn connect_to(to: impl tokio::net::ToSocketAddrs, shown: &str) -> Result<TcpStream, BoxError> {
    let stream = TcpStream::connect(to).await.map_err(|e| {
        let why = if e.kind() == std::io::ErrorKind::ConnectionRefused {
            "connection refused".to_owned()
        } else {
            e.to_string()
        };
        format!("dial tcp {shown}: connect: {why}")
    })?;
    let _ = stream.set_nodelay(true);
    Ok(stream)
}
