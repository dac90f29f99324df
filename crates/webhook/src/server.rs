//! The HTTPS server.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use k8s_openapi::api::authentication::v1::UserInfo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::certified::{Served, provider};
use crate::connections::{Connection, Connections};
use crate::error::WebhookError;
use crate::rights::{Reference, Refusal};
use crate::rule::Rule;
use crate::{review, reviewer};

/// The time limit for receiving a request: as long as API servers wait for the response.
const ARRIVAL: Duration = Duration::from_secs(10);
/// The time for requests to finish after a shutdown.
const DRAIN: Duration = Duration::from_secs(5);
/// The size limit of a body. A review has an object twice, and API servers accept objects of 3 MiB.
const MAX_BODY: usize = 8 << 20;
const MAX_STREAMS: u32 = 100;

/// Rules by their paths, and the API server that knows the rights of users.
pub(crate) struct Routes {
    rules: BTreeMap<String, Rule>,
    client: Option<kube::Client>,
}

pub(crate) fn routes(rules: &[Rule], client: Option<kube::Client>) -> Routes {
    let paths = |rule: &Rule| {
        let paths = rule.versions.iter().map(|version| rule.path(version));
        paths.collect::<Vec<_>>()
    };
    let rules = rules
        .iter()
        .flat_map(|rule| paths(rule).into_iter().map(move |path| (path, rule.clone())));
    Routes {
        rules: rules.collect(),
        client,
    }
}

