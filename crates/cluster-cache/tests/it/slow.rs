//! A workload cluster's API server that sends its Nodes only when the test lets it, and everything else at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::StreamExt;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, BodyStream, StreamBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use kube::client::Body;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tower::{BoxError, ServiceExt};
use windlass_apiserver::{ApiServer, UserInfo};

/// Holds the Nodes back.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    open: watch::Sender<bool>,
    asked: AtomicUsize,
}

impl Gate {
    /// Lets the Nodes through.
    pub(crate) fn open(&self) {
        self.open.send_replace(true);
    }

    /// How many requests for Nodes came.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

/// Serves until the listener fails.
pub(crate) async fn serve(server: ApiServer, listener: TcpListener, tls: Arc<rustls::ServerConfig>, gate: Arc<Gate>) {
    let acceptor = TlsAcceptor::from(tls);
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, server, gate) = (acceptor.clone(), server.clone(), gate.clone());
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else {
                return;
            };
            let service = service_fn(move |request| answer(server.clone(), gate.clone(), request));
            let builder = Builder::new(TokioExecutor::new());
            // A client that goes away is no failure.
            let _ = builder.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(
    server: ApiServer,
    gate: Arc<Gate>,
    request: Request<Incoming>,
) -> Result<Response<UnsyncBoxBody<Bytes, BoxError>>, BoxError> {
    let is_about_nodes = request.uri().path() == "/api/v1/nodes";
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let request = Request::from_parts(parts, Body::from(body.to_vec()));
    let service = server.client_service(UserInfo::admin("slow"));
    let (parts, body) = service.oneshot(request).await?.into_parts();
    if is_about_nodes {
        gate.asked.fetch_add(1, Ordering::SeqCst);
    }
    let mut open = gate.open.subscribe();
    let waits = futures::stream::once(async move {
        if is_about_nodes {
            // The gate exists as long as the server.
            let _ = open.wait_for(|open| *open).await;
        }
    });
    let frames = BodyStream::new(body);
    let body = waits.filter_map(|()| std::future::ready(None)).chain(frames);
    Ok(Response::from_parts(parts, StreamBody::new(body).boxed_unsync()))
}
