//! Metrics and the log level, for administrators.
//!
//! The server uses TLS, and asks the API server who sends a request, and whether the user may: `get` of the path `/metrics`, `put` of
//! `/debug/flags/v`. Insecure, it serves the metrics alone, to everybody.

mod access;
mod certificate;

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use windlass_controller_runtime::{Metrics, Repeats, Tasks};
use windlass_http_server::{Answer, Arriving, DRAIN, Server, respond};
use windlass_meta::{Clock, SystemClock};

use crate::ManagerError;
use access::{Access, NoAnswer, Verdict};
use certificate::SelfSigned;

/// The path of the metrics.
const METRICS: &str = "/metrics";
/// The path of the log level, as Kubernetes' components have it.
const LOG_LEVEL: &str = "/debug/flags/v";
/// The size limit of a log level.
const LARGEST_LEVEL: usize = 64;
/// The time limit for the arrival of a log level.
const ARRIVAL: Duration = Duration::from_secs(10);

/// Sets the log level. Returns what was done, or why it was not.
pub type SetLogLevel = Arc<dyn Fn(&str) -> Result<String, String> + Send + Sync>;

/// Options of the diagnostics server.
pub struct DiagnosticsOptions {
    /// The listener.
    pub listener: TcpListener,
    /// Plain HTTP without authentication, for the metrics only.
    pub insecure: bool,
    /// Sets the log level of the process.
    pub set_log_level: SetLogLevel,
}

impl std::fmt::Debug for DiagnosticsOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DiagnosticsOptions")
            .field("insecure", &self.insecure)
            .finish_non_exhaustive()
    }
}

struct Pages {
    /// What was logged of access that cannot be checked.
    said: Repeats,
    metrics: Metrics,
    set_log_level: SetLogLevel,
}

/// Serves diagnostics until the shutdown of `tasks`. The API server behind `client` decides about access.
pub fn start(
    options: DiagnosticsOptions,
    client: &kube::Client,
    metrics: &Metrics,
    tasks: &Tasks,
) -> Result<(), ManagerError> {
    let pages = Pages {
        said: Repeats::default(),
        metrics: metrics.clone(),
        set_log_level: options.set_log_level,
    };
    let (pages, listener, name) = (Arc::new(pages), options.listener, "diagnostics");
    let stop = CancellationToken::new();
    if options.insecure {
        let server = Server {
            name,
            listener,
            tls: None,
            drain: DRAIN,
        };
        let handler = move |request: Request<Arriving>| {
            let pages = Arc::clone(&pages);
            async move { pages.insecure(&request) }
        };
        tasks.spawn(name, server.serve(handler, stop));
        return Ok(());
    }
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let certificate = SelfSigned::new(clock).map_err(ManagerError::Server)?;
    let tls = windlass_http_server::tls(Arc::new(certificate));
    let tls = Some(tls.map_err(|error| ManagerError::Server(error.to_string()))?);
    let server = Server {
        name,
        listener,
        tls,
        drain: DRAIN,
    };
    let access = Arc::new(Access::new(client));
    let handler = move |request: Request<Arriving>| {
        let (pages, access) = (Arc::clone(&pages), Arc::clone(&access));
        async move { pages.secured(&access, request).await }
    };
    tasks.spawn(name, server.serve(handler, stop));
    Ok(())
}

fn words(status: StatusCode, text: &str) -> Answer {
    respond(status, "text/plain; charset=utf-8", format!("{text}\n"))
}

impl Pages {
    fn insecure<B>(&self, request: &Request<B>) -> Answer {
        match request.uri().path() {
            METRICS => self.measured(request.method()),
            _ => words(StatusCode::NOT_FOUND, "404 page not found"),
        }
    }

    async fn secured(&self, access: &Access, request: Request<Arriving>) -> Answer {
        match access.judge(&request).await {
            Ok(Verdict::Allowed) => {}
            Ok(Verdict::Unknown) => return words(StatusCode::UNAUTHORIZED, "Unauthorized"),
            Ok(Verdict::Refused(user)) => {
                let text = format!("Authorization denied for user {user}");
                return words(StatusCode::FORBIDDEN, &text);
            }
            Err(NoAnswer::Busy) => {
                return words(
                    StatusCode::TOO_MANY_REQUESTS,
                    "too many requests wait for a check of their access",
                );
            }
            Err(error) => {
                if let Some(repeated) = self.said.line("", &error.to_string(), Instant::now()) {
                    tracing::warn!(%error, repeated, "access to diagnostics cannot be checked");
                }
                return words(StatusCode::INTERNAL_SERVER_ERROR, "access cannot be checked now");
            }
        }
        match request.uri().path() {
            METRICS => self.measured(request.method()),
            LOG_LEVEL => self.log_level(request).await,
            _ => words(StatusCode::NOT_FOUND, "404 page not found"),
        }
    }

    fn measured(&self, method: &Method) -> Answer {
        if method != Method::GET && method != Method::HEAD {
            let mut answer = words(StatusCode::METHOD_NOT_ALLOWED, "metrics are read with GET");
            let headers = answer.headers_mut();
            headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return answer;
        }
        let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        respond(StatusCode::OK, kind, self.metrics.encode())
    }

    async fn log_level(&self, request: Request<Arriving>) -> Answer {
        if request.method() != Method::PUT {
            return words(StatusCode::NOT_ACCEPTABLE, "unsupported http method");
        }
        let body = Limited::new(request.into_body(), LARGEST_LEVEL).collect();
        let Ok(Ok(body)) = tokio::time::timeout(ARRIVAL, body).await else {
            return words(StatusCode::BAD_REQUEST, "a log level was expected, such as 4 or debug");
        };
        let body = body.to_bytes();
        match (self.set_log_level)(String::from_utf8_lossy(&body).trim()) {
            Ok(done) => words(StatusCode::OK, &done),
            Err(why) => words(StatusCode::BAD_REQUEST, &why),
        }
    }
}
