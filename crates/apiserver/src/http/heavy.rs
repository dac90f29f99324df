//! Requests that keep a processor busy. They take turns, so that the threads of the runtime stay free for all others.
//!
//! A request is heavy if its body is large, or if what it reads or changes is. It runs outside the threads of the runtime. Few run at the
//! same time, of one user at most half of them, and those that wait are counted: more are refused, as API Priority and Fairness does.
//! Members of `system:masters` do not wait and are not counted: the controllers of the same process are among them.

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::Response;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use windlass_meta::budget::{
    ANSWER_BYTES_OF_A_USER, BODIES_OF_A_USER, HEAVY_REQUESTS_OF_A_USER, HEAVY_WAIT, LIGHT_ANSWER_BYTES,
    RULES_REMEMBERED,
};
use windlass_rbac::user::UserInfo;

use crate::error::ApiError;
use crate::http::body::ApiBody;
use crate::http::per_user::{PerUser, Place};

/// All heavy requests of a server.
pub(crate) struct Heavy {
    running: Semaphore,
    users: Arc<PerUser<OfAUser>>,
    bodies: Arc<PerUser<()>>,
    answers: Arc<PerUser<()>>,
}

/// The requests of one user that run.
#[derive(Debug)]
pub(crate) struct OfAUser(Semaphore);

/// How many heavy requests run at the same time: one for each processor, and never only those of one user.
fn slots() -> usize {
    std::thread::available_parallelism().map_or(2, NonZero::get).max(2)
}

impl Default for Heavy {
    fn default() -> Self {
        Self {
            running: Semaphore::new(slots()),
            users: Arc::default(),
            bodies: Arc::default(),
            answers: Arc::default(),
        }
    }
}

impl Default for OfAUser {
    fn default() -> Self {
        Self(Semaphore::new(slots() / 2))
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
    /// Takes a place for a body that has begun to arrive.
    pub(crate) fn arrive(&self, user: &UserInfo) -> Result<Option<Place<()>>, ApiError> {
        if user.is_master() {
            return Ok(None);
        }
        let place = self.bodies.take(&user.name, BODIES_OF_A_USER);
        place.map(Some).ok_or_else(ApiError::too_many_requests)
    }

    /// Counts a large answer until its last byte is sent. It is refused if others to the same user wait to be sent.
    pub(crate) fn answer(&self, user: &UserInfo, answer: Response<ApiBody>) -> Response<ApiBody> {
        let size = answer.body().bytes().map_or(0, Bytes::len);
        if size <= LIGHT_ANSWER_BYTES || user.is_master() {
            return answer;
        }
        let Some(place) = self.answers.take_many(&user.name, size, ANSWER_BYTES_OF_A_USER) else {
            return crate::http::body::error(&ApiError::too_many_requests());
        };
        answer.map(|body| body.counted(place))
    }

    /// Takes a place for a request of a user.
    pub(crate) fn enter(&self, user: &UserInfo) -> Result<Turn, ApiError> {
        if user.is_master() {
            return Ok(Turn::Exempt);
        }
        let place = self.users.take(&user.name, HEAVY_REQUESTS_OF_A_USER);
        place.map(Turn::Counted).ok_or_else(ApiError::too_many_requests)
    }

    /// Handles a request when it is its turn. Boxed, so that the others stay small.
    pub(crate) async fn run<T>(&self, turn: Turn, request: BoxFuture<'_, Result<T, ApiError>>) -> Result<T, ApiError> {
        let Turn::Counted(place) = turn else {
            return off_the_runtime(request).await;
        };
        let permits = async {
            // Never closed: they live as long as the server and the place.
            let of_user = place.shared.0.acquire().await;
            (of_user, self.running.acquire().await)
        };
        let Ok(_permits) = tokio::time::timeout(HEAVY_WAIT, permits).await else {
            return Err(ApiError::too_many_requests());
        };
        off_the_runtime(request).await
    }
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

/// Runs a future to its end while another thread takes over what else the current one had to do. A runtime with a single thread has no other.
async fn off_the_runtime<T>(work: BoxFuture<'_, T>) -> T {
    let runtime = Handle::current();
    match runtime.runtime_flavor() {
        RuntimeFlavor::MultiThread => tokio::task::block_in_place(|| runtime.block_on(work)),
        _ => work.await,
    }
}

/// [`off_the_runtime`] for work that does not wait for anything.
pub(crate) fn at_once<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_was_expensive_is_forgotten() {
        let rules = Remembered::default();
        assert!(!rules.is_recent());
        rules.note();
        assert!(rules.is_recent());
        tokio::time::advance(RULES_REMEMBERED).await;
        assert!(!rules.is_recent());
    }

    #[test]
    fn large_answers_are_counted_until_they_are_sent() {
        let (heavy, user) = (Heavy::default(), UserInfo::new("a", &[]));
        let answer = |user: &UserInfo, size: usize| {
            let answered = heavy.answer(user, Response::new(ApiBody::whole(vec![b' '; size])));
            (answered.status().as_u16(), answered)
        };
        let first = answer(&user, ANSWER_BYTES_OF_A_USER);
        assert_eq!(first.0, 200);
        assert_eq!(answer(&user, LIGHT_ANSWER_BYTES + 1).0, 429);
        assert_eq!(answer(&user, LIGHT_ANSWER_BYTES).0, 200);
        assert_eq!(answer(&UserInfo::new("b", &[]), LIGHT_ANSWER_BYTES + 1).0, 200);
        // Bytes that the connection holds are not sent yet.
        let held = first.1.body().bytes().cloned();
        drop(first);
        assert_eq!(answer(&user, LIGHT_ANSWER_BYTES + 1).0, 429);
        drop(held);
        assert_eq!(answer(&user, LIGHT_ANSWER_BYTES + 1).0, 200);
    }
}
