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
/// The number of different failures that are known of one thing, so that failures that alternate are logged like one that lasts.
const KNOWN: usize = 4;

/// The failures of one thing (an object, a watch, a connection) since its last success, as far as they were logged.
#[derive(Debug, Default)]
pub struct Failing(Vec<Known>);

/// A failure that was logged.
#[derive(Debug)]
struct Known {
    text: String,
    next: Instant,
    interval: Duration,
}

impl Failing {
    /// Records a failure with this backoff. Whether it has to be logged: it is new and lasts, or the last line about it is long ago.
    pub fn failed(&mut self, text: &str, delay: Duration, now: Instant) -> bool {
        if delay < LASTING {
            return false;
        }
        if let Some(same) = self.0.iter_mut().find(|known| known.text == text) {
            if now < same.next {
                return false;
            }
            same.interval = (same.interval * 2).min(MOST);
            same.next = now + same.interval;
            return true;
        }
        if self.0.len() == KNOWN {
            self.0.remove(0);
        }
        self.0.push(Known {
            text: text.to_owned(),
            next: now + FIRST,
            interval: FIRST,
        });
        true
    }

    /// Records a success. Whether a failure was logged before it, so that its end has to be.
    pub fn ended(&mut self) -> bool {
        !std::mem::take(&mut self.0).is_empty()
    }
}

/// The failures of all objects of a controller.
#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<HashMap<ObjectKey, Failing>>);

impl Failures {
    /// [`Failing::failed`] for an object.
    pub(crate) fn failed(&self, key: &ObjectKey, text: &str, delay: Duration, now: Instant) -> bool {
        self.0.lock().entry(key.clone()).or_default().failed(text, delay, now)
    }

    /// [`Failing::ended`] for an object.
    pub(crate) fn ended(&self, key: &ObjectKey) -> bool {
        self.0.lock().remove(key).is_some_and(|mut failing| failing.ended())
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
        let logged = |text: &str, seconds: u64| {
            let now = start + Duration::from_secs(seconds);
            failures.failed(&key, text, LASTING, now)
        };
        assert!(!failures.failed(&key, "a", LASTING / 2, start));
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
