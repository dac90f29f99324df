//! The running operations of Helm, and the results of those that have ended. Operations run beside reconciles, as they may take minutes. The
//! object is woken when its operation ends.
//!
//! All of this is lost with the process, and nothing depends on it: the release on the cluster shows how far an operation came.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};
use windlass_controller_runtime::{Backoff, ObjectKey, Timestamp};
use windlass_helm::{HelmError, Kind};

use super::digest::Digest;
use super::observed::{Failure, Made, Operation, Work};
use super::ports::WAITING;

/// A release on a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Place {
    /// The Cluster.
    pub(super) cluster: ObjectKey,
    /// The namespace of the release.
    pub(super) namespace: String,
    /// Its name.
    pub(super) name: String,
}

/// The delays after failures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// After failures that may pass by themselves.
    pub(super) passing: Backoff,
    /// After failures that last until a user changes something.
    pub(super) lasting: Backoff,
}

/// All operations of the process.
pub(super) struct Operations {
    state: Mutex<State>,
    patience: Patience,
    /// Those that end when Helm has sent everything, and those that wait for what they installed.
    turns: [Arc<Semaphore>; 2],
}

#[derive(Default)]
struct State {
    works: HashMap<ObjectKey, Entry>,
    places: HashMap<Place, ObjectKey>,
    counts: BTreeMap<(&'static str, &'static str), u64>,
    /// The last second that a release on a cluster was named after.
    seconds: HashMap<ObjectKey, i64>,
}

#[derive(Default)]
struct Entry {
    work: Work,
    stop: Option<Arc<Notify>>,
    /// Whether the object is gone.
    is_gone: bool,
}

/// An operation that has begun. It has ended when this is dropped, with [`Ticket::end`] or without. Then it wakes what waits for it.
pub(super) struct Ticket {
    operations: Arc<Operations>,
    key: ObjectKey,
    place: Place,
    operation: Operation,
    desired: Digest,
    began: Timestamp,
    stop: Arc<Notify>,
    has_ended: bool,
    wake: Option<Box<dyn FnOnce() + Send>>,
}

impl Operations {
    pub(super) fn new(patience: Patience, at_a_time: usize) -> Self {
        let turns = |count| Arc::new(Semaphore::new(count));
        Self {
            state: Mutex::default(),
            patience,
            turns: [turns(at_a_time), turns(at_a_time.saturating_mul(WAITING))],
        }
    }

    /// The operation and the results of an object whose release is at this place.
    pub(super) fn work(&self, key: &ObjectKey, place: Option<&Place>) -> Work {
        let state = self.state.lock();
        let mut work = state.works.get(key).map(|entry| entry.work.clone()).unwrap_or_default();
        let holder = place.and_then(|place| state.places.get(place));
        work.is_taken = holder.is_some_and(|holder| holder != key);
        work
    }

    /// Begins an operation; `None` when one goes on already, for the object or for the release.
    pub(super) fn begin(
        self: &Arc<Self>,
        key: &ObjectKey,
        place: &Place,
        operation: Operation,
        desired: Digest,
        now: Timestamp,
    ) -> Option<Ticket> {
        let mut state = self.state.lock();
        if state.places.contains_key(place) {
            return None;
        }
        let entry = state.works.entry(key.clone()).or_default();
        entry.is_gone = false;
        if entry.work.running.is_some() {
            return None;
        }
        let stop = Arc::new(Notify::new());
        entry.work.running = Some(operation);
        entry.stop = Some(stop.clone());
        state.places.insert(place.clone(), key.clone());
        Some(Ticket {
            operations: self.clone(),
            key: key.clone(),
            place: place.clone(),
            operation,
            desired,
            began: now,
            stop,
            has_ended: false,
            wake: None,
        })
    }

    /// A turn for an operation that waits for what it installs, or does not.
    pub(super) fn turn(&self, waits: bool) -> Arc<Semaphore> {
        self.turns[usize::from(waits)].clone()
    }

    /// Ends the running operation of an object.
    pub(super) fn stop(&self, key: &ObjectKey) {
        let state = self.state.lock();
        if let Some(stop) = state.works.get(key).and_then(|entry| entry.stop.as_ref()) {
            stop.notify_one();
        }
    }

    /// Ends the running operation of an object that is gone, and drops its results.
    pub(super) fn forget(&self, key: &ObjectKey) {
        let mut state = self.state.lock();
        let Some(entry) = state.works.get_mut(key) else { return };
        match &entry.stop {
            Some(stop) => {
                stop.notify_one();
                entry.is_gone = true;
            }
            None => drop(state.works.remove(key)),
        }
    }

