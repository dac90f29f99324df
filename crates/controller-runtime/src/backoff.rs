//! Growing delays with jitter.

use std::time::Duration;

/// Exponential delays with full-range jitter of a quarter: from `first` doubling up to `most`.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    first: Duration,
    most: Duration,
}

impl Backoff {
    /// Delays from `first`, doubling, up to `most`.
    pub const fn new(first: Duration, most: Duration) -> Self {
        Self { first, most }
    }

    /// The backoff of controllers, per object: 5 ms up to 1000 s.
    pub const fn per_object() -> Self {
        Self::new(Duration::from_millis(5), Duration::from_secs(1000))
    }

    /// The backoff of watches: 50 ms up to 30 s.
    pub const fn per_watch() -> Self {
        Self::new(Duration::from_millis(50), Duration::from_secs(30))
    }

    /// The delay before try number `failures` (1 = after the first failure); `roll` in 0..1 spreads it by a quarter up.
    pub fn delay(&self, failures: u32, roll: f64) -> Duration {
        let doublings = failures.saturating_sub(1).min(32);
        let base = self
            .first
            .saturating_mul(2_u32.saturating_pow(doublings))
            .min(self.most);
        base.mul_f64(1.0 + 0.25 * roll.clamp(0.0, 1.0))
    }

    /// [`Self::delay`] with a random roll.
    pub fn jittered(&self, failures: u32) -> Duration {
        self.delay(failures, rand::random::<f64>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_up_to_the_limit() {
        let b = Backoff::per_object();
        assert_eq!(b.delay(1, 0.0), Duration::from_millis(5));
        assert_eq!(b.delay(2, 0.0), Duration::from_millis(10));
        assert_eq!(b.delay(5, 0.0), Duration::from_millis(80));
        assert_eq!(b.delay(60, 0.0), Duration::from_secs(1000));
        assert_eq!(b.delay(60, 1.0), Duration::from_secs(1250));
    }
}
