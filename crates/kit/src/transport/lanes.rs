//! Which connection a request takes: watches never share one with requests, and no connection carries more watches than any server
//! lets through.
//!
//! A server limits how many streams a connection has at a time (100 with kube-apiserver unless told otherwise), and a watch is a
//! stream that lasts. What exceeds the limit waits in the client, silently, until a stream ends: a process with many watches on the
//! connection of its requests would come to a halt without any error.

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

/// Watches on one connection: half of what kube-apiserver allows, as proxies on the way may allow less.
pub const WATCHES_PER_CONNECTION: usize = 50;
/// How long the beginning of an answer may take. A server ends what it works on after a minute (`--request-timeout`), and a watch is
/// answered before its first event.
const BEGINNING: Duration = Duration::from_secs(70);

/// A service per connection: one for requests, and as many for watches as there have to be.
pub(super) struct Lanes<S> {
    requests: S,
    watches: Arc<Mutex<Vec<Lane<S>>>>,
    make: Arc<dyn Fn() -> S + Send + Sync>,
}

struct Lane<S> {
    service: S,
    /// Held by every watch on this connection.
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
    /// `make` gives a service with connections of its own.
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

/// Whether a request is for a stream of changes.
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

    // A connection's pool is always ready: what has to wait does so in the call.
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
