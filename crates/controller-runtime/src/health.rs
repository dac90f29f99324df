//! `/healthz` and `/readyz` over plain HTTP, for probes, which have no credentials.

use std::sync::Arc;

use http::{Request, StatusCode};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use windlass_http_server::{Answer, Arriving, DRAIN, Server, respond};

use crate::tasks::Tasks;

/// A function that returns an error text if the process is not ready.
pub(crate) type Ready = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// Serves until shutdown.
pub(crate) fn serve(listener: TcpListener, ready: Ready, tasks: &Tasks) {
    let server = Server {
        name: "health",
        listener,
        tls: None,
        drain: DRAIN,
    };
    let handler = move |request: Request<Arriving>| {
        let answer = answer(request.uri().path(), &ready);
        async move { answer }
    };
    tasks.spawn("health", server.serve(handler, CancellationToken::new()));
}

fn answer(path: &str, ready: &Ready) -> Answer {
    let (status, text) = match path.trim_end_matches('/') {
        "/healthz" | "/livez" => (StatusCode::OK, "ok".to_owned()),
        "/readyz" => match ready() {
            Ok(()) => (StatusCode::OK, "ok".to_owned()),
            Err(why) => (StatusCode::SERVICE_UNAVAILABLE, why),
        },
        _ => (StatusCode::NOT_FOUND, "not found".to_owned()),
    };
    respond(status, "text/plain", text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_by_path() {
        let check = |path: &str, ready: Result<(), String>, expect: u16| {
            let ready: Ready = Arc::new(move || ready.clone());
            assert_eq!(answer(path, &ready).status().as_u16(), expect, "{path}");
        };
        check("/healthz", Err("x".to_owned()), 200);
        check("/readyz", Ok(()), 200);
        check("/readyz/", Err("caches are not ready: Machine".to_owned()), 503);
        check("/metrics", Ok(()), 404);
        check("/", Ok(()), 404);
    }
}
