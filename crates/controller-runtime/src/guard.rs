//! The own-writes guard: which writes the caches must have seen before an object may be reconciled again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

/// A change to one object that a cache must have seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Everything of the kind up to this resourceVersion.
    Version(u64),
    /// That the object with this uid is gone.
    Gone(String),
}

/// Counts open needs and calls a function once, when the last need is met.
pub(crate) struct Latch {
    open: AtomicUsize,
    then: Mutex<Option<Box<dyn FnOnce() + Send>>>,
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

    fn fire(&self) {
        if let Some(then) = self.then.lock().take() {
            then();
        }
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

    #[test]
    fn fires_at_once_without_needs() {
        assert!(flag(0).1.load(Ordering::SeqCst));
    }
}
