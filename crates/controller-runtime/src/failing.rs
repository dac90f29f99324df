//! The log of failures: a failure is logged when it lasts, at growing intervals while the same failure goes on, and when it ends. No cause is
//! logged more than once a minute, also if the failure ends and begins again meanwhile.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use windlass_meta::repeats::{INTERVAL, cause};

use crate::object::ObjectKey;

/// A failure counts as lasting from this backoff on. Shorter ones, such as conflicts, need no attention.
const LASTING: Duration = Duration::from_millis(500);
/// The longest time between two lines about the same failure.
const MOST: Duration = Duration::from_hours(1);
/// The number of different failures that are known of one thing, so that failures that alternate are logged like one that lasts.
const KNOWN: usize = 4;

/// The failures of one thing (an object, a watch, a connection), as far as they were logged.
#[derive(Debug, Default)]
pub struct Failing {
    known: Vec<Known>,
    /// A failure was logged, and its end was not.
    is_logged: bool,
    /// The failures that were left out because too many were known.
    others: u64,
}

/// A failure that was logged.
#[derive(Debug)]
struct Known {
    cause: String,
    said: Instant,
    interval: Duration,
    left_out: u64,
}

impl Known {
    fn is_due(&self, after: Duration, now: Instant) -> bool {
        now.saturating_duration_since(self.said) >= after
    }
}

impl Failing {
    /// Records a failure with this backoff. It has to be logged if it is new and lasts, or if the last line about it is long ago: returns how
    /// often it was left out before.
    pub fn failed(&mut self, text: &str, delay: Duration, now: Instant) -> Option<u64> {
        if delay < LASTING {
            return None;
        }
        let cause = cause(text);
        if let Some(same) = self.known.iter_mut().find(|known| known.cause == cause) {
            if !same.is_due(same.interval, now) {
                same.left_out += 1;
                return None;
            }
            same.interval = (same.interval * 2).min(MOST);
            same.said = now;
            self.is_logged = true;
            return Some(std::mem::take(&mut same.left_out));
        }
        if self.known.len() == KNOWN {
            let Some(oldest) = self.known.iter().position(|known| known.is_due(INTERVAL, now)) else {
                self.others += 1;
                return None;
            };
            self.others += self.known.remove(oldest).left_out;
        }
        self.known.push(Known {
            cause,
            said: now,
            interval: INTERVAL,
            left_out: 0,
        });
        self.is_logged = true;
        Some(std::mem::take(&mut self.others))
    }

    /// Records a success. Whether a failure was logged before it, so that its end has to be.
    pub fn ended(&mut self, now: Instant) -> bool {
        self.known.retain(|known| !known.is_due(INTERVAL, now));
        for known in &mut self.known {
            known.interval = INTERVAL;
        }
        std::mem::take(&mut self.is_logged)
    }
}

/// The failures of all objects of a controller.
#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<HashMap<ObjectKey, Failing>>);

impl Failures {
    /// [`Failing::failed`] for an object.
    pub(crate) fn failed(&self, key: &ObjectKey, text: &str, delay: Duration, now: Instant) -> Option<u64> {
        self.0.lock().entry(key.clone()).or_default().failed(text, delay, now)
    }

    /// [`Failing::failed`] for a failure of an object that is logged also if it does not last.
    pub(crate) fn grave(&self, key: &ObjectKey, text: &str, now: Instant) -> Option<u64> {
        self.failed(key, text, LASTING, now)
    }

    /// [`Failing::ended`] for an object.
    pub(crate) fn ended(&self, key: &ObjectKey, now: Instant) -> bool {
        let mut all = self.0.lock();
        let Some(failing) = all.get_mut(key) else {
            return false;
        };
        let was_logged = failing.ended(now);
        if failing.known.is_empty() {
            all.remove(key);
        }
        was_logged
    }

    /// Drops the record of an object that is gone.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.0.lock().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_logged_at_its_beginning_and_at_growing_intervals_until_it_ends() {
        let (failures, key, start) = (Failures::default(), ObjectKey::new("n", "a"), Instant::now());
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let logged = |text: &str, seconds: u64| failures.failed(&key, text, LASTING, at(seconds));
        assert_eq!(failures.failed(&key, "a", LASTING / 2, start), None);
        assert!(!failures.ended(&key, start), "it did not last");
        let lines = (0..36_000)
            .filter_map(|second| logged("a", second).map(|left_out| (second, left_out)))
            .collect::<Vec<_>>();
        assert_eq!(lines[..5], [(0, 0), (60, 59), (180, 119), (420, 239), (900, 479)]);
        assert!(lines.len() < 20, "{lines:?}");
        assert_eq!(logged("b", 36_000), Some(0), "another failure");
        assert!(logged("a", 36_000).is_none() && logged("b", 36_001).is_none());
        assert!(failures.ended(&key, at(36_001)) && !failures.ended(&key, at(36_001)));
        assert_eq!(logged("a", 36_002), Some(0), "it begins again");
        failures.forget(&key);
        assert!(!failures.ended(&key, at(36_002)));
    }

    #[test]
    fn what_fails_and_works_in_turns_is_logged_once_a_minute() {
        let (failures, key, start) = (Failures::default(), ObjectKey::new("n", "a"), Instant::now());
        let (mut begins, mut ends) = (0, 0);
        for second in 0..600 {
            let now = start + Duration::from_secs(second);
            // The text differs each time.
            let text = format!("no answer to request {second}");
            begins += u32::from(failures.failed(&key, &text, LASTING, now).is_some());
            ends += u32::from(failures.ended(&key, now));
        }
        assert_eq!((begins, ends), (10, 10));
        assert!(!failures.ended(&key, start + Duration::from_secs(700)));
        assert!(failures.0.lock().is_empty(), "nothing is kept of what works");
    }

    #[test]
    fn many_failures_of_one_object_are_logged_a_few_times_a_minute() {
        let (mut failing, start) = (Failing::default(), Instant::now());
        let (mut lines, mut left_out) = (0, 0);
        for n in 0..6000_u64 {
            let text = ["a", "b", "c", "d", "e", "f", "g", "h"][usize::try_from(n % 8).unwrap()];
            if let Some(before) = failing.failed(text, LASTING, start + Duration::from_millis(n * 100)) {
                lines += 1;
                left_out += before;
            }
        }
        assert!(lines <= 10 * KNOWN, "{lines} lines in ten minutes");
        assert!(left_out > 3000, "{left_out}");
    }
}
