//! Requests that keep a processor busy. They take turns, so that the threads of the runtime stay free for all others.
//!
//! A request is heavy if its body is large, or if what it reads or changes is. It runs outside the threads of the runtime. Few run at the
//! same time, of one user at most half of them, and those that wait are counted: more are refused, as API Priority and Fairness does.
//! A request that waits for a webhook keeps no processor busy, so it has no turn meanwhile ([`elsewhere`]), but it is still counted.
//! Members of `system:masters` do not wait and are not counted: the controllers of the same process are among them.

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::Response;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{AcquireError, Semaphore, SemaphorePermit};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use windlass_meta::budget::{
    ANSWER_BYTES_OF_A_USER, BODIES_OF_A_USER, FEW_ANSWER_BYTES, HEAVY_REQUESTS_OF_A_USER, HEAVY_WAIT,
    LIGHT_ANSWER_BYTES, PARKED_OF_A_USER, RULES_REMEMBERED,
};
use windlass_rbac::user::UserInfo;

use crate::error::ApiError;
use crate::http::body::ApiBody;
use crate::http::deadline;
use crate::http::per_user::{PerUser, Place};

/// All heavy requests of a server.
pub(crate) struct Heavy {
    /// Whether members of `system:masters` are counted.
    limits_masters: bool,
    running: Semaphore,
    users: Arc<PerUser<OfAUser>>,
    bodies: Arc<PerUser<()>>,
    answers: Arc<PerUser<()>>,
}

/// The requests of one user that run.
#[derive(Debug)]
pub(crate) struct OfAUser {
    turns: Semaphore,
    /// Those that have given their turn back. Each holds its object meanwhile.
    parked: Semaphore,
}

/// How many heavy requests run at the same time: one for each processor, and never only those of one user.
fn slots() -> usize {
    std::thread::available_parallelism().map_or(2, NonZero::get).max(2)
}

impl Default for Heavy {
    fn default() -> Self {
        Self::new(false)
    }
}

impl Heavy {
    /// No requests yet. `limits_masters` counts members of `system:masters`, too.
    pub(crate) fn new(limits_masters: bool) -> Self {
        Self {
            limits_masters,
            running: Semaphore::new(slots()),
            users: Arc::default(),
            bodies: Arc::default(),
            answers: Arc::default(),
        }
    }
}

impl Default for OfAUser {
    fn default() -> Self {
        Self {
            turns: Semaphore::new(slots() / 2),
            parked: Semaphore::new(PARKED_OF_A_USER),
        }
    }
}

/// The place of a heavy request, from when it arrives until it is answered.
#[derive(Debug)]
pub(crate) enum Turn {
    /// The user never waits.
    Exempt,
    /// The user has as many as there are places.
    Counted(Place<OfAUser>),
}

impl Heavy {
    /// Whether the limits of a user do not hold for this one.
    pub(crate) fn is_exempt(&self, user: &UserInfo) -> bool {
        user.is_master() && !self.limits_masters
    }

    /// Takes a place for a request whose body is waited for.
    pub(crate) fn arrive(&self, user: &UserInfo) -> Result<Option<Place<()>>, ApiError> {
        if self.is_exempt(user) {
            return Ok(None);
        }
        let place = self.bodies.take(&user.name, BODIES_OF_A_USER);
        place.map(Some).ok_or_else(ApiError::too_many_requests)
    }

    /// Refuses a request of a user who does not read the answers to others.
    pub(crate) fn reads(&self, user: &UserInfo) -> Result<(), ApiError> {
        if !self.is_exempt(user) && self.answers.count(&user.name) >= ANSWER_BYTES_OF_A_USER {
            return Err(ApiError::too_many_requests());
        }
        Ok(())
    }

    /// The answers to a user.
    pub(crate) fn answers<'a>(&'a self, user: &'a UserInfo, is_read: bool) -> Answers<'a> {
        Answers {
            heavy: self,
            user,
            is_read,
        }
    }

    /// Counts an answer until its last byte is sent, unless that is done. The answer to a read is refused if others to the same user wait to be sent. What is
    /// written is written, so that answer is not.
    pub(crate) fn answer(&self, user: &UserInfo, is_read: bool, answer: Response<ApiBody>) -> Response<ApiBody> {
        if answer.body().place().is_some() {
            return answer;
        }
        let size = answer.body().bytes().map_or(0, Bytes::len);
        match self.answers(user, is_read).count(size) {
            Ok(None) => answer,
            Ok(Some(place)) => answer.map(|body| body.counted(place)),
            Err(error) => crate::http::body::error(&error),
        }
    }

