//! The term of a process: the time in which it may write, and the fence that refuses writes before and after it.
//!
//! A term is limited by the time of day and by the steady time, whichever ends first. So it is also over for a process that was
//! frozen, on a machine that was suspended, and after a jump of the clock. A term that is over never begins again.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Method, Request, Response, header};
use jiff::{SignedDuration, Timestamp};
use kube::client::Body;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tower::{BoxError, Service};
use windlass_meta::Clock;

/// How often a waiting task looks at the clocks. Timers do not notice jumps.
const LOOK: Duration = Duration::from_millis(200);

/// The time in which a process may write. Clones share one term.
#[derive(Clone, Debug)]
pub struct Term(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Waiting,
    Holds {
        /// When the term began.
        since: Timestamp,
        until: Point,
    },
    Over,
}

/// One moment on both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    day: Timestamp,
    steady: Duration,
}

/// The refusal of a write.
#[derive(Debug, thiserror::Error)]
#[error("this process does not hold the Lease of the leader election, so it must not write")]
pub(crate) struct NotLeading;

impl Inner {
    /// The time until a point, by the clock that reaches it first.
    fn left_until(&self, until: Point) -> Duration {
        let day = Duration::try_from(until.day.duration_since(self.clock.now())).unwrap_or_default();
        day.min(until.steady.saturating_sub(self.clock.steady()))
    }
}

impl Point {
    /// The time of day.
    pub(crate) fn day(&self) -> Timestamp {
        self.day
    }
}

impl Term {
    /// A term without an end, for a process that is alone.
    pub fn endless() -> Self {
        Self(None)
    }

    /// A term that has not begun.
    pub fn waiting(clock: Arc<dyn Clock>) -> Self {
        let state = Mutex::new(State::Waiting);
        Self(Some(Arc::new(Inner { clock, state })))
    }

    /// The present moment.
    pub(crate) fn point(&self) -> Option<Point> {
        let inner = self.0.as_ref()?;
        Some(Point {
            day: inner.clock.now(),
            steady: inner.clock.steady(),
        })
    }

    /// Begins or extends the term: it lasts until `length` after `from`. False if it is over.
    pub(crate) fn extend(&self, from: Option<Point>, length: Duration) -> bool {
        let (Some(inner), Some(from)) = (&self.0, from) else {
            return true;
        };
        let day = SignedDuration::try_from(length).unwrap_or(SignedDuration::MAX);
        let until = Point {
            day: from.day.saturating_add(day).unwrap_or(from.day),
            steady: from.steady.saturating_add(length),
        };
        let mut state = inner.state.lock();
        let since = match *state {
            State::Over => return false,
            // An end that no one has seen yet.
            State::Holds { until: end, .. } if inner.left_until(end).is_zero() => {
                *state = State::Over;
                return false;
            }
            State::Holds { since, .. } => since,
            // It would be over before it began: nothing was written in it, and the next attempt may come in time.
            State::Waiting if inner.left_until(until).is_zero() => return false,
            State::Waiting => from.day,
        };
        *state = State::Holds { since, until };
        drop(state);
        self.left().is_some()
    }

    /// Ends the term.
    pub(crate) fn end(&self) {
        if let Some(inner) = &self.0 {
            *inner.state.lock() = State::Over;
        }
    }

    /// The rest of the term; `None` before and after it.
    fn left(&self) -> Option<Duration> {
        let Some(inner) = &self.0 else {
            return Some(Duration::MAX);
        };
        let mut state = inner.state.lock();
        let State::Holds { until, .. } = *state else {
            return None;
        };
        let left = inner.left_until(until);
        if left.is_zero() {
            *state = State::Over;
            return None;
        }
        Some(left)
    }

    /// When this term began: what other processes of this program had under way before that moment has ended. `None` without a term,
    /// when that is not known.
    pub fn since(&self) -> Option<Timestamp> {
        match *self.0.as_ref()?.state.lock() {
            State::Holds { since, .. } => Some(since),
            State::Waiting | State::Over => None,
        }
    }

    /// Whether the process may write now.
    pub fn holds(&self) -> bool {
        self.left().is_some()
    }

    /// Resolves when the process may not write.
    pub(crate) async fn ended(&self) {
        while let Some(left) = self.left() {
            tokio::time::sleep(left.min(LOOK)).await;
        }
    }

    /// A client that refuses to write outside of the term, and abandons writes that are not answered within it. Connections for
    /// other protocols (such as a port-forward) count as writes.
    pub fn fence(&self, client: kube::Client) -> kube::Client {
        if self.0.is_none() {
            return client;
        }
        let namespace = client.default_namespace().to_owned();
        let term = self.clone();
        kube::Client::new(Fence { client, term }, namespace)
    }

    /// A stream that refuses to write outside of the term. So calls on a connection that is open already are not sent after the term,
    /// not even those that were queued when the process was frozen. Answers are still read.
    pub fn fence_stream<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
    ) -> impl AsyncRead + AsyncWrite + Unpin + use<S> {
        let term = self.clone();
        FencedStream { stream, term }
    }
}

#[derive(Clone)]
struct Fence {
    client: kube::Client,
    term: Term,
}

impl Service<Request<Body>> for Fence {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        if reads && !request.headers().contains_key(header::UPGRADE) {
            let client = self.client.clone();
            return Box::pin(async move { Ok(client.send(request).await?) });
        }
        if !self.term.holds() {
            return Box::pin(async { Err(NotLeading.into()) });
        }
        let (term, client) = (self.term.clone(), self.client.clone());
        Box::pin(async move {
            let answer = client.send(request);
            tokio::pin!(answer);
            let ended = term.ended();
            tokio::pin!(ended);
            // The term is looked at before each step, also by a process that has just woken up.
            futures::future::poll_fn(|cx| {
                if !term.holds() || ended.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Err(NotLeading.into()));
                }
                answer.as_mut().poll(cx).map_err(BoxError::from)
            })
            .await
        })
    }
}

