//! The own-writes guard: which writes the caches must have seen before an object may be reconciled again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::object::{ObjectKey, key_of};

/// A change to one object that a cache must have seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Everything of the kind up to this resourceVersion.
    Version(u64),
    /// That the object with this uid is gone.
    Gone(String),
}

/// One version, or the deletion, of an object: what an event shows, and what a write causes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Effect {
    pub(crate) key: ObjectKey,
    pub(crate) need: Need,
}

impl Effect {
    /// What the event of a cache shows, from the object before and after it. `None` when the event names no version.
    pub(crate) fn of(old: Option<&ObjectMeta>, new: Option<&ObjectMeta>) -> Option<Self> {
        let (meta, need) = match (old, new) {
            (_, Some(new)) => (new, Need::Version(new.resource_version.as_deref()?.parse().ok()?)),
            (Some(old), None) => (old, Need::Gone(old.uid.clone()?)),
            (None, None) => return None,
        };
        Some(Self {
            key: key_of(meta),
            need,
        })
    }
}

/// Counts open needs and calls a function once, when the last need is met.
pub(crate) struct Latch {
    open: AtomicUsize,
    then: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    fired: Notify,
}

impl std::fmt::Debug for Latch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Latch")
            .field("open", &self.open)
            .finish_non_exhaustive()
    }
}

impl Latch {
    /// A latch with `open` needs. With zero needs, `then` runs at once and [`Self::release`] must not be called.
    pub(crate) fn new(open: usize, then: impl FnOnce() + Send + 'static) -> Arc<Self> {
        let latch = Arc::new(Self {
            open: AtomicUsize::new(open),
            then: Mutex::new(Some(Box::new(then))),
            fired: Notify::new(),
        });
        if open == 0 {
            latch.fire();
        }
        latch
    }

    /// Marks one need as met.
    pub(crate) fn release(&self) {
        if self.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.fire();
        }
    }

    /// Whether needs are open.
    pub(crate) fn is_open(&self) -> bool {
        self.then.lock().is_some()
    }

    /// Waits until the last need is met, at most for `limit`. Then it fires anyway, and the answer is false.
    pub(crate) async fn fired_within(&self, limit: Duration) -> bool {
        let is_met = tokio::time::timeout(limit, self.fired.notified()).await.is_ok();
        !self.fire() || is_met
    }

    /// Calls the function if that has not happened yet.
    fn fire(&self) -> bool {
        let then = self.then.lock().take();
        let is_first = then.is_some();
        if let Some(then) = then {
            then();
            self.fired.notify_one();
        }
        is_first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    fn flag(open: usize) -> (Arc<Latch>, Arc<AtomicBool>) {
        let done = Arc::new(AtomicBool::new(false));
        let d = done.clone();
        (Latch::new(open, move || d.store(true, Ordering::SeqCst)), done)
    }

    #[test]
    fn fires_with_the_last_release() {
        let (latch, done) = flag(2);
        latch.release();
        assert!(!done.load(Ordering::SeqCst));
        latch.release();
        assert!(done.load(Ordering::SeqCst));
    }

    #[tokio::test(start_paused = true)]
    async fn fires_after_the_limit_although_a_need_is_open() {
        let limit = Duration::from_secs(9);
        let (latch, done) = flag(1);
        let start = tokio::time::Instant::now();
        assert!(!latch.fired_within(limit).await);
        assert_eq!(start.elapsed(), limit);
        assert!(done.load(Ordering::SeqCst) && !latch.is_open());
        let (latch, _) = flag(1);
        latch.release();
        assert!(latch.fired_within(limit).await);
        assert_eq!(start.elapsed(), limit);
    }

    #[test]
    fn fires_at_once_without_needs() {
        assert!(flag(0).1.load(Ordering::SeqCst));
    }
}