    /// Counts what a watch is about to send. `watch` is its place among those of its user.
    pub(crate) fn piece(&self, watch: &Place<()>, size: usize) -> Result<Place<()>, ApiError> {
        self.unsent(watch.user(), size, ANSWER_BYTES_OF_A_USER)
    }

    fn unsent(&self, user: &str, size: usize, most: usize) -> Result<Place<()>, ApiError> {
        let place = self.answers.take_many(user, size, most, FEW_ANSWER_BYTES);
        place.ok_or_else(ApiError::too_many_requests)
    }

    /// Takes a place for a request of a user.
    pub(crate) fn enter(&self, user: &UserInfo) -> Result<Turn, ApiError> {
        if self.is_exempt(user) {
            return Ok(Turn::Exempt);
        }
        let place = self.users.take(&user.name, HEAVY_REQUESTS_OF_A_USER);
        place.map(Turn::Counted).ok_or_else(ApiError::too_many_requests)
    }

    /// Handles a request when it is its turn, within `limit` from then on. Boxed, so that the others stay small.
    pub(crate) async fn run<T>(
        &self,
        turn: Turn,
        limit: Duration,
        mut request: BoxFuture<'_, Result<T, ApiError>>,
    ) -> Result<T, ApiError> {
        let Turn::Counted(place) = turn else {
            let handled = std::future::poll_fn(|cx| at_once(|| request.as_mut().poll(cx)));
            return deadline::within(limit, handled).await;
        };
        let Ok(first) = tokio::time::timeout(HEAVY_WAIT, self.permits(&place)).await else {
            return Err(ApiError::too_many_requests());
        };
        deadline::within(limit, self.in_turns(&place, first, request)).await
    }

    /// Awaits work for a watch in a turn of its user. `watch` is its place among those of the user; one without a place does not wait. The work
    /// leaves the runtime by itself ([`at_once`]).
    pub(crate) async fn work<T>(&self, watch: Option<&Place<()>>, work: impl Future<Output = T>) -> T {
        let Some(watch) = watch else {
            return work.await;
        };
        let user = self.users.share(watch.user());
        let _turn = self.permits(&user).await;
        work.await
    }

    async fn permits<'a>(&'a self, place: &'a Place<OfAUser>) -> Permits<'a> {
        // Never closed: they live as long as the server and the place.
        let of_user = place.shared.turns.acquire().await;
        (of_user, self.running.acquire().await)
    }

    /// Handles a request that has a turn. It gives the turn back where it waits for webhooks, and goes on in another one. Not once it has begun to
    /// write: then nothing may keep it from its end.
    async fn in_turns<T>(&self, place: &Place<OfAUser>, first: Permits<'_>, request: BoxFuture<'_, T>) -> T {
        let waits = Arc::<Waits>::default();
        let mut request = std::pin::pin!(WAITS.scope(Arc::clone(&waits), request));
        let mut turn = Some(first);
        loop {
            let step = std::future::poll_fn(|cx| Poll::Ready(at_once(|| request.as_mut().poll(cx))));
            if let Poll::Ready(done) = step.await {
                return done;
            }
            let may_give_back = waits.webhooks.load(Ordering::Relaxed) > 0 && !waits.writes.load(Ordering::Relaxed);
            let parked = may_give_back.then(|| place.shared.parked.try_acquire().ok()).flatten();
            if parked.is_some() {
                turn = None;
            }
            // Until something that it waits for has happened.
            futures::pending!();
            if turn.is_none() {
                turn = Some(self.permits(place).await);
            }
        }
    }
}

/// The answers to a user, which are counted until they are sent.
pub(crate) struct Answers<'a> {
    heavy: &'a Heavy,
    user: &'a UserInfo,
    /// Whether they may be refused. What is written is written.
    pub(crate) is_read: bool,
}

