//! `/healthz`, `/readyz` and `/metrics` over plain HTTP.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::net::TcpListener;

use crate::metrics::Metrics;
use crate::tasks::Tasks;

/// A function that returns an error text if the process is not ready.
pub(crate) type Ready = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// Serves until shutdown.
pub(crate) fn serve(listener: TcpListener, metrics: Metrics, ready: Ready, tasks: &Tasks) {
    let connections = tasks.clone();
    tasks.spawn("health", async move {
        loop {
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::debug!(%error, "cannot accept a connection");
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                    continue;
                }
            };
            let (metrics, ready) = (metrics.clone(), ready.clone());
            connections.spawn("health connection", async move {
                let service = service_fn(move |request: Request<Incoming>| {
                    let answer = answer(request.uri().path(), &metrics, &ready);
                    async move { Ok::<_, Infallible>(answer) }
                });
                let served = Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
                if let Err(error) = served {
                    tracing::debug!(%error, "health connection ended");
                }
            });
        }
    });
}

fn answer(path: &str, metrics: &Metrics, ready: &Ready) -> Response<Full<Bytes>> {
    let (status, kind, text) = match path.trim_end_matches('/') {
        "/healthz" | "/livez" => (StatusCode::OK, "text/plain", "ok".to_owned()),
        "/readyz" => match ready() {
            Ok(()) => (StatusCode::OK, "text/plain", "ok".to_owned()),
            Err(why) => (StatusCode::SERVICE_UNAVAILABLE, "text/plain", why),
        },
        "/metrics" => (
            StatusCode::OK,
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            metrics.encode(),
        ),
        _ => (StatusCode::NOT_FOUND, "text/plain", "not found".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_by_path() {
        let metrics = Metrics::new();
        let check = |path: &str, ready: Result<(), String>, expect: u16| {
            let ready: Ready = Arc::new(move || ready.clone());
            assert_eq!(answer(path, &metrics, &ready).status().as_u16(), expect, "{path}");
        };
        check("/healthz", Err("x".to_owned()), 200);
        check("/readyz", Ok(()), 200);
        check("/readyz/", Err("caches are not ready: Machine".to_owned()), 503);
        check("/metrics", Ok(()), 200);
        check("/", Ok(()), 404);
    }
}