    /// Reserves a second for the name of a release. No other name on the cluster that this process generates has it.
    pub(super) fn second(&self, cluster: &ObjectKey, now: Timestamp) -> i64 {
        let mut state = self.state.lock();
        let last = state.seconds.entry(cluster.clone()).or_insert(i64::MIN);
        *last = now.as_second().max(last.saturating_add(1));
        *last
    }

    /// Drops the data of a Cluster that is gone.
    pub(super) fn forget_cluster(&self, cluster: &ObjectKey) {
        self.state.lock().seconds.remove(cluster);
    }

    /// The numbers of operations by result.
    pub(super) fn counts(&self) -> Vec<(Vec<String>, u64)> {
        let state = self.state.lock();
        let rows = state.counts.iter();
        rows.map(|((operation, result), count)| (vec![(*operation).to_owned(), (*result).to_owned()], *count))
            .collect()
    }

    fn pause(&self, kind: Kind, times: u32) -> Duration {
        let backoff = if kind.may_pass() {
            self.patience.passing
        } else {
            self.patience.lasting
        };
        backoff.jittered(times)
    }
}

impl Ticket {
    /// With what is called after the end of the operation.
    pub(super) fn waking(mut self, wake: impl FnOnce() + Send + 'static) -> Self {
        self.wake = Some(Box::new(wake));
        self
    }

    /// Resolves when the operation has to end.
    pub(super) fn stopped(&self) -> impl Future<Output = ()> + Send + 'static {
        let stop = self.stop.clone();
        async move { stop.notified().await }
    }

    /// The operation ended, at the revision that it led to.
    pub(super) fn end(mut self, result: &Result<Option<u32>, HelmError>, now: Timestamp) {
        self.ended(result, now);
    }

    fn ended(&mut self, result: &Result<Option<u32>, HelmError>, now: Timestamp) {
        self.has_ended = true;
        let operations = self.operations.clone();
        let mut state = operations.state.lock();
        state.places.remove(&self.place);
        let outcome = match result {
            Ok(_) => "success",
            Err(error) => error.kind.name(),
        };
        *state.counts.entry((self.operation.name(), outcome)).or_default() += 1;
        let Some(entry) = state.works.get_mut(&self.key) else {
            return;
        };
        if entry.is_gone {
            state.works.remove(&self.key);
            return;
        }
        entry.stop = None;
        entry.work.running = None;
        match result {
            Ok(revision) => {
                // Other operations only prepare the next attempt, and do not end a series of failures.
                if matches!(self.operation, Operation::Install { .. } | Operation::Upgrade) {
                    entry.work.failure = None;
                    entry.work.made = revision.map(|revision| Made {
                        desired: self.desired,
                        revision,
                    });
                }
            }
            Err(error) => {
                let before = entry
                    .work
                    .failure
                    .take()
                    .filter(|before| before.desired == self.desired);
                let times = before.map_or(0, |before| before.times).saturating_add(1);
                entry.work.failure = Some(Failure {
                    operation: self.operation,
                    desired: self.desired,
                    message: error.message.clone(),
                    times,
                    began: self.began,
                    ended: now,
                    pause: operations.pause(error.kind, times),
                });
            }
        }
    }
}

