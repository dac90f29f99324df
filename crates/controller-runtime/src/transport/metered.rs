//! Answers of servers with [`Bounds`]: every byte is counted before anything reads it.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use tower::{BoxError, Service};
use windlass_http_client::refusal;

use super::bounds::{Bounds, Refusal, Share};
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
            let whole = (!watches).then(|| (bounds.share(), 0));
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
    /// Of an answer that is read as a whole: its share, and its bytes.
    whole: Option<(Share, usize)>,
}

impl Count {
    fn add(&mut self, bytes: usize) -> Result<(), BoxError> {
        self.bounds.received(bytes)?;
        let Some((share, all)) = &mut self.whole else {
            return Ok(());
        };
        *all += bytes;
        let most = self.bounds.limits().answer;
        if *all > most {
            let text = format!("the API server sent an answer of more than {} MiB", most >> 20);
            return Err(self.bounds.exceeded(text).into());
        }
        Ok(share.set(*all)?)
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
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            if let Err(error) = count.add(bytes) {
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
