//! Counters of helm processes by command and result, with durations.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

/// The key of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Counted {
    /// The verb of the process: `install`, `upgrade`, `rollback`, `uninstall`, `pull`, `repo-update`, `show-chart`,
    /// `version`.
    pub verb: &'static str,
    /// `ok`, or the name of a [`Kind`](crate::Kind).
    pub result: &'static str,
}

/// The sums of a counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Processes that have ended.
    pub processes: u64,
    /// Their total duration.
    pub time: Duration,
}

/// All counters of an engine.
#[derive(Clone, Debug, Default)]
pub struct Counters(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    ended: BTreeMap<Counted, Count>,
    running: BTreeMap<&'static str, u64>,
}

impl Counters {
    /// Finished processes, in a stable order.
    pub fn ended(&self) -> Vec<(Counted, Count)> {
        self.0
            .lock()
            .ended
            .iter()
            .map(|(counted, count)| (*counted, *count))
            .collect()
    }

    /// Number of finished processes by verb.
    pub fn of(&self, verb: &str) -> u64 {
        let inner = self.0.lock();
        let of_verb = inner.ended.iter().filter(|(counted, _)| counted.verb == verb);
        of_verb.map(|(_, count)| count.processes).sum()
    }

    /// Number of running processes by verb.
    pub fn running(&self) -> Vec<(&'static str, u64)> {
        let inner = self.0.lock();
        inner.running.iter().map(|(verb, count)| (*verb, *count)).collect()
    }

    /// Counts a process as running until the guard is dropped.
    pub(crate) fn start(&self, verb: &'static str) -> Running {
        *self.0.lock().running.entry(verb).or_default() += 1;
        Running {
            counters: self.clone(),
            verb,
        }
    }

    pub(crate) fn end(&self, verb: &'static str, result: &'static str, time: Duration) {
        let mut inner = self.0.lock();
        let count = inner.ended.entry(Counted { verb, result }).or_default();
        count.processes += 1;
        count.time += time;
    }
}

/// A running process.
#[derive(Debug)]
pub(crate) struct Running {
    counters: Counters,
    verb: &'static str,
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(count) = self.counters.0.lock().running.get_mut(self.verb) {
            *count = count.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_counted_while_they_run_and_when_they_have_ended() {
        let counters = Counters::default();
        let running = counters.start("pull");
        assert_eq!(counters.running(), [("pull", 1)]);
        drop(running);
        assert_eq!(counters.running(), [("pull", 0)]);
        counters.end("pull", "ok", Duration::from_secs(1));
        counters.end("pull", "ok", Duration::from_secs(2));
        counters.end("pull", "unauthorized", Duration::from_secs(4));
        let ok = Counted {
            verb: "pull",
            result: "ok",
        };
        let count = Count {
            processes: 2,
            time: Duration::from_secs(3),
        };
        assert_eq!(counters.ended()[0], (ok, count));
        assert_eq!((counters.of("pull"), counters.of("install")), (3, 0));
    }
}
