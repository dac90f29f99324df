//! Whether the data folder can be written: the error of the last write, and how often it is logged. A full disk fails each write of
//! each client, and a log that repeats it fills the next disk.

use std::path::Path;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::error::StorageError;

/// The time from the first line about failing writes to the next one. It doubles with each line.
const FIRST: Duration = Duration::from_secs(10);
/// The longest time between two lines.
const MOST: Duration = Duration::from_mins(30);
/// Failures that begin again sooner are the same trouble: on a disk that is nearly full, small writes succeed and large ones fail, in turns.
const CALM: Duration = Duration::from_mins(1);

/// The failures of writes since the last success.
#[derive(Debug, Default)]
pub(crate) struct Trouble {
    failing: Mutex<Option<Failing>>,
    began: Notify,
}

#[derive(Debug)]
struct Failing {
    error: StorageError,
    failures: u64,
    next: Instant,
    interval: Duration,
    last: Instant,
    /// Whether the last write succeeded.
    is_over: bool,
    /// Whether the last line was about a failure.
    is_said: bool,
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
        let mut state = self.failing.lock();
        let Some(failing) = state.as_mut().filter(|failing| !failing.is_over) else {
            return;
        };
        failing.is_over = true;
        if std::mem::take(&mut failing.is_said) {
            tracing::info!(folder = %folder.display(), failures = failing.failures, "writes go on");
        }
    }

    /// The error of the last write, if it failed.
    pub(crate) fn error(&self) -> Option<StorageError> {
        let state = self.failing.lock();
        let failing = state.as_ref().filter(|failing| !failing.is_over);
        failing.map(|failing| failing.error.clone())
    }

    /// Waits until writes begin to fail.
    pub(crate) async fn began(&self) {
        self.began.notified().await;
    }

    /// The number of failures if a line is due.
    fn count(&self, error: &StorageError, now: Instant) -> Option<u64> {
        let mut state = self.failing.lock();
        if state.as_ref().is_none_or(|failing| failing.is_over) {
            self.began.notify_one();
        }
        let same = |failing: &&mut Failing| !failing.is_over || now < failing.last + CALM.max(failing.interval);
        let Some(failing) = state.as_mut().filter(same) else {
            *state = Some(Failing {
                error: error.clone(),
                failures: 1,
                next: now + FIRST,
                interval: FIRST,
                last: now,
                is_over: false,
                is_said: true,
            });
            return Some(1);
        };
        failing.error = error.clone();
        failing.failures += 1;
        failing.last = now;
        failing.is_over = false;
        if now < failing.next {
            return None;
        }
        failing.interval = (failing.interval * 2).min(MOST);
        failing.next = now + failing.interval;
        failing.is_said = true;
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
        assert!(!at(3601), "it is the same trouble");
        trouble.ended(Path::new("/data"));
        assert!(at(9000), "it begins again");
    }

    #[test]
    fn a_disk_that_is_nearly_full_is_logged_no_more_often() {
        let (trouble, start) = (Trouble::default(), Instant::now());
        let error = StorageError::new(Path::new("/data"), &std::io::ErrorKind::StorageFull.into());
        let at = |second| {
            let is_logged = trouble.count(&error, start + Duration::from_secs(second)).is_some();
            trouble.ended(Path::new("/data"));
            is_logged
        };
        let lines: Vec<u64> = (0..3600).filter(|second| at(*second)).collect();
        assert!(lines.len() < 10, "{lines:?}");
    }
}
