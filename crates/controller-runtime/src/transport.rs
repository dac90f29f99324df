//! Clients for API servers: few shared HTTP/2 connections per server, every answer counted, no hidden retries unless requested.

mod bounds;
mod lanes;
mod metered;

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Request, Response};
use kube::client::retry::RetryPolicy;
use kube::client::{Body, ConfigExt};
use secrecy::ExposeSecret as _;
use tower::retry::RetryLayer;
use tower::{BoxError, Layer, Service, ServiceBuilder, ServiceExt};
use windlass_http_client::{Connections, Options, Proxies, Reach, Tunnel};

use crate::metrics::{CountedHost, Metrics};
pub use bounds::{Bounds, Held, Limits, Policy, Refusal};
pub(crate) use bounds::{Share, Stock, estimate};
pub use lanes::WATCHES_PER_CONNECTION;
use lanes::{Lanes, is_watch};
use metered::Metered;

/// How often a patient client sends a request again.
pub const ASK_AGAIN: u32 = 10;
/// The shortest and the longest wait before a retry, if the server does not state one.
const PAUSE: std::ops::Range<Duration> = Duration::from_millis(50)..Duration::from_secs(5);

/// Counts answers as `rest_client_requests_total`, and answers to watches also as `windlass_watches_total`.
#[derive(Clone, Debug)]
pub struct CountRequests {
    host: Arc<CountedHost>,
}

impl CountRequests {
    /// Counts under this host name.
    pub fn new(metrics: &Metrics, host: impl Into<String>) -> Self {
        Self {
            host: Arc::new(metrics.host(host)),
        }
    }
}

impl<S> Layer<S> for CountRequests {
    type Service = Counting<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Counting {
            inner,
            host: self.host.clone(),
        }
    }
}

/// A service whose answers are counted.
#[derive(Clone, Debug)]
pub struct Counting<S> {
    inner: S,
    host: Arc<CountedHost>,
}

impl<S, B, R> Service<Request<B>> for Counting<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    R: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (method, watches) = (request.method().clone(), is_watch(&request));
        let host = self.host.clone();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            match &answer {
                Ok(answer) => {
                    host.request(answer.status().as_str(), method.as_str());
                    if watches {
                        host.watch();
                    }
                }
                Err(_) => host.request("<error>", method.as_str()),
            }
            answer
        })
    }
}

/// A client over a service in this process, such as the embedded API server.
pub fn in_process<S, B>(service: S, metrics: &Metrics) -> kube::Client
where
    S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError> + Send + 'static,
    B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let service = ServiceBuilder::new()
        .layer(CountRequests::new(metrics, "in-process"))
        .service(service);
    kube::Client::new(service, "default")
}

/// How many unread bytes of one answer a server may send.
const STREAM_WINDOW: u32 = 1 << 20;
/// The same for a whole connection. Unread answers must not keep others from coming.
const CONNECTION_WINDOW: u32 = 64 << 20;

/// A client for an API server over the network. If the server supports HTTP/2, all requests share one connection and watches have
/// others, [`WATCHES_PER_CONNECTION`] each. Refusals are answers: controllers retry by themselves.
pub fn connect(config: &kube::Config, metrics: &Metrics) -> Result<kube::Client, kube::Error> {
    client(config, metrics, true, None, None)
}

/// [`connect`] for callers that ask only once, such as an installer. A request that the server cannot answer for now (429, 503,
/// 504) is sent again after the time that the server states, up to [`ASK_AGAIN`] times.
pub fn connect_patiently(config: &kube::Config, metrics: &Metrics) -> Result<kube::Client, kube::Error> {
    let policy = RetryPolicy::new(PAUSE.start, PAUSE.end, ASK_AGAIN, true);
    let policy = policy.map_err(|e| kube::Error::Service(e.into()))?;
    client(config, metrics, true, Some(policy), None)
}

/// [`connect`] to the server of a workload cluster, within bounds.
pub fn connect_bounded(config: &kube::Config, metrics: &Metrics, bounds: &Bounds) -> Result<kube::Client, kube::Error> {
    client(config, metrics, true, None, Some(bounds.clone()))
}

/// The same for upgraded connections (port-forward, exec), which need HTTP/1.1. What they carry after the upgrade is not counted.
pub fn connect_http1(config: &kube::Config, metrics: &Metrics, bounds: &Bounds) -> Result<kube::Client, kube::Error> {
    client(config, metrics, false, None, Some(bounds.clone()))
}

fn server_name(name: &str) -> kube::Result<rustls::pki_types::ServerName<'static>> {
    rustls::pki_types::ServerName::try_from(name.to_owned()).map_err(|e| kube::Error::Service(e.into()))
}

