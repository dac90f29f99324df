//! Whether the data folder can be written: the error of the last write, and how often it is logged. A full disk fails each write of
//! each client, and a log that repeats it fills the next disk.

use std::path::Path;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::error::StorageError;

/// The time from the first line about failing writes to the next one. It doubles with each line.
const FIRST: Duration = Duration::from_secs(10);
/// The longest time between two lines.
const MOST: Duration = Duration::from_mins(30);

/// The failures of writes since the last success.
#[derive(Debug, Default)]
pub(crate) struct Trouble(Mutex<Option<Failing>>);

#[derive(Debug)]
struct Failing {
    error: StorageError,
    failures: u64,
    next: Instant,
    interval: Duration,
}

impl Trouble {
    /// Records a failed write, and logs it if it is the first one, or if the last line is long ago.
    pub(crate) fn failed(&self, error: &StorageError, now: Instant) {
        if let Some(failures) = self.count(error, now) {
            tracing::error!(%error, failures, "cannot write");
        }
    }

    /// Records a successful write, and logs the end of failures.
    pub(crate) fn ended(&self, folder: &Path) {
        if let Some(failing) = self.0.lock().take() {
            tracing::info!(folder = %folder.display(), failures = failing.failures, "writes go on");
        }
    }

    /// The error of the last write, if it failed.
    pub(crate) fn error(&self) -> Option<StorageError> {
        self.0.lock().as_ref().map(|failing| failing.error.clone())
    }

    /// The number of failures if a line is due.
    fn count(&self, error: &StorageError, now: Instant) -> Option<u64> {
        let mut state = self.0.lock();
        let Some(failing) = state.as_mut() else {
            *state = Some(Failing {
                error: error.clone(),
                failures: 1,
                next: now + FIRST,
                interval: FIRST,
            });
            return Some(1);
        };
        failing.error = error.clone();
        failing.failures += 1;
        if now < failing.next {
            return None;
        }
        failing.interval = (failing.interval * 2).min(MOST);
        failing.next = now + failing.interval;
        Some(failing.failures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failing_writes_are_logged_at_growing_intervals() {
        let (trouble, start) = (Trouble::default(), Instant::now());
        let error = StorageError::new(Path::new("/data"), &std::io::ErrorKind::StorageFull.into());
        let at = |second| trouble.count(&error, start + Duration::from_secs(second)).is_some();
        let lines: Vec<u64> = (0..3600).filter(|second| at(*second)).collect();
        assert_eq!(lines[..4], [0, 10, 30, 70]);
        assert!(lines.len() < 10, "{lines:?}");
        assert_eq!(trouble.error().unwrap().to_string(), error.to_string());
        trouble.ended(Path::new("/data"));
        assert!(trouble.error().is_none());
        assert!(at(3601), "it begins again");
    }
}
