//! A clock that follows the paused time of the runtime, and can jump.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;
use windlass_meta::Clock;

/// Clones share one time.
#[derive(Clone, Debug)]
pub(super) struct SimClock {
    begun: Instant,
    /// The time of day when the runtime's time began; moved by jumps.
    start: Arc<Mutex<Timestamp>>,
}

impl SimClock {
    pub(super) fn new(start: Timestamp) -> Self {
        Self {
            begun: Instant::now(),
            start: Arc::new(Mutex::new(start)),
        }
    }

    /// Moves the time of day, and no timer: as after a correction, or in a machine that slept.
    pub(super) fn jump(&self, by: SignedDuration) {
        let mut start = self.start.lock().unwrap_or_else(PoisonError::into_inner);
        *start += by;
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        let start = *self.start.lock().unwrap_or_else(PoisonError::into_inner);
        start + SignedDuration::try_from(self.begun.elapsed()).unwrap()
    }
}
