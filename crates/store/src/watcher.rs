//! Watches: the changes of one resource.

use std::sync::Arc;

use tokio::sync::watch;

use crate::record::Event;
use crate::store::Store;

/// The requested changes are no longer in the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("changes before revision {oldest} are no longer known")]
pub struct Expired {
    /// The oldest revision after which changes are available.
    pub oldest: u64,
}

/// A position in the log of a resource. It has no changes itself: a slow reader costs nothing, and gets [`Expired`] when it is
/// too slow.
#[derive(Debug)]
pub struct Watcher {
    store: Store,
    resource: Arc<str>,
    cursor: u64,
    changed: watch::Receiver<u64>,
    followers: usize,
}

impl Watcher {
    pub(crate) fn new(store: Store, resource: Arc<str>, cursor: u64, changed: watch::Receiver<u64>) -> Self {
        Self {
            store,
            resource,
            cursor,
            changed,
            followers: 0,
        }
    }

    /// The changes since the last call, without waiting.
    pub fn take(&mut self) -> Result<Vec<Arc<Event>>, Expired> {
        self.changed.borrow_and_update();
        let taken = self.store.events_after(&self.resource, self.cursor)?;
        self.cursor = self.cursor.max(taken.revision);
        self.followers = taken.followers;
        Ok(taken.events)
    }

    /// Number of watchers at the last read. With many, sharing the encoding of a change saves work.
    pub fn followers(&self) -> usize {
        self.followers
    }

    /// Waits until there may be changes. Cancellation is safe.
    pub async fn changed(&mut self) {
        if self.changed.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// The revision up to which all changes of the resource have been taken.
    pub fn position(&self) -> u64 {
        self.cursor
    }
}
