//! Watches: the changes of one resource.

use std::sync::Arc;

use tokio::sync::watch;

use crate::record::Event;
use crate::store::Store;

/// The changes asked for are no longer known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("changes before revision {oldest} are no longer known")]
pub struct Expired {
    /// Changes after this revision are known.
    pub oldest: u64,
}

/// A position in the log of one resource. It holds no changes itself: a slow reader costs nothing, and learns that it was
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

    /// What has happened since the last call, without waiting.
    pub fn take(&mut self) -> Result<Vec<Arc<Event>>, Expired> {
        self.changed.borrow_and_update();
        let taken = self.store.events_after(&self.resource, self.cursor)?;
        self.cursor = self.cursor.max(taken.revision);
        self.followers = taken.followers;
        Ok(taken.events)
    }

    /// Number of watchers at the last read. With many it pays to share the encoding of a change.
    pub fn followers(&self) -> usize {
        self.followers
    }

    /// Waits until something may have happened; can be dropped at any time.
    pub async fn changed(&mut self) {
        if self.changed.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// All changes of the resource up to this revision have been taken.
    pub fn position(&self) -> u64 {
        self.cursor
    }
}