/// The TLS configuration.
pub(crate) fn tls(served: &Served) -> Result<Arc<rustls::ServerConfig>, WebhookError> {
    let builder = rustls::ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| WebhookError::Tls(error.to_string()))?;
    let mut config = builder
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(served.clone()));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Serves until it is stopped. Running requests are completed.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Arc<rustls::ServerConfig>,
    routes: Routes,
    stop: CancellationToken,
) {
    let acceptor = TlsAcceptor::from(tls);
    let routes = Arc::new(routes);
    let open = Arc::new(Connections::default());
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        while connections.try_join_next().is_some() {}
        let (stream, peer) = match accepted {
            Ok((stream, peer)) => (stream, peer.ip()),
            Err(error) => {
                // Out of file descriptors, or the connection was closed before it was accepted.
                tracing::warn!(%error, "cannot accept a connection of a webhook");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let Some(place) = open.add(peer) else {
            tracing::debug!(%peer, "a connection of a webhook is refused: too many are at work");
            continue;
        };
        let _ = stream.set_nodelay(true);
        let (acceptor, routes, stop) = (acceptor.clone(), Arc::clone(&routes), stop.clone());
        connections.spawn(async move {
            let done = tokio::select! {
                done = acceptor.accept(stream) => done,
                () = place.connection.is_over() => return,
                // No request was received yet.
                () = stop.cancelled() => return,
            };
            match done {
                Ok(stream) => serve_stream(stream, &place.connection, routes, stop).await,
                Err(error) => tracing::debug!(%error, "TLS handshake failed"),
            }
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(DRAIN, async { while connections.join_next().await.is_some() {} }).await;
}

async fn serve_stream<S>(stream: S, open: &Arc<Connection>, routes: Arc<Routes>, stop: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let of_requests = Arc::clone(open);
    let service = service_fn(move |request: Request<Incoming>| {
        let (running, routes) = (of_requests.begin(), Arc::clone(&routes));
        async move {
            let response = answer(&routes, request).await;
            drop(running);
            Ok::<_, Infallible>(response)
        }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // What is idle ends by itself.
    builder.http1().timer(TokioTimer::new()).header_read_timeout(None);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .keep_alive_interval(Duration::from_secs(30));
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        result = connection.as_mut() => {
            if let Err(error) = result {
                tracing::debug!(error, "connection of a webhook failed");
            }
            return;
        }
        // Nothing of it runs, and waiting for its end would let connections pile up.
        () = open.is_replaced() => return,
        () = open.is_idle() => {}
        () = stop.cancelled() => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = tokio::time::timeout(DRAIN, connection).await;
}

async fn answer<B>(routes: &Routes, request: Request<B>) -> Response<Full<Bytes>>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let Some(rule) = routes.rules.get(request.uri().path()) else {
        return words(StatusCode::NOT_FOUND, "there is no webhook at this path");
    };
    if request.method() != Method::POST {
        let mut answer = words(StatusCode::METHOD_NOT_ALLOWED, "a webhook takes POST only");
        answer
            .headers_mut()
            .insert(header::ALLOW, header::HeaderValue::from_static("POST"));
        return answer;
    }
    let kind = request
        .headers()
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let media_type = kind.and_then(|kind| kind.split(';').next()).map(str::trim);
    if !media_type.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json")) {
        return words(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be application/json");
    }
    let gathered = tokio::time::timeout(ARRIVAL, Limited::new(request.into_body(), MAX_BODY).collect()).await;
    let body = match gathered {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let text = format!("the body is larger than {MAX_BODY} bytes");
            return words(StatusCode::PAYLOAD_TOO_LARGE, &text);
        }
        Ok(Err(_)) => return words(StatusCode::BAD_REQUEST, "the body did not arrive"),
        Err(_) => return words(StatusCode::REQUEST_TIMEOUT, "the body took too long to arrive"),
    };
    match review::judge(rule, &body) {
        Ok(judged) => {
            let rights = match judged.reference() {
                None => Ok(()),
                Some((reference, user)) => rights(routes.client.as_ref(), reference, user).await,
            };
            let review = judged.response(rule, rights);
            respond(StatusCode::OK, "application/json", review.to_string())
        }
        Err(why) => {
            tracing::warn!(kind = rule.kind, why, "the webhook cannot decode an AdmissionReview");
            words(StatusCode::BAD_REQUEST, &why)
        }
    }
}

async fn rights(client: Option<&kube::Client>, reference: &Reference, user: &UserInfo) -> Result<(), Refusal> {
    let unknown = || Refusal::Unknown("no API server can be asked which rights the user has".to_owned());
    reviewer::ask(client.ok_or_else(unknown)?, user, reference).await
}

fn words(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    respond(status, "text/plain; charset=utf-8", format!("{text}\n"))
}

fn respond(status: StatusCode, kind: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let kind = header::HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::rule;

    const PATH: &str = "/validate-infra-example-com-v1-testcluster";

    #[tokio::test]
    async fn what_is_no_review_gets_words() {
        let routes = routes(&[rule()], None);
        let check = async |method: &str, path: &str, kind: &str, body: &str, expect: u16, text: &str| {
            let body = Full::new(Bytes::from(body.to_owned()));
            let request = Request::builder()
                .method(method)
                .uri(path)
                .header(header::CONTENT_TYPE, kind);
            let answered = answer(&routes, request.body(body).unwrap()).await;
            assert_eq!(answered.status().as_u16(), expect, "{method} {path}");
            let said = answered.into_body().collect().await.unwrap().to_bytes();
            let said = String::from_utf8(said.to_vec()).unwrap();
            assert!(said.contains(text), "{said:?}");
        };
        let json = "application/json";
        check("POST", "/", json, "{}", 404, "no webhook").await;
        check(
            "POST",
            "/validate-infra-example-com-v2-testcluster",
            json,
            "{}",
            404,
            "",
        )
        .await;
        check("GET", PATH, json, "", 405, "POST").await;
        check("POST", PATH, "text/yaml", "{}", 415, "application/json").await;
        check("POST", PATH, json, "{", 400, "no JSON").await;
        check(
            "POST",
            PATH,
            "application/json; charset=utf-8",
            "{}",
            400,
            "admission.k8s.io/v1",
        )
        .await;
        check("POST", PATH, json, &" ".repeat(MAX_BODY + 1), 413, "larger").await;
        let review = serde_json::json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "1", "operation": "UPDATE", "kind": {"group": "infra.example.com", "kind": "TestCluster"},
                "object": {"spec": {"size": 1}}, "oldObject": {"spec": {"size": 2}},
            },
        });
        check("POST", PATH, json, &review.to_string(), 200, "\"allowed\":false").await;
        let other = "/validate-infra-example-com-v1beta1-testcluster";
        check("POST", other, json, &review.to_string(), 200, "\"allowed\":false").await;
    }
}