fn client(
    config: &kube::Config,
    metrics: &Metrics,
    http2: bool,
    policy: Option<RetryPolicy>,
    bounds: Option<Bounds>,
) -> kube::Result<kube::Client> {
    let options = Options {
        plain: true,
        only_http1: !http2,
        server_name: config.tls_server_name.as_deref().map(server_name).transpose()?,
        windows: Some((STREAM_WINDOW, CONNECTION_WINDOW)),
        closes_idle: false,
    };
    let lookup = |name: &str| std::env::var(name).ok();
    let proxy = config.proxy_url.as_ref();
    let proxy = proxy.filter(|proxy| !(is_local(&config.cluster_url) && is_of_environment(proxy, lookup)));
    // A proxy of the environment that cannot be used is an error of the connections that would use it.
    let environment = proxy.map_or_else(|| Ok(Proxies::none()), |_| Proxies::from_env(lookup));
    let environment = environment.map_err(|e| kube::Error::Service(e.into()))?;
    let reach = bounds
        .as_ref()
        .map_or_else(Reach::anywhere, |bounds| bounds.reach().clone());
    let connector = Tunnel::new(&config.cluster_url, proxy, &environment, reach, config.connect_timeout);
    let connector = connector.map_err(|e| kube::Error::Service(e.into()))?;
    let connections = Connections::new(connector, config.rustls_client_config()?, options);
    let http = Metered {
        inner: Lanes::new(move || connections.pool::<Body>()),
        bounds,
    };
    // The layer panics at such a token.
    if let Some(token) = &config.auth_info.token
        && http::HeaderValue::try_from(format!("Bearer {}", token.expose_secret())).is_err()
    {
        let why = "the token has a character that HTTP does not allow, such as the end of a line";
        return Err(kube::Error::Service(why.into()));
    }
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        // The impersonated user of a kubeconfig.
        .layer(config.extra_headers_layer()?)
        .option_layer(policy.map(RetryLayer::new))
        .map_err(BoxError::from)
        .layer(CountRequests::new(metrics, host_of(&config.cluster_url)))
        .service(http);
    Ok(kube::Client::new(
        service.map_err(BoxError::from),
        config.default_namespace.clone(),
    ))
}

/// Host and port of a server, as metrics name it: without the user and the password that a URL may have.
pub fn host_of(server: &http::Uri) -> String {
    let Some(authority) = server.authority() else {
        return String::new();
    };
    match authority.port() {
        Some(port) => format!("{}:{port}", authority.host()),
        None => authority.host().to_owned(),
    }
}

/// Whether a server is on this host. No proxy of the environment is asked for it.
fn is_local(server: &http::Uri) -> bool {
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
    let address: Option<std::net::IpAddr> = host.parse().ok();
    host == "localhost" || address.is_some_and(|address| address.is_loopback())
}

/// Whether a proxy is one of the environment, with which `kube` fills a kubeconfig that has none.
fn is_of_environment(proxy: &http::Uri, lookup: impl Fn(&str) -> Option<String>) -> bool {
    let names = [
        "HTTPS_PROXY",
        "https_proxy",
        "HTTP_PROXY",
        "http_proxy",
        "ALL_PROXY",
        "all_proxy",
    ];
    let mut of_environment = names.into_iter().filter_map(lookup);
    of_environment.any(|text| text.parse::<http::Uri>().is_ok_and(|uri| uri == *proxy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_name_no_user() {
        let host = |text: &str| host_of(&text.parse().unwrap());
        assert_eq!(host("http://user:password@127.0.0.1:28001/x"), "127.0.0.1:28001");
        assert_eq!(host("https://[::1]:6443"), "[::1]:6443");
        assert_eq!(host("https://example.com"), "example.com");
    }

    #[tokio::test]
    async fn a_token_that_cannot_be_sent_is_refused() {
        let user = serde_json::json!({"token": "a\nb"});
        let mut config = kube::Config::new("https://127.0.0.1:1".parse().unwrap());
        config.auth_info = serde_json::from_value(user).unwrap();
        let refused = connect(&config, &Metrics::new()).err().unwrap().to_string();
        assert!(refused.contains("the token has a character"), "{refused}");
    }

    #[test]
    fn servers_on_this_host_need_no_proxy_of_the_environment() {
        let lookup = |name: &str| (name == "HTTPS_PROXY").then(|| "socks5://proxy.example.com:1080".to_owned());
        let uri = |text: &str| text.parse::<http::Uri>().unwrap();
        assert!(is_of_environment(&uri("socks5://proxy.example.com:1080"), lookup));
        assert!(
            !is_of_environment(&uri("http://other.example.com:3128"), lookup),
            "it is of the kubeconfig"
        );
        for (server, local) in [
            ("https://127.0.0.1:6443", true),
            ("https://[::1]:6443", true),
            ("https://localhost:6443", true),
            ("https://10.0.0.1:6443", false),
            ("https://localhost.example.com", false),
        ] {
            assert_eq!(is_local(&uri(server)), local, "{server}");
        }
    }
}