impl Answers<'_> {
    /// Counts an answer of a size, unless it is a small one, or the user is not counted.
    pub(crate) fn count(&self, size: usize) -> Result<Option<Arc<Place<()>>>, ApiError> {
        if size <= LIGHT_ANSWER_BYTES || self.heavy.is_exempt(self.user) {
            return Ok(None);
        }
        let most = if self.is_read {
            ANSWER_BYTES_OF_A_USER
        } else {
            usize::MAX
        };
        let place = self.heavy.unsent(&self.user.name, size, most)?;
        Ok(Some(Arc::new(place)))
    }
}

/// The permits of a turn: one of the user, and one of all.
type Permits<'a> = (
    Result<SemaphorePermit<'a>, AcquireError>,
    Result<SemaphorePermit<'a>, AcquireError>,
);

tokio::task_local! {
    /// Of the request that the current task handles, if it takes turns.
    static WAITS: Arc<Waits>;
}

/// What a request is doing. It may wait for several webhooks at the same time.
#[derive(Default)]
struct Waits {
    /// The number of webhooks that it waits for.
    webhooks: AtomicUsize,
    /// Whether it has begun to write.
    writes: AtomicBool,
}

/// Counts a webhook until it is dropped.
struct Wait(Arc<Waits>);

impl Wait {
    fn begin(waits: Arc<Waits>) -> Self {
        waits.webhooks.fetch_add(1, Ordering::Relaxed);
        Self(waits)
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.0.webhooks.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Awaits what another process computes. The request of the current task has no turn meanwhile, and goes on in its next one, within its
/// deadline. What is awaited goes on while the request waits for that turn, so a time limit in it is about the other process alone.
pub(crate) async fn elsewhere<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    let Ok(waits) = WAITS.try_with(Arc::clone) else {
        return work.await;
    };
    let _wait = Wait::begin(waits);
    let mut task = Aborted(tokio::spawn(work));
    match (&mut task.0).await {
        Ok(done) => done,
        Err(ended) => match ended.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is ending, and this request with it.
            Err(_) => std::future::pending().await,
        },
    }
}

/// A task that ends when its request is given up.
struct Aborted<T>(JoinHandle<T>);

impl<T> Drop for Aborted<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Says that the request of the current task writes now. From then on it keeps its turn: it must not fail for want of one.
pub(crate) fn begin_to_write() {
    // Others take no turns.
    let _ = WAITS.try_with(|waits| waits.writes.store(true, Ordering::Relaxed));
}

/// Whether something was expensive not long ago.
#[derive(Debug, Default)]
pub(crate) struct Remembered(AtomicU64);

impl Remembered {
    /// It is expensive now.
    pub(crate) fn note(&self) {
        self.0.store(seconds() + RULES_REMEMBERED.as_secs(), Ordering::Relaxed);
    }

    /// Whether it was expensive lately.
    pub(crate) fn is_recent(&self) -> bool {
        let until = self.0.load(Ordering::Relaxed);
        until > 0 && seconds() < until
    }
}

/// Seconds since some time before.
fn seconds() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_secs()
}

/// Works while another thread takes over what else the current one had to do. A runtime with a single thread has no other.
pub(crate) fn at_once<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

