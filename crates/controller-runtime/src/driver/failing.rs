//! The log of failures: a failure is logged when it lasts, at growing intervals while the same failure goes on, and when it ends.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::object::ObjectKey;

/// A failure counts as lasting from this backoff on. Shorter ones, such as conflicts, need no attention.
const LASTING: Duration = Duration::from_millis(500);
/// The time from the first line about a failure to the next one. It doubles with each line.
const FIRST: Duration = Duration::from_secs(30);
/// The longest time between two lines about the same failure.
const MOST: Duration = Duration::from_hours(1);
/// The number of different failures that are known of one object, so that failures that alternate are logged like one that lasts.
const KNOWN: usize = 4;

/// Whether a failure is logged now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// It is new, or the last line about it is long ago.
    New,
    /// It was logged, or is too short to be logged.
    Before,
}

/// The logged failures of all objects of a controller since their last success.
#[derive(Debug, Default)]
pub(super) struct Failures(Mutex<HashMap<ObjectKey, Vec<Known>>>);

/// A failure that was logged.
#[derive(Debug)]
struct Known {
    text: String,
    next: Instant,
    interval: Duration,
}

impl Failures {
    /// Records a failure with this backoff.
    pub(super) fn failed(&self, key: &ObjectKey, text: &str, delay: Duration, now: Instant) -> Said {
        if delay < LASTING {
            return Said::Before;
        }
        let mut all = self.0.lock();
        let known = all.entry(key.clone()).or_default();
        if let Some(same) = known.iter_mut().find(|known| known.text == text) {
            if now < same.next {
                return Said::Before;
            }
            same.interval = (same.interval * 2).min(MOST);
            same.next = now + same.interval;
            return Said::New;
        }
        if known.len() == KNOWN {
            known.remove(0);
        }
        known.push(Known {
            text: text.to_owned(),
            next: now + FIRST,
            interval: FIRST,
        });
        Said::New
    }

    /// Records a success. Returns whether a failure was logged before it.
    pub(super) fn ended(&self, key: &ObjectKey) -> bool {
        self.0.lock().remove(key).is_some()
    }

    /// Drops the record of an object that is gone.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.0.lock().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_logged_at_its_beginning_and_at_growing_intervals_until_it_ends() {
        let (failures, key, start) = (Failures::default(), ObjectKey::new("n", "a"), Instant::now());
        let logged = |text: &str, seconds: u64| {
            let now = start + Duration::from_secs(seconds);
            failures.failed(&key, text, LASTING, now) == Said::New
        };
        let short = failures.failed(&key, "a", LASTING / 2, start);
        assert_eq!(short, Said::Before);
        assert!(!failures.ended(&key), "it did not last");
        let lines = (0..36_000).filter(|second| logged("a", *second)).collect::<Vec<_>>();
        assert_eq!(lines[..5], [0, 30, 90, 210, 450]);
        assert!(lines.len() < 20, "{lines:?}");
        assert!(logged("b", 36_000), "another failure");
        assert!(!logged("a", 36_000) && !logged("b", 36_001));
        assert!(failures.ended(&key) && !failures.ended(&key));
        assert!(logged("a", 36_002), "it begins again");
        failures.forget(&key);
        assert!(!failures.ended(&key));
    }
}