/// A stream that refuses to write outside of the term, so that a call that was queued before a process was frozen is not sent after it.
struct FencedStream<S> {
    stream: S,
    term: Term,
}

impl<S> FencedStream<S> {
    fn check(&self) -> io::Result<()> {
        self.term
            .holds()
            .then_some(())
            .ok_or_else(|| io::Error::other(NotLeading))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for FencedStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for FencedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use windlass_meta::FakeClock;

    use super::*;

    /// A clock whose time of day jumps by itself.
    #[derive(Clone, Debug, Default)]
    struct Jumping {
        day: FakeClock,
        steady: FakeClock,
    }

    impl Clock for Jumping {
        fn now(&self) -> Timestamp {
            self.day.now()
        }

        fn steady(&self) -> Duration {
            self.steady.steady()
        }
    }

    fn begun() -> (Jumping, Term) {
        let clock = Jumping::default();
        let term = Term::waiting(Arc::new(clock.clone()));
        assert!(!term.holds());
        assert!(term.extend(term.point(), Duration::from_secs(10)));
        assert!(term.holds());
        (clock, term)
    }

    #[test]
    fn a_term_ends_with_the_clock_that_is_first() {
        let check = |day: i64, steady: i64, expect: bool| {
            let (clock, term) = begun();
            clock.day.advance(SignedDuration::from_secs(day));
            clock.steady.advance(SignedDuration::from_secs(steady));
            assert_eq!(term.holds(), expect, "{day} {steady}");
        };
        check(9, 9, true);
        check(10, 9, false);
        // Suspended, or the clock was put forward.
        check(3600, 1, false);
        // The clock was put back.
        check(-3600, 9, true);
        check(-3600, 10, false);
    }

    #[test]
    fn a_term_that_is_over_does_not_begin_again() {
        let (clock, term) = begun();
        clock.day.advance(SignedDuration::from_secs(11));
        clock.steady.advance(SignedDuration::from_secs(11));
        assert!(
            !term.extend(term.point(), Duration::from_secs(10)),
            "seen by the extension itself"
        );
        clock.day.advance(SignedDuration::from_secs(-11));
        assert!(!term.holds());
        let (_, term) = begun();
        term.end();
        assert!(!term.extend(term.point(), Duration::from_secs(10)) && !term.holds());
        assert!(Term::endless().holds());
    }

    #[test]
    fn a_term_that_another_thread_ends_during_an_extension_does_not_begin_again() {
        const ROUNDS: usize = 50_000;
        let clock: Arc<dyn Clock> = Arc::new(FakeClock::default());
        let terms: Vec<_> = (0..ROUNDS).map(|_| Term::waiting(clock.clone())).collect();
        let (extended, ended) = (std::sync::atomic::AtomicUsize::new(0), std::sync::Barrier::new(2));
        std::thread::scope(|threads| {
            threads.spawn(|| {
                ended.wait();
                for (index, term) in terms.iter().enumerate() {
                    extended.store(index, std::sync::atomic::Ordering::SeqCst);
                    term.extend(term.point(), Duration::from_secs(10));
                }
            });
            ended.wait();
            // Each term ends at about the time at which it is extended.
            for (index, term) in terms.iter().enumerate() {
                while extended.load(std::sync::atomic::Ordering::SeqCst) < index {
                    std::hint::spin_loop();
                }
                term.end();
            }
        });
        assert_eq!(terms.iter().filter(|term| term.holds()).count(), 0);
    }

    #[test]
    fn a_term_does_not_begin_with_an_answer_that_comes_too_late() {
        let clock = Jumping::default();
        let term = Term::waiting(Arc::new(clock.clone()));
        let asked = term.point();
        clock.steady.advance(SignedDuration::from_secs(11));
        assert!(!term.extend(asked, Duration::from_secs(10)) && !term.holds());
        assert!(
            term.extend(term.point(), Duration::from_secs(10)),
            "the next attempt is in time"
        );
        assert!(term.holds());
    }

    #[test]
    fn an_extension_counts_from_the_time_of_its_request() {
        let (clock, term) = begun();
        let asked = term.point();
        clock.day.advance(SignedDuration::from_secs(6));
        clock.steady.advance(SignedDuration::from_secs(6));
        assert!(term.extend(asked, Duration::from_secs(10)));
        assert_eq!(term.left(), Some(Duration::from_secs(4)));
        assert_eq!(
            term.since(),
            asked.map(|point| point.day()),
            "an extension is no beginning"
        );
    }

    #[tokio::test]
    async fn an_open_stream_carries_nothing_after_the_term() {
        let (near, mut far) = tokio::io::duplex(64);
        let clock = FakeClock::default();
        let term = Term::waiting(Arc::new(clock.clone()));
        let mut stream = term.fence_stream(near);
        stream.write_all(b"too early").await.unwrap_err();
        assert!(term.extend(term.point(), Duration::from_secs(10)));
        stream.write_all(b"a").await.unwrap();
        assert_eq!(far.read_u8().await.unwrap(), b'a');
        far.write_all(b"b").await.unwrap();
        clock.advance(SignedDuration::from_secs(11));
        stream.write_all(b"too late").await.unwrap_err();
        assert_eq!(stream.read_u8().await.unwrap(), b'b');
    }
}