impl Drop for Ticket {
    /// The process ends, or what ran it panicked.
    fn drop(&mut self) {
        if !self.has_ended {
            let error = HelmError::new(Kind::Cancelled, "it was broken off");
            self.ended(&Err(error), self.began);
        }
        if let Some(wake) = self.wake.take() {
            wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn operations() -> Arc<Operations> {
        let backoff = |first| Backoff::new(Duration::from_secs(first), Duration::from_secs(1000));
        let patience = Patience {
            passing: backoff(1),
            lasting: backoff(60),
        };
        Arc::new(Operations::new(patience, 1))
    }

    fn place(name: &str) -> Place {
        Place {
            cluster: ObjectKey::new("n", "c"),
            namespace: "default".to_owned(),
            name: name.to_owned(),
        }
    }

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("n", name)
    }

    // AD-107: two objects never work on one release at a time.
    #[test]
    fn a_release_is_worked_on_by_one_object_at_a_time() {
        let operations = operations();
        let begin = |who: &str, name: &str| {
            operations.begin(&key(who), &place(name), Operation::Upgrade, Digest::default(), at(1))
        };
        let ticket = begin("a", "web").unwrap();
        assert!(begin("b", "web").is_none() && begin("a", "other").is_none());
        assert!(operations.work(&key("b"), Some(&place("web"))).is_taken);
        assert!(!operations.work(&key("a"), Some(&place("web"))).is_taken);
        ticket.end(&Ok(Some(2)), at(2));
        assert_eq!(operations.work(&key("a"), None).made.unwrap().revision, 2);
        assert!(begin("b", "web").is_some());
    }

    // AD-145: the delay grows with every failure, and failures that last until a user changes something have longer delays.
    #[test]
    fn the_pause_grows_until_success_or_another_desired_state() {
        let operations = operations();
        let (one, other) = (
            Digest::default(),
            super::super::digest::Digester::default().part(b"x").done(),
        );
        let fail = |desired, kind| {
            let ticket = operations
                .begin(&key("a"), &place("web"), Operation::Upgrade, desired, at(1))
                .unwrap();
            ticket.end(&Err(HelmError::new(kind, "no")), at(5));
            operations.work(&key("a"), None).failure.unwrap()
        };
        let first = fail(one, Kind::ClusterUnreachable);
        assert_eq!(first.times, 1);
        assert!(first.retry_at() > at(5) && first.retry_at() < at(7));
        let third = (fail(one, Kind::ClusterUnreachable), fail(one, Kind::ClusterUnreachable)).1;
        assert!(third.times == 3 && third.pause >= Duration::from_secs(4));
        assert_eq!(fail(other, Kind::ClusterUnreachable).times, 1);
        assert!(fail(one, Kind::ValuesRefused).pause >= Duration::from_mins(1));
        let undone = operations.begin(&key("a"), &place("web"), Operation::Rollback { to: 1 }, one, at(1));
        undone.unwrap().end(&Ok(None), at(6));
        assert!(
            operations.work(&key("a"), None).failure.is_some(),
            "a rollback only prepares the next try"
        );
        let done = operations.begin(&key("a"), &place("web"), Operation::Upgrade, one, at(1));
        done.unwrap().end(&Ok(Some(4)), at(6));
        assert_eq!(operations.work(&key("a"), None).failure, None);
    }

    #[tokio::test]
    async fn nothing_is_kept_of_an_object_that_is_gone() {
        let operations = operations();
        let begin = || {
            operations
                .begin(&key("a"), &place("web"), Operation::Upgrade, Digest::default(), at(1))
                .unwrap()
        };
        let ticket = begin();
        operations.forget(&key("a"));
        ticket.stopped().await;
        ticket.end(&Err(HelmError::new(Kind::Cancelled, "no")), at(2));
        assert!(operations.state.lock().works.is_empty());
        begin().end(&Ok(Some(1)), at(2));
        operations.forget(&key("a"));
        assert!(operations.state.lock().works.is_empty() && operations.state.lock().places.is_empty());
    }

    #[test]
    fn what_is_dropped_has_ended() {
        let operations = operations();
        drop(operations.begin(&key("a"), &place("web"), Operation::Upgrade, Digest::default(), at(1)));
        let work = operations.work(&key("a"), Some(&place("web")));
        assert_eq!(
            (work.running, work.failure.unwrap().message),
            (None, "it was broken off".to_owned())
        );
        let counts = operations.counts();
        assert_eq!(counts, [(vec!["upgrade".to_owned(), "cancelled".to_owned()], 1)]);
    }

    #[test]
    fn an_operation_that_panics_wakes_what_waits_for_it() {
        let operations = operations();
        let woken = Arc::new(Mutex::new(Vec::new()));
        let begin = || {
            let ticket = operations.begin(&key("a"), &place("web"), Operation::Upgrade, Digest::default(), at(1));
            let (operations, woken) = (operations.clone(), woken.clone());
            let wake = move || woken.lock().push(operations.work(&key("a"), None).running.is_none());
            ticket.unwrap().waking(wake)
        };
        begin().end(&Ok(Some(1)), at(2));
        let ticket = begin();
        let panics = std::panic::AssertUnwindSafe(move || {
            let _ticket = ticket;
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(std::panic::catch_unwind(panics).is_err());
        assert_eq!(*woken.lock(), [true, true], "it is woken once, after the end");
    }

    // AD-078: two releases of one chart that are named in the same second get two names.
    #[test]
    fn no_two_releases_on_a_cluster_are_named_after_the_same_second() {
        let operations = operations();
        let seconds: Vec<_> = (0..3).map(|_| operations.second(&key("c"), at(100))).collect();
        assert_eq!(seconds, [100, 101, 102]);
        assert_eq!(operations.second(&key("d"), at(100)), 100);
        assert_eq!(operations.second(&key("c"), at(200)), 200);
    }
}
