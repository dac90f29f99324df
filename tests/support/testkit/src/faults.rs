//! Faults between a client and its server.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use kube::client::Body;
use parking_lot::Mutex;
use tokio::sync::watch;
use tower::{BoxError, Service, ServiceExt as _};

/// A fault of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is refused with this status and never reaches the server.
    Refused(u16),
    /// It never reaches the server: the connection breaks.
    Lost,
    /// The server carries it out, but the answer is lost, as in a timeout.
    AnswerLost,
    /// A watch breaks after this many pieces of its answer.
    Broken(usize),
}

/// A request, as fault functions see it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// The number of earlier requests of its type (writes, watches, other reads).
    pub number: usize,
}

impl Seen {
    /// Whether it writes.
    pub fn is_write(&self) -> bool {
        self.method != Method::GET
    }

    /// Whether it is a watch.
    pub fn is_watch(&self) -> bool {
        self.path.contains("watch=")
    }
}

type Choose = dyn Fn(&Seen) -> Option<Fault> + Send + Sync;

struct Inner {
    choose: Box<Choose>,
    /// The write during which the process dies.
    last_write: Mutex<Option<usize>>,
    counts: Mutex<[usize; 3]>,
    injected: Mutex<Vec<(String, Fault)>>,
    dead: watch::Sender<bool>,
}

/// Selects a fault for each request. A clone is another handle to the same state.
#[derive(Clone)]
pub struct Faults(Arc<Inner>);

impl Default for Faults {
    fn default() -> Self {
        Self::when(|_| None)
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults")
            .field("injected", &self.0.injected.lock().len())
            .finish_non_exhaustive()
    }
}

impl Faults {
    /// No faults.
    pub fn none() -> Self {
        Self::default()
    }

    /// Faults as a function of the request.
    pub fn when(choose: impl Fn(&Seen) -> Option<Fault> + Send + Sync + 'static) -> Self {
        Self::new(Box::new(choose), None)
    }

    fn new(choose: Box<Choose>, last_write: Option<usize>) -> Self {
        Self(Arc::new(Inner {
            choose,
            last_write: Mutex::new(last_write),
            counts: Mutex::default(),
            injected: Mutex::default(),
            dead: watch::Sender::new(false),
        }))
    }

    /// The process dies during its `n`th write: the server carries it out, but its answer and everything after it is lost.
    pub fn dying_at_write(n: usize) -> Self {
        Self::new(Box::new(|_| None), Some(n))
    }

    /// From now on the process has `n` writes left: it dies during the last of them, as in [`Faults::dying_at_write`].
    pub fn die_after(&self, n: usize) {
        let done = self.0.counts.lock()[0];
        *self.0.last_write.lock() = Some(done + n.max(1));
    }

    /// Resolves once a process under [`Faults::dying_at_write`] or [`Faults::die_after`] has died.
    pub async fn died(&self) {
        let mut dead = self.0.dead.subscribe();
        let _ = dead.wait_for(|dead| *dead).await;
    }

    /// The faults so far: method and path, and the fault.
    pub fn injected(&self) -> Vec<(String, Fault)> {
        self.0.injected.lock().clone()
    }

    fn choose(&self, request: &Request<Body>) -> Option<Fault> {
        let path = request
            .uri()
            .path_and_query()
            .map_or_else(String::new, ToString::to_string);
        let mut seen = Seen {
            method: request.method().clone(),
            path,
            number: 0,
        };
        let sort = if seen.is_write() {
            0
        } else {
            1 + usize::from(seen.is_watch())
        };
        {
            let mut counts = self.0.counts.lock();
            seen.number = counts[sort];
            counts[sort] += 1;
        }
        if *self.0.dead.borrow() {
            return Some(Fault::Lost);
        }
        if seen.is_write() && Some(seen.number + 1) == *self.0.last_write.lock() {
            self.0.dead.send_replace(true);
            return Some(Fault::AnswerLost);
        }
        let fault = (self.0.choose)(&seen)?;
        self.0
            .injected
            .lock()
            .push((format!("{} {}", seen.method, seen.path), fault));
        Some(fault)
    }

    /// The service with these faults in front of it.
    pub fn wrap<S>(&self, inner: S) -> Faulty<S> {
        Faulty {
            inner,
            faults: self.clone(),
        }
    }
}

/// A service with faults in front of it.
#[derive(Clone, Debug)]
pub struct Faulty<S> {
    inner: S,
    faults: Faults,
}

/// The body of an answer.
pub type BoxedBody = UnsyncBoxBody<Bytes, BoxError>;

impl<S, B> Service<Request<Body>> for Faulty<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError> + Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<BoxedBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<BoxedBody>, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let fault = self.faults.choose(&request);
        let inner = self.inner.clone();
        Box::pin(async move {
            match fault {
                Some(Fault::Refused(code)) => return Ok(refusal(code)),
                Some(Fault::Lost) => return Err("the connection broke before the request was sent".into()),
                _ => {}
            }
            let answer = inner.oneshot(request).await.map_err(Into::into)?;
            let answer = answer.map(|body| body.map_err(Into::into).boxed_unsync());
            match fault {
                Some(Fault::AnswerLost) => Err("the connection broke before the answer came".into()),
                Some(Fault::Broken(pieces)) => Ok(answer.map(|body| Cut { body, pieces }.boxed_unsync())),
                _ => Ok(answer),
            }
        })
    }
}

fn refusal(code: u16) -> Response<BoxedBody> {
    let reason = if code == 409 { "Conflict" } else { "InternalError" };
    let status = serde_json::json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason,
        "message": "a fault that the test asked for",
    });
    let body = Full::new(Bytes::from(status.to_string()))
        .map_err(|never| match never {})
        .boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, json);
    response
}

/// A body that breaks after some pieces.
struct Cut {
    body: BoxedBody,
    pieces: usize,
}

impl http_body::Body for Cut {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, BoxError>>> {
        let Some(left) = self.pieces.checked_sub(1) else {
            return Poll::Ready(Some(Err("the connection broke in the middle of the answer".into())));
        };
        let frame = std::task::ready!(Pin::new(&mut self.body).poll_frame(cx));
        self.pieces = left;
        Poll::Ready(frame)
    }
}
