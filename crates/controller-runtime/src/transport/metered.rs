//! Answers of servers with [`Bounds`]: every byte is counted before anything reads it.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use tower::{BoxError, Service};
use windlass_http_client::refusal;

use super::bounds::{Bounds, Refusal, Share, estimate};
use super::lanes::is_watch;

/// A service whose answers count.
#[derive(Clone, Debug)]
pub(super) struct Metered<S> {
    pub(super) inner: S,
    /// Without bounds, nothing is counted.
    pub(super) bounds: Option<Bounds>,
}

impl<S, B, R> Service<Request<B>> for Metered<S>
where
    S: Service<Request<B>, Response = Response<R>, Error = BoxError>,
    S::Future: Send + 'static,
    R: Send + 'static,
{
    type Response = Response<Counted<R>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (watches, bounds) = (is_watch(&request), self.bounds.clone());
        if let Some(refusal) = bounds.as_ref().and_then(Bounds::refusal) {
            return Box::pin(async move { Err(refusal.why().into()) });
        }
        let answer = self.inner.call(request);
        Box::pin(async move {
            let Some(bounds) = bounds else {
                let answer = answer.await?;
                return Ok(answer.map(|body| Counted { body, count: None }));
            };
            let mut answer = answer.await.inspect_err(|error| {
                if let Some(refused) = refusal(&**error) {
                    bounds.refuse(Refusal::Address(refused.to_string()));
                }
            })?;
            // The reader of a watch counts what it has not decoded yet, and what it keeps.
            answer.extensions_mut().insert(bounds.clone());
            let whole = (!watches).then(|| Whole {
                share: bounds.share(),
                bytes: 0,
                decoded: 0,
            });
            let count = Some(Count { bounds, whole });
            Ok(answer.map(|body| Counted { body, count }))
        })
    }
}

/// A body whose bytes count.
pub(super) struct Counted<R> {
    body: R,
    count: Option<Count>,
}

struct Count {
    bounds: Bounds,
    /// Of an answer that is read as a whole.
    whole: Option<Whole>,
}

/// What was received of an answer.
struct Whole {
    share: Share,
    bytes: usize,
    /// What that takes when it is decoded.
    decoded: usize,
}

impl Count {
    fn add(&mut self, received: &[u8]) -> Result<(), BoxError> {
        self.bounds.received(received.len())?;
        let Some(whole) = &mut self.whole else {
            return Ok(());
        };
        whole.bytes += received.len();
        whole.decoded += estimate(received);
        let most = self.bounds.limits().answer;
        if whole.bytes > most {
            let text = format!("the API server sent an answer of more than {} MiB", most >> 20);
            return Err(self.bounds.exceeded(text).into());
        }
        self.bounds.decodes("an answer", whole.decoded)?;
        Ok(whole.share.set(whole.bytes)?)
    }
}

impl<R> Body for Counted<R>
where
    R: Body<Data = Bytes> + Unpin,
    R::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => frame,
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error.into()))),
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Pending => return Poll::Pending,
        };
        if let Some(count) = &mut self.count {
            let received = frame.data_ref().map_or(&[][..], |bytes| bytes);
            if let Err(error) = count.add(received) {
                return Poll::Ready(Some(Err(error)));
            }
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
