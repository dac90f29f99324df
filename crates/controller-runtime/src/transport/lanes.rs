//! Selects the connection of a request. Watches never share a connection with requests, and no connection carries more watches
//! than servers allow.
//!
//! A server limits the number of concurrent streams of a connection (kube-apiserver's default is 100), and a watch is a stream
//! that lasts. A stream above the limit waits in the client, silently, until another one ends. With many watches on the
//! connection of its requests, a process would halt without any error.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use parking_lot::Mutex;
use tower::{BoxError, Service};

/// Watches on one connection: half of kube-apiserver's limit, as proxies between may have a lower one.
pub const WATCHES_PER_CONNECTION: usize = 50;
/// Time limit for the beginning of an answer. A server ends a request after a minute (`--request-timeout`), and it answers a
/// watch before its first event.
const BEGINNING: Duration = Duration::from_secs(70);

/// One connection for requests, and as many connections for watches as needed.
pub(super) struct Lanes<S> {
    requests: S,
    watches: Arc<Mutex<Vec<Lane<S>>>>,
    make: Arc<dyn Fn() -> S + Send + Sync>,
}

struct Lane<S> {
    service: S,
    /// Cloned by every watch on this connection.
    open: Arc<()>,
}

impl<S: Clone> Clone for Lanes<S> {
    fn clone(&self) -> Self {
        Self {
            requests: self.requests.clone(),
            watches: self.watches.clone(),
            make: self.make.clone(),
        }
    }
}

impl<S: Clone> Lanes<S> {
    /// Lanes whose services come from `make`. Each service has its own connections.
    pub(super) fn new(make: impl Fn() -> S + Send + Sync + 'static) -> Self {
        Self {
            requests: make(),
            watches: Arc::default(),
            make: Arc::new(make),
        }
    }

    /// The first connection with room for another watch.
    fn for_watch(&self) -> (S, Arc<()>) {
        let mut lanes = self.watches.lock();
        let free = |lane: &&Lane<S>| Arc::strong_count(&lane.open) <= WATCHES_PER_CONNECTION;
        if let Some(lane) = lanes.iter().find(free) {
            return (lane.service.clone(), lane.open.clone());
        }
        let lane = Lane {
            service: (self.make)(),
            open: Arc::new(()),
        };
        let chosen = (lane.service.clone(), lane.open.clone());
        lanes.push(lane);
        chosen
    }
}

/// Whether a request is a watch.
pub(super) fn is_watch<B>(request: &Request<B>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query
        .split('&')
        .any(|one| matches!(one.split_once('='), Some(("watch", "true" | "1"))))
}

impl<S, B, R> Service<Request<B>> for Lanes<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: Send + 'static,
    R: Send + 'static,
{
    type Response = Response<Held<R>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    // A connection's pool is always ready; waiting happens in the call.
    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (service, open) = if is_watch(&request) {
            let (service, open) = self.for_watch();
            (service, Some(open))
        } else {
            (self.requests.clone(), None)
        };
        let answer = tower::ServiceExt::oneshot(service, request);
        Box::pin(async move {
            match tokio::time::timeout(BEGINNING, answer).await {
                Ok(Ok(answer)) => Ok(answer.map(|body| Held { body, _open: open })),
                Ok(Err(error)) => Err(error.into()),
                Err(_) => Err(format!("no answer in {} s", BEGINNING.as_secs()).into()),
            }
        })
    }
}

/// A body that keeps its place on its connection until it is dropped.
pub(super) struct Held<R> {
    body: R,
    _open: Option<Arc<()>>,
}

impl<R: Body<Data = Bytes> + Unpin> Body for Held<R> {
    type Data = Bytes;
    type Error = R::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, R::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
