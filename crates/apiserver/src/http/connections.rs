//! The open connections of a server. Those of a user are counted. Those without an authenticated request make room for each other: clients
//! without credentials must not be able to keep users away.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use windlass_meta::budget::{CONNECTIONS_OF_A_USER, UNKNOWN_CONNECTIONS};
use windlass_rbac::user::{ANONYMOUS, UserInfo};

use crate::error::ApiError;
use crate::http::per_user::{PerUser, Place};

/// All open connections.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    users: Arc<PerUser<()>>,
    unknown: Mutex<Unknown>,
}

/// The connections without an authenticated request, oldest first.
#[derive(Debug, Default)]
struct Unknown {
    last: u64,
    replaced: BTreeMap<u64, CancellationToken>,
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct Connection {
    of: Arc<Connections>,
    number: u64,
    /// Set with the first authenticated request: the place among those of the user, which some users do not need. An error is for a
    /// user who has no place left.
    place: OnceLock<Result<Option<Place<()>>, ()>>,
    /// Another connection needs the place of this one.
    pub(crate) replaced: CancellationToken,
    /// The user has too many.
    pub(crate) refused: CancellationToken,
}

impl Connections {
    /// Adds a connection, whose user is not known yet. The oldest of those ends if there are too many.
    pub(crate) fn add(self: &Arc<Self>) -> Connection {
        let replaced = CancellationToken::new();
        let mut unknown = self.unknown.lock();
        unknown.last += 1;
        let number = unknown.last;
        unknown.replaced.insert(number, replaced.clone());
        if unknown.replaced.len() > UNKNOWN_CONNECTIONS
            && let Some((_, oldest)) = unknown.replaced.pop_first()
        {
            oldest.cancel();
        }
        drop(unknown);
        Connection {
            of: Arc::clone(self),
            number,
            place: OnceLock::new(),
            replaced,
            refused: CancellationToken::new(),
        }
    }
}

impl Connection {
    /// Counts the connection as one of the user. Refuses the request, and all further ones, if the user has too many, unless the
    /// user is exempt. A connection without credentials stays among those that make room for each other.
    pub(crate) fn belongs_to(&self, user: &UserInfo, is_exempt: bool) -> Result<(), ApiError> {
        if user.name == ANONYMOUS {
            return Ok(());
        }
        // Of several first requests, one counts the connection, and the others wait for it.
        let place = self.place.get_or_init(|| {
            if is_exempt {
                return Ok(None);
            }
            let place = self.of.users.take(&user.name, CONNECTIONS_OF_A_USER);
            place.map(Some).ok_or(())
        });
        if place.is_err() {
            self.refused.cancel();
            return Err(ApiError::too_many("connections", CONNECTIONS_OF_A_USER));
        }
        self.of.unknown.lock().replaced.remove(&self.number);
        Ok(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.of.unknown.lock().replaced.remove(&self.number);
    }
}

/// Logs at most once a second that connections cannot be accepted.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    logged: Option<Instant>,
    unlogged: u64,
}

impl Refusals {
    /// Notes an error. Returns how many were not logged before it, if it is to be logged.
    pub(crate) fn note(&mut self) -> Option<u64> {
        let now = Instant::now();
        let is_early = |logged: Instant| now.duration_since(logged) < Duration::from_secs(1);
        if self.logged.is_some_and(is_early) {
            self.unlogged += 1;
            return None;
        }
        self.logged = Some(now);
        Some(std::mem::take(&mut self.unlogged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_without_a_user_make_room_for_each_other() {
        let all: Arc<Connections> = Arc::default();
        let known = all.add();
        known.belongs_to(&UserInfo::new("a", &[]), false).unwrap();
        let open = || {
            let connection = all.add();
            connection.belongs_to(&UserInfo::anonymous(), false).unwrap();
            connection
        };
        let many: Vec<Connection> = (0..=UNKNOWN_CONNECTIONS).map(|_| open()).collect();
        assert!(many[0].replaced.is_cancelled() && !many[1].replaced.is_cancelled());
        assert!(!known.replaced.is_cancelled());
        drop(many);
        assert!(all.unknown.lock().replaced.is_empty());
    }

    #[test]
    fn the_connections_of_a_user_are_counted() {
        let all: Arc<Connections> = Arc::default();
        let (user, admin) = (UserInfo::new("a", &[]), UserInfo::admin("b"));
        let open = |user: &UserInfo| {
            let connection = all.add();
            connection.belongs_to(user, user.is_master()).map(|()| connection)
        };
        let mut many: Vec<Connection> = (0..CONNECTIONS_OF_A_USER).map(|_| open(&user).unwrap()).collect();
        let one_more = all.add();
        assert_eq!(one_more.belongs_to(&user, false).unwrap_err().code, 429);
        assert!(one_more.refused.is_cancelled());
        assert!(open(&admin).is_ok() && open(&UserInfo::new("c", &[])).is_ok());
        assert!(many[0].belongs_to(&user, false).is_ok(), "it is counted already");
        many.pop();
        assert!(open(&user).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn errors_are_logged_once_a_second() {
        let mut refusals = Refusals::default();
        assert_eq!(
            (refusals.note(), refusals.note(), refusals.note()),
            (Some(0), None, None)
        );
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!((refusals.note(), refusals.note()), (Some(2), None));
    }
}