#[cfg(test)]
mod tests {
    use windlass_meta::budget::REQUEST_TIME;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_was_expensive_is_forgotten() {
        let rules = Remembered::default();
        assert!(!rules.is_recent());
        rules.note();
        tokio::time::advance(RULES_REMEMBERED.saturating_sub(Duration::from_secs(1))).await;
        assert!(rules.is_recent());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!rules.is_recent());
    }

    /// All turns of a server.
    async fn all(heavy: &Heavy) -> SemaphorePermit<'_> {
        heavy.running.acquire_many(slots().try_into().unwrap()).await.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_is_waited_for_up_to_a_limit() {
        let (heavy, user) = (Heavy::default(), UserInfo::new("a", &[]));
        let run = || heavy.run(heavy.enter(&user).unwrap(), REQUEST_TIME, Box::pin(async { Ok(()) }));
        let tick = Duration::from_millis(1);
        for (waits, want) in [(HEAVY_WAIT.saturating_sub(tick), None), (HEAVY_WAIT + tick, Some(429))] {
            let turns = all(&heavy).await;
            let mut request = std::pin::pin!(run());
            assert!(futures::poll!(&mut request).is_pending());
            tokio::time::advance(waits).await;
            let answered = futures::poll!(&mut request);
            drop(turns);
            let answered = match answered {
                Poll::Ready(answered) => answered,
                Poll::Pending => request.await,
            };
            assert_eq!(answered.err().map(|error| error.code), want);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_waits_for_a_webhook_has_no_turn_until_it_writes() {
        let (heavy, user) = (Heavy::default(), UserInfo::new("a", &[]));
        for writes in [false, true] {
            let (answer, webhook) = tokio::sync::oneshot::channel::<()>();
            let request = async {
                if writes {
                    begin_to_write();
                }
                elsewhere(webhook).await.unwrap();
                Ok(())
            };
            let mut request = std::pin::pin!(heavy.run(heavy.enter(&user).unwrap(), REQUEST_TIME, Box::pin(request)));
            assert!(futures::poll!(&mut request).is_pending());
            let turns = heavy.running.available_permits();
            assert_eq!(turns, slots() - usize::from(writes));
            let others = heavy.running.acquire_many(turns.try_into().unwrap()).await.unwrap();
            answer.send(()).unwrap();
            // It takes a turn again before it goes on.
            assert_eq!(request.await.err().map(|error| error.code), (!writes).then_some(504));
            drop(others);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_of_a_webhook_does_not_include_the_wait_for_a_turn() {
        let (heavy, user) = (Heavy::default(), UserInfo::new("a", &[]));
        let second = Duration::from_secs(1);
        let request = async {
            let answer = elsewhere(tokio::time::timeout(2 * second, tokio::time::sleep(second))).await;
            Ok(answer.is_ok())
        };
        let mut request = std::pin::pin!(heavy.run(heavy.enter(&user).unwrap(), REQUEST_TIME, Box::pin(request)));
        assert!(futures::poll!(&mut request).is_pending());
        let others = all(&heavy).await;
        assert!(tokio::time::timeout(5 * second, &mut request).await.is_err());
        drop(others);
        assert!(request.await.unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn few_requests_of_a_user_give_their_turn_back() {
        let (heavy, user) = (Heavy::default(), UserInfo::new("a", &[]));
        let run = || {
            let request = async {
                elsewhere(std::future::pending::<()>()).await;
                Ok(())
            };
            Box::pin(heavy.run(heavy.enter(&user).unwrap(), REQUEST_TIME, Box::pin(request)))
        };
        let mut requests: Vec<_> = (0..PARKED_OF_A_USER).map(|_| run()).collect();
        for request in &mut requests {
            assert!(futures::poll!(request).is_pending());
        }
        assert_eq!(heavy.running.available_permits(), slots());
        let mut another = run();
        assert!(futures::poll!(&mut another).is_pending());
        assert_eq!(heavy.running.available_permits(), slots() - 1);
    }

    #[test]
    fn answers_are_counted_until_they_are_sent() {
        let (heavy, user) = (Heavy::default(), UserInfo::new("a", &[]));
        let answered = |user: &UserInfo, is_read: bool, size: usize| {
            let answered = heavy.answer(user, is_read, Response::new(ApiBody::whole(vec![b' '; size])));
            (answered.status().as_u16(), answered)
        };
        let answer = |user: &UserInfo, size: usize| answered(user, true, size);
        let first = answer(&user, ANSWER_BYTES_OF_A_USER);
        assert_eq!(first.0, 200);
        assert!(heavy.reads(&user).is_err() && heavy.reads(&UserInfo::new("b", &[])).is_ok());
        assert_eq!(answer(&user, LIGHT_ANSWER_BYTES + 1).0, 429);
        assert_eq!(answered(&user, false, LIGHT_ANSWER_BYTES + 1).0, 200, "it is written");
        assert_eq!(answer(&user, LIGHT_ANSWER_BYTES).0, 200);
        assert_eq!(answer(&UserInfo::new("b", &[]), LIGHT_ANSWER_BYTES + 1).0, 200);
        // Bytes that the connection holds are not sent yet.
        let held = first.1.body().bytes().cloned();
        drop(first);
        assert_eq!(answer(&user, LIGHT_ANSWER_BYTES + 1).0, 429);
        drop(held);
        let few = answer(&user, FEW_ANSWER_BYTES);
        let one_more = answer(&user, ANSWER_BYTES_OF_A_USER);
        assert_eq!(
            (few.0, one_more.0),
            (200, 200),
            "a list of any size, beside a few others"
        );
        assert_eq!(answer(&user, LIGHT_ANSWER_BYTES + 1).0, 429);
    }
}
