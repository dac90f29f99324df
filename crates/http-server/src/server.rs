//! Accepts connections and serves requests until it is stopped.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rustls::ServerConfig;
use rustls::server::ResolvesServerCert;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use windlass_http_client::tls::provider;
use windlass_meta::repeats::Repeats;

use crate::arriving::Arriving;
use crate::connections::{Connection, Connections};

/// The usual time for requests to finish after a shutdown.
pub const DRAIN: Duration = Duration::from_secs(5);
const MAX_STREAMS: u32 = 100;

/// A response with its whole body.
pub type Answer = Response<Full<Bytes>>;

/// A response with this status, media type and text.
pub fn respond(status: StatusCode, kind: &'static str, text: String) -> Answer {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// The TLS configuration of a server whose certificates come from `certificates`.
pub fn tls(certificates: Arc<dyn ResolvesServerCert>) -> Result<Arc<ServerConfig>, rustls::Error> {
    let builder = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
    let mut config = builder.with_no_client_auth().with_cert_resolver(certificates);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// A server that is about to start.
#[derive(Debug)]
pub struct Server {
    /// What it serves, for logs.
    pub name: &'static str,
    /// Its listener.
    pub listener: TcpListener,
    /// Its TLS configuration. Without one, it serves plain HTTP.
    pub tls: Option<Arc<ServerConfig>>,
    /// How long running requests may take after it was stopped, such as [`DRAIN`]. Then they are cut off.
    pub drain: Duration,
}

impl Server {
    /// Serves until it is stopped. Running requests are completed, if they end in time. The handler limits the time of a request by itself.
    pub async fn serve<H, F>(self, handler: H, stop: CancellationToken)
    where
        H: Fn(Request<Arriving>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Answer> + Send + 'static,
    {
        let (name, acceptor, drain) = (self.name, self.tls.map(TlsAcceptor::from), self.drain);
        let (open, said) = (Arc::new(Connections::default()), Repeats::default());
        let mut connections = tokio::task::JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = stop.cancelled() => break,
            };
            while connections.try_join_next().is_some() {}
            let (stream, peer) = match accepted {
                Ok((stream, peer)) => (stream, peer.ip()),
                Err(error) => {
                    // Out of file descriptors, or the connection was closed before it was accepted.
                    if let Some(repeated) = said.line(name, &error.to_string(), std::time::Instant::now()) {
                        tracing::warn!(%error, repeated, "cannot accept a connection of {name}");
                    }
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let Some(place) = open.add(peer) else {
                tracing::debug!(%peer, "a connection of {name} is refused: too many are at work");
                continue;
            };
            let _ = stream.set_nodelay(true);
            let (acceptor, handler, stop) = (acceptor.clone(), handler.clone(), stop.clone());
            connections.spawn(async move {
                let Some(acceptor) = acceptor else {
                    return serve_stream(name, stream, place.connection(), handler, (stop, drain)).await;
                };
                let done = tokio::select! {
                    done = acceptor.accept(stream) => done,
                    () = place.connection().is_over() => return,
                    // No request was received yet.
                    () = stop.cancelled() => return,
                };
                match done {
                    Ok(stream) => serve_stream(name, stream, place.connection(), handler, (stop, drain)).await,
                    Err(error) => tracing::debug!(%error, "TLS handshake of {name} failed"),
                }
            });
        }
        drop(self.listener);
        let _ = tokio::time::timeout(drain, async { while connections.join_next().await.is_some() {} }).await;
    }
}

async fn serve_stream<S, H, F>(
    name: &'static str,
    stream: S,
    open: &Arc<Connection>,
    handler: H,
    (stop, drain): (CancellationToken, Duration),
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Fn(Request<Arriving>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Answer> + Send + 'static,
{
    let of_requests = Arc::clone(open);
    let service = service_fn(move |request: Request<Incoming>| {
        let running = Arc::new(of_requests.begin());
        let answer = handler(request.map(|body| Arriving::new(body, Arc::clone(&running))));
        async move {
            let response = answer.await;
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
                tracing::debug!(error, "connection of {name} failed");
            }
            return;
        }
        // Nothing of it runs, and waiting for its end would let connections pile up.
        () = open.is_replaced() => return,
        () = open.is_idle() => {}
        () = stop.cancelled() => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = tokio::time::timeout(drain, connection).await;
}
