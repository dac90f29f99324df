//! A workload cluster's API server that sends its Nodes and upgrades connections only when the test lets it, and everything else at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::StreamExt;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, BodyStream, Full, StreamBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use kube::client::Body;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tower::{BoxError, ServiceExt};
use windlass_apiserver::{ApiServer, UserInfo};

/// Holds the Nodes back, and refuses protocols.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    open: watch::Sender<bool>,
    asked: AtomicUsize,
    refuses: Mutex<BTreeMap<&'static str, u16>>,
    upgrades: Mutex<Vec<String>>,
}

impl Gate {
    /// Lets the Nodes through.
    pub(crate) fn open(&self) {
        self.open.send_replace(true);
    }

    /// Answers requests for an upgrade to a protocol with an error of this code; none lets them through.
    pub(crate) fn refuse(&self, protocol: &'static str, code: Option<u16>) {
        let mut refuses = self.refuses.lock();
        match code {
            Some(code) => refuses.insert(protocol, code),
            None => refuses.remove(protocol),
        };
    }

    /// The protocols that connections were to be upgraded to, since the last call.
    pub(crate) fn upgrades(&self) -> Vec<String> {
        std::mem::take(&mut *self.upgrades.lock())
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
            let _ = builder
                .serve_connection_with_upgrades(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn answer(
    server: ApiServer,
    gate: Arc<Gate>,
    mut request: Request<Incoming>,
) -> Result<Response<UnsyncBoxBody<Bytes, BoxError>>, BoxError> {
    let is_about_nodes = request.uri().path() == "/api/v1/nodes";
    let near = hyper::upgrade::on(&mut request);
    let (parts, body) = request.into_parts();
    let protocol = parts.headers.get(http::header::UPGRADE);
    if let Some(protocol) = protocol.and_then(|value| value.to_str().ok()) {
        gate.upgrades.lock().push(protocol.to_owned());
        if let Some(code) = gate.refuses.lock().get(protocol) {
            let why = Full::new(Bytes::from_static(b"no such protocol here")).map_err(BoxError::from);
            return Ok(Response::builder().status(*code).body(why.boxed_unsync())?);
        }
    }
    let body = body.collect().await?.to_bytes();
    let request = Request::from_parts(parts, Body::from(body.to_vec()));
    let service = server.client_service(UserInfo::admin("slow"));
    let mut answer = service.oneshot(request).await?;
    if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
        let far = hyper::upgrade::on(&mut answer);
        tokio::spawn(async move {
            let (near, far) = futures::try_join!(near, far)?;
            let (mut near, mut far) = (TokioIo::new(near), TokioIo::new(far));
            let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
            Ok::<_, hyper::Error>(())
        });
    }
    let (parts, body) = answer.into_parts();
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
