//! Sees what a client does at the server: each write just before it is carried out and after, and how late watches are.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body::{Body as _, Frame};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::Value;
use tokio::time::{Instant, Sleep};
use tower::{BoxError, Service};
use windlass_envtest::WriteTo;

use crate::faults::BoxedBody;

/// Sees the writes of a client.
pub trait Witness: Send + Sync + 'static {
    /// A write that the server is about to carry out, with its body. What is returned goes to [`Self::after`].
    fn before(&self, write: &WriteTo, body: &Value) -> Vec<String>;
    /// The same write with the code of its answer.
    fn after(&self, write: &WriteTo, body: &Value, noted: Vec<String>);
    /// How late the events of a watch of a resource are.
    fn lag(&self, resource: &str) -> Duration;
}

/// A client's service with a witness.
#[derive(Clone)]
pub struct Witnessed {
    client: kube::Client,
    agent: &'static str,
    witness: Arc<dyn Witness>,
}

impl std::fmt::Debug for Witnessed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Witnessed")
            .field("agent", &self.agent)
            .finish_non_exhaustive()
    }
}

impl Witnessed {
    /// The service of a client of that name.
    pub fn new(client: kube::Client, agent: &'static str, witness: Arc<dyn Witness>) -> Self {
        Self { client, agent, witness }
    }

    async fn write(self, mut write: WriteTo, request: Request<Body>) -> Result<Response<BoxedBody>, BoxError> {
        let (head, body) = request.into_parts();
        let bytes = body.collect_bytes().await?;
        let body = serde_json::from_slice(&bytes).unwrap_or_default();
        let noted = self.witness.before(&write, &body);
        let answer = self
            .client
            .send(Request::from_parts(head, Body::from(bytes.to_vec())))
            .await?;
        write.code = answer.status().as_u16();
        self.witness.after(&write, &body, noted);
        Ok(answer.map(boxed))
    }

    async fn read(self, request: Request<Body>) -> Result<Response<BoxedBody>, BoxError> {
        let path = request.uri().path();
        let resource = path.rsplit('/').next().unwrap_or_default().to_owned();
        let watches = request.uri().query().is_some_and(|query| query.contains("watch="));
        let answer = self.client.send(request).await?;
        if !watches {
            return Ok(answer.map(boxed));
        }
        Ok(answer.map(|body| {
            Late {
                body: boxed(body),
                resource,
                witness: self.witness,
                pieces: VecDeque::new(),
                has_ended: false,
                timer: Box::pin(tokio::time::sleep(Duration::ZERO)),
            }
            .boxed_unsync()
        }))
    }
}

fn boxed(body: Body) -> BoxedBody {
    body.map_err(Into::into).boxed_unsync()
}

impl Service<Request<Body>> for Witnessed {
    type Response = Response<BoxedBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<BoxedBody>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        match WriteTo::of(&request, self.agent) {
            Some(write) => Box::pin(self.clone().write(write, request)),
            None => Box::pin(self.clone().read(request)),
        }
    }
}

/// The answer to a watch whose events are late.
struct Late {
    body: BoxedBody,
    resource: String,
    witness: Arc<dyn Witness>,
    /// What has come, each with the time at which it is passed on.
    pieces: VecDeque<(Instant, Result<Frame<Bytes>, BoxError>)>,
    has_ended: bool,
    timer: Pin<Box<Sleep>>,
}

impl Late {
    fn take(&mut self, cx: &mut Context<'_>) {
        while !self.has_ended {
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(Some(piece)) => {
                    let due = Instant::now() + self.witness.lag(&self.resource);
                    // No event overtakes an earlier one.
                    let due = self.pieces.back().map_or(due, |(last, _)| due.max(*last));
                    self.pieces.push_back((due, piece));
                }
                Poll::Ready(None) => self.has_ended = true,
                Poll::Pending => return,
            }
        }
    }
}

impl http_body::Body for Late {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.take(cx);
        let Some((due, _)) = self.pieces.front() else {
            return if self.has_ended {
                Poll::Ready(None)
            } else {
                Poll::Pending
            };
        };
        let due = *due;
        if due > Instant::now() {
            self.timer.as_mut().reset(due);
            ready!(self.timer.as_mut().poll(cx));
        }
        Poll::Ready(self.pieces.pop_front().map(|(_, piece)| piece))
    }
}
