//! Where the time comes from.

use std::cell::Cell;
use std::fmt::Debug;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

/// Tells the time.
pub trait Clock: Send + Sync + Debug {
    /// The present time.
    fn now(&self) -> Timestamp;

    /// The time since some fixed moment, which adjustments of the time of day do not change. It may stand still while the machine
    /// is suspended. By default it follows [`Self::now`].
    fn steady(&self) -> Duration {
        Duration::try_from(self.now().duration_since(Timestamp::UNIX_EPOCH)).unwrap_or_default()
    }
}

/// The moment that the steady time of the machine counts from.
static FIRST: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The clock of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn steady(&self) -> Duration {
        FIRST.elapsed()
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

    fn steady(&self) -> Duration {
        (**self).steady()
    }
}

/// The time at which a decision is made, and the earliest deadline that the decision depends on.
///
/// A rule that depends on time asks [`Moment::reached`] or [`Moment::elapsed`] and never compares times itself. The answer is
/// "holds" (true) or "not before that time" (false, and the deadline is recorded). The driver schedules a reconcile for the earliest
/// recorded deadline, so no rule can change its answer without being evaluated again.
#[derive(Debug)]
pub struct Moment {
    now: Timestamp,
    next: Cell<Option<Timestamp>>,
}

impl Moment {
    /// A decision made at `now`, without deadlines so far.
    pub fn at(now: Timestamp) -> Self {
        Self {
            now,
            next: Cell::new(None),
        }
    }

    /// The present time, for time stamps. Not for comparisons: those go through [`Self::reached`].
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Whether `deadline` is now or in the past. A deadline in the future is recorded.
    pub fn reached(&self, deadline: Timestamp) -> bool {
        if deadline <= self.now {
            return true;
        }
        let earlier = self.next.get().map_or(deadline, |next| next.min(deadline));
        self.next.set(Some(earlier));
        false
    }

    /// Whether at least `limit` has elapsed since `start`. The end of the limit is recorded when it is in the future.
    pub fn elapsed(&self, start: Timestamp, limit: SignedDuration) -> bool {
        // Beyond the end of time is never.
        start.checked_add(limit).is_ok_and(|end| self.reached(end))
    }

    /// Whether `deadline` is still to come: the opposite of [`Self::reached`].
    pub fn precedes(&self, deadline: Timestamp) -> bool {
        !self.reached(deadline)
    }

    /// The earliest recorded deadline. Always later than [`Self::now`].
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.next.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_deadline_that_is_still_to_come_is_recorded() {
        let at = |second: i64| Timestamp::constant(1_800_000_000 + second, 0);
        let moment = Moment::at(at(10));
        assert!(moment.reached(at(9)) && moment.reached(at(10)));
        assert_eq!(moment.next_deadline(), None);
        assert!(!moment.reached(at(30)));
        assert!(!moment.elapsed(at(5), SignedDuration::from_secs(7)));
        assert!(moment.precedes(at(20)));
        assert_eq!(moment.next_deadline(), Some(at(12)));
        assert!(moment.elapsed(at(5), SignedDuration::from_secs(5)));
        assert!(!moment.elapsed(at(5), SignedDuration::MAX));
        assert_eq!(moment.next_deadline(), Some(at(12)));
        let moment = Moment::at(at(10));
        assert!(!moment.elapsed(at(5), SignedDuration::MAX));
        assert_eq!(moment.next_deadline(), None);
    }

    #[test]
    fn clones_of_a_fake_clock_share_one_time() {
        let clock = FakeClock::default();
        let other = clock.clone();
        let before = other.now();
        clock.advance(SignedDuration::from_secs(90));
        assert_eq!(other.now().duration_since(before), SignedDuration::from_secs(90));
    }
}
