//! Where the time comes from.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};

/// Tells the time.
pub trait Clock: Send + Sync + Debug {
    /// The present time.
    fn now(&self) -> Timestamp;
}

/// The clock of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A clock that advances only by explicit calls. Clones share one time.
#[derive(Clone, Debug)]
pub struct FakeClock(Arc<Mutex<Timestamp>>);

impl FakeClock {
    /// A clock standing at `start`.
    pub fn new(start: Timestamp) -> Self {
        Self(Arc::new(Mutex::new(start)))
    }

    /// Moves the clock by `by` (also backwards), stopping at the ends of representable time.
    pub fn advance(&self, by: SignedDuration) {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *now = now.saturating_add(by).unwrap_or(*now);
    }

    /// Puts the clock to `now`.
    pub fn set(&self, now: Timestamp) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }
}

impl Default for FakeClock {
    /// Stands at an arbitrary fixed time.
    fn default() -> Self {
        Self::new(Timestamp::constant(1_800_000_000, 0))
    }
}

impl Clock for FakeClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_of_a_fake_clock_share_one_time() {
        let clock = FakeClock::default();
        let other = clock.clone();
        let before = other.now();
        clock.advance(SignedDuration::from_secs(90));
        assert_eq!(other.now().duration_since(before), SignedDuration::from_secs(90));
    }
}
