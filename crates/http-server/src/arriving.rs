//! The body of a request, which says to its connection how much of it has arrived.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use crate::connections::Running;

/// The body of a request.
#[derive(Debug)]
pub struct Arriving {
    body: Incoming,
    running: Arc<Running>,
}

impl Arriving {
    pub(crate) fn new(body: Incoming, running: Arc<Running>) -> Self {
        if body.is_end_stream() {
            running.arrived();
        }
        Self { body, running }
    }
}

impl Body for Arriving {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(Ok(frame)) = &frame {
            self.running.received(frame.data_ref().map_or(0, Bytes::len));
        }
        if frame.is_none() || self.body.is_end_stream() {
            self.running.arrived();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
