//! The client for webhooks: HTTPS, with persistent connections that requests to the same webhook share.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::Full;
use parking_lot::RwLock;
use rustls::RootCertStore;
use serde_json::Value;
use windlass_http_client::{Connections, Dial, Options, Pool, Target, causes, read_all, tls};
use windlass_objects::metadata::text;

use crate::http::heavy;

/// The size limit of a response, and of one to a small request. Conversions answer with as much as they are sent, and patches replace an
/// object at most. When it is decoded, a response takes many times its size.
const MAX_ANSWER: usize = 16 << 20;
const MAX_SMALL_ANSWER: usize = 4 << 20;
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

type Http = Pool<Dial, Full<Bytes>>;

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
        let exchange = exchange(client.clone(), url.clone(), Bytes::from(body));
        // Its time runs also while the request waits for a turn.
        match heavy::elsewhere(Box::pin(tokio::time::timeout(timeout, exchange))).await {
            Ok(answer) => answer,
            Err(_) => Err(failed("context deadline exceeded".to_owned())),
        }
    }
}

async fn exchange(client: Http, url: String, body: Bytes) -> Result<Bytes, Unanswered> {
    let failed = |why: String| Unanswered::Lost(format!("Post {url:?}: {why}"));
    let send = || async {
        let request = Request::post(&url)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, "kube-apiserver-admission")
            .body(Full::new(body.clone()))
            .map_err(|e| failed(e.to_string()))?;
        Ok::<_, Unanswered>(client.request(request).await)
    };
    let response = match send().await? {
        // The webhook's server may close a persistent connection just when it is used again.
        Err(error) if !error.is_connect() => send().await?,
        other => other,
    };
    let response = response.map_err(|e| failed(causes(&e)))?;
    let status = response.status();
    let kind = response.headers().get(header::CONTENT_TYPE);
    let is_text = kind.is_none_or(|kind| kind.as_bytes().starts_with(b"text/"));
    let most = (MAX_SMALL_ANSWER + 4 * body.len()).min(MAX_ANSWER);
    let body = read_all(response.into_body(), most)
        .await
        .map_err(|e| failed(format!("the answer could not be read: {}", causes(&*e))))?;
    match refusal(status, is_text, &body) {
        Some(why) => Err(Unanswered::Lost(why)),
        None => Ok(body),
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

fn connect(address: &Address, roots: &[u8], services: &WebhookServices) -> Result<Http, String> {
    let roots = if roots.is_empty() {
        tls::system_roots()
    } else {
        Arc::new(bundle(roots)?)
    };
    let config = tls::trusting(roots).map_err(|e| e.to_string())?.with_no_client_auth();
    let dial = match address {
        Address::Url(_) => Dial::new(|uri| Target::of(uri).ok_or_else(|| "the URL has no host".into())),
        Address::Service { namespace, name, .. } => {
            let (namespace, name, services) = (namespace.clone(), name.clone(), services.clone());
            Dial::new(move |_| {
                let found = services.get(&namespace, &name).map(Target::Address);
                found.ok_or_else(|| format!("service {name:?} not found").into())
            })
        }
    };
    let options = Options {
        closes_idle: true,
        ..Options::default()
    };
    Ok(Connections::new(dial, config, options).pool())
}

fn bundle(pem: &[u8]) -> Result<RootCertStore, String> {
    tls::roots(pem).map_err(|error| {
        let why = match error {
            tls::BadAuthorities::None => "unable to parse bytes as PEM block".to_owned(),
            other => other.to_string(),
        };
        format!("unable to load root certificates: {why}")
    })
}
