//! Requests that keep a processor busy. They take turns, so that the threads of the runtime stay free for all others.
//!
//! A request is heavy if its body is large, or if what it reads or changes is. It runs outside the threads of the runtime. Few run at the
//! same time, of one user at most half of them, and those that wait are counted: more are refused, as API Priority and Fairness does.
//! Members of `system:masters` do not wait and are not counted: the controllers of the same process are among them.

use std::num::NonZero;
use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;
use windlass_meta::budget::{HEAVY_REQUESTS_OF_A_USER, HEAVY_WAIT};
use windlass_rbac::user::UserInfo;

use crate::error::ApiError;
use crate::http::per_user::{PerUser, Place};

/// All heavy requests of a server.
pub(crate) struct Heavy {
    running: Semaphore,
    users: Arc<PerUser<OfAUser>>,
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
