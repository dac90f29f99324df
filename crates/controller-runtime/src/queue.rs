//! The work queue: keys, not events. A key is never handed out twice at a time. A key that is added while a worker has it is
//! handed out once more afterwards. Failing keys come back with growing delay, which only a success resets. The events of
//! the writes of a failed reconcile do not end that delay.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::guard::Effect;
use crate::metrics::QueueMetrics;

/// A key that is delayed again and again without a failure for at least this long has recovered.
const WELL: Duration = Duration::from_mins(1);

/// A deduplicating, delaying work queue for keys of type `K`.
#[derive(Debug)]
pub struct Queue<K> {
    state: Mutex<State<K>>,
    wake: Notify,
    backoff: Backoff,
    metrics: Option<QueueMetrics>,
}

#[derive(Debug)]
struct State<K> {
    ready: VecDeque<K>,
    /// Keys that need work: those in `ready`, and those in `processing` that were added again.
    dirty: HashMap<K, Dirty>,
    processing: HashMap<K, Instant>,
    delayed: BTreeSet<(Instant, K)>,
    delayed_at: HashMap<K, Instant>,
    failures: HashMap<K, Failing>,
    closed: bool,
}

/// Why a key needs work.
#[derive(Debug)]
struct Dirty {
    since: Instant,
    /// The events that added it, while each may be the effect of the running reconcile. `None` when one certainly is not.
    effects: Option<Vec<Effect>>,
}

/// The failures of a key since its last success.
#[derive(Debug)]
struct Failing {
    count: u32,
    last: Instant,
    delay: Duration,
    /// The writes of the last reconcile. Their events do not end the delay.
    own: Vec<Effect>,
}

/// A failure that was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The number of failures since the last success.
    pub(crate) count: u32,
    /// The backoff.
    pub(crate) delay: Duration,
    /// When the key is handed out again, if no event comes before.
    pub(crate) again_in: Duration,
}

impl<K: Clone + Eq + Hash + Ord> Queue<K> {
    /// An empty queue.
    pub fn new(backoff: Backoff) -> Self {
        Self::build(backoff, None)
    }

    pub(crate) fn build(backoff: Backoff, metrics: Option<QueueMetrics>) -> Self {
        Self {
            state: Mutex::new(State {
                ready: VecDeque::new(),
                dirty: HashMap::new(),
                processing: HashMap::new(),
                delayed: BTreeSet::new(),
                delayed_at: HashMap::new(),
                failures: HashMap::new(),
                closed: false,
            }),
            wake: Notify::new(),
            backoff,
            metrics,
        }
    }

    /// Adds `key`. Does nothing if it is queued already.
    pub fn add(&self, key: K) {
        self.add_for(key, None);
    }

    /// [`Self::add`] for an event. The event of a write of the key's last reconcile does not end the delay after its failure.
    pub(crate) fn add_for(&self, key: K, effect: Option<Effect>) {
        let mut state = self.state.lock();
        if !state.processing.contains_key(&key) && state.is_own(&key, effect.as_slice()) {
            return;
        }
        if self.mark(&mut state, key, effect) {
            drop(state);
            self.wake.notify_one();
        }
    }

    /// Adds many keys at once.
    pub fn add_all(&self, keys: impl IntoIterator<Item = K>) {
        for key in keys {
            self.add(key);
        }
    }

    /// Marks a key as dirty. Returns true if a worker should be woken.
    fn mark(&self, state: &mut State<K>, key: K, effect: Option<Effect>) -> bool {
        if state.closed {
            return false;
        }
        if let Some(dirty) = state.dirty.get_mut(&key) {
            match (&mut dirty.effects, effect) {
                (Some(effects), Some(effect)) => effects.push(effect),
                _ => dirty.effects = None,
            }
            return false;
        }
        if let Some(metrics) = &self.metrics {
            metrics.adds.inc();
        }
        let is_worked_on = state.processing.contains_key(&key);
        let dirty = Dirty {
            since: Instant::now(),
            effects: effect.filter(|_| is_worked_on).map(|effect| vec![effect]),
        };
        state.dirty.insert(key.clone(), dirty);
        if is_worked_on {
            return false;
        }
        state.ready.push_back(key);
        self.show_depth(state);
        true
    }

    /// Adds `key` after `delay`. Replaces an earlier delay of the key.
    pub fn add_after(&self, key: K, delay: Duration) {
        let mut state = self.state.lock();
        if state.closed {
            return;
        }
        let at = Instant::now() + delay;
        if let Some(old) = state.delayed_at.insert(key.clone(), at) {
            state.delayed.remove(&(old, key.clone()));
        }
        state.delayed.insert((at, key));
        drop(state);
        self.wake.notify_one();
    }

    /// Cancels the delayed add of `key`.
    pub fn cancel_delayed(&self, key: &K) {
        let mut state = self.state.lock();
        if let Some(at) = state.delayed_at.remove(key) {
            state.delayed.remove(&(at, key.clone()));
        }
    }

    /// Adds `key` after its backoff, which doubles until [`Self::forget`], and after `most` at the latest. `own` are the writes of the
    /// reconcile that failed. Call it before [`Self::done`].
    pub(crate) fn fail(&self, key: K, own: Vec<Effect>, most: Option<Duration>) -> Failure {
        if let Some(metrics) = &self.metrics {
            metrics.retries.inc();
        }
        let mut state = self.state.lock();
        let count = state.failures.get(&key).map_or(0, |failing| failing.count) + 1;
        let delay = self.backoff.jittered(count);
        let failing = Failing {
            count,
            last: Instant::now(),
            delay,
            own,
        };
        state.failures.insert(key.clone(), failing);
        let wait = most.map_or(delay, |most| most.min(delay));
        let has_event = state.dirty.contains_key(&key) && !state.is_idle_after(&key);
        drop(state);
        self.add_after(key, wait);
        Failure {
            count,
            delay,
            again_in: if has_event { Duration::ZERO } else { wait },
        }
    }

    /// How many times `key` has failed since its last success.
    pub(crate) fn failures(&self, key: &K) -> u32 {
        self.state.lock().failures.get(key).map_or(0, |failing| failing.count)
    }

    /// Resets the backoff of `key`. Returns how many times it has failed since its last success.
    pub fn forget(&self, key: &K) -> Option<u32> {
        self.state.lock().failures.remove(key).map(|failing| failing.count)
    }

    /// Records that `key` was reconciled without a failure, and is reconciled again after some time. A short time means that it waits for
    /// something. This is a success only when it has lasted: a reconcile that polls and fails by turns has not recovered. Returns
    /// what [`Self::forget`] does, if it is a success.
    pub(crate) fn polled(&self, key: &K, again_in: Duration) -> Option<u32> {
        let mut state = self.state.lock();
        let failing = state.failures.get_mut(key)?;
        failing.own.clear();
        if again_in < WELL && failing.last.elapsed() < WELL.max(failing.delay * 2) {
            return None;
        }
        state.failures.remove(key).map(|failing| failing.count)
    }

    /// The next key to work on. `None` once the queue is closed. Call [`Self::done`] after the work.
    pub async fn next(&self) -> Option<K> {
        loop {
            let notified = self.wake.notified();
            let until = {
                let mut state = self.state.lock();
                if state.closed {
                    drop(state);
                    // Wakes the next waiting worker, so that all of them leave.
                    self.wake.notify_one();
                    return None;
                }
                self.promote(&mut state);
                if let Some(key) = state.ready.pop_front() {
                    let now = Instant::now();
                    let since = state.dirty.remove(&key).map_or(now, |dirty| dirty.since);
                    state.processing.insert(key.clone(), now);
                    self.show_depth(&state);
                    if let Some(metrics) = &self.metrics {
                        metrics.waited.observe((now - since).as_secs_f64());
                    }
                    let more = !state.ready.is_empty() || !state.delayed.is_empty();
                    drop(state);
                    if more {
                        self.wake.notify_one();
                    }
                    return Some(key);
                }
                state.delayed.first().map(|(at, _)| *at)
            };
            match until {
                Some(at) => {
                    tokio::select! {
                        () = notified => {}
                        () = tokio::time::sleep_until(at) => {}
                    }
                }
                None => notified.await,
            }
        }
    }

    /// Moves keys that are due from `delayed` to `ready`.
    fn promote(&self, state: &mut State<K>) {
        let now = Instant::now();
        while state.delayed.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, key)) = state.delayed.pop_first() else {
                return;
            };
            state.delayed_at.remove(&key);
            self.mark(state, key, None);
        }
    }

    /// Ends the work on `key`.
    pub fn done(&self, key: &K) {
        let mut state = self.state.lock();
        let started = state.processing.remove(key);
        if let (Some(metrics), Some(started)) = (&self.metrics, started) {
            metrics.worked.observe(started.elapsed().as_secs_f64());
        }
        if !state.dirty.contains_key(key) {
            return;
        }
        if state.is_idle_after(key) {
            state.dirty.remove(key);
            return;
        }
        state.ready.push_back(key.clone());
        self.show_depth(&state);
        drop(state);
        self.wake.notify_one();
    }

    /// Accepts no more keys and lets workers leave.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.wake.notify_waiters();
        self.wake.notify_one();
    }

    /// The number of keys that wait to be handed out now.
    pub fn depth(&self) -> usize {
        self.state.lock().ready.len()
    }

    /// True if no key waits, is worked on or is delayed.
    pub fn is_idle(&self) -> bool {
        let state = self.state.lock();
        state.ready.is_empty() && state.processing.is_empty() && state.delayed.is_empty()
    }

    /// Time that unfinished work has taken so far, in seconds: the sum, and the longest.
    pub(crate) fn unfinished(&self) -> (f64, f64) {
        let state = self.state.lock();
        let now = Instant::now();
        state
            .processing
            .values()
            .map(|since| (now - *since).as_secs_f64())
            .fold((0.0, 0.0), |(sum, most), s| (sum + s, f64::max(most, s)))
    }

    /// The keys that workers have now.
    pub fn processing(&self) -> HashSet<K> {
        self.state.lock().processing.keys().cloned().collect()
    }

    /// Delayed keys with the time left until they are due.
    pub fn delayed(&self) -> BTreeMap<K, Duration> {
        let state = self.state.lock();
        let now = Instant::now();
        state
            .delayed
            .iter()
            .map(|(at, key)| (key.clone(), at.saturating_duration_since(now)))
            .collect()
    }

    fn show_depth(&self, state: &State<K>) {
        if let Some(metrics) = &self.metrics {
            metrics.depth.set(i64::try_from(state.ready.len()).unwrap_or(i64::MAX));
        }
    }
}

impl<K: Eq + Hash> State<K> {
    /// Whether these are effects of the last reconcile of the key, and it failed.
    fn is_own(&self, key: &K, effects: &[Effect]) -> bool {
        let own = self.failures.get(key).map_or(&[][..], |failing| &failing.own);
        !effects.is_empty() && effects.iter().all(|effect| own.contains(effect))
    }

    /// Whether a key that was added while it was worked on was added only by effects of that work, and the work failed.
    fn is_idle_after(&self, key: &K) -> bool {
        let effects = self.dirty.get(key).and_then(|dirty| dirty.effects.as_deref());
        effects.is_some_and(|effects| self.is_own(key, effects))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn queue() -> Queue<&'static str> {
        Queue::new(Backoff::per_object())
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_added_many_times_is_handed_out_once() {
        let q = queue();
        q.add("a");
        q.add("a");
        q.add("b");
        assert_eq!(q.depth(), 2);
        assert_eq!(q.next().await, Some("a"));
        assert_eq!(q.next().await, Some("b"));
        assert_eq!(q.depth(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_added_while_worked_on_comes_again_after_done() {
        let q = queue();
        q.add("a");
        assert_eq!(q.next().await, Some("a"));
        q.add("a");
        q.add("a");
        assert_eq!(q.depth(), 0, "not while it is worked on");
        q.done(&"a");
        assert_eq!(q.next().await, Some("a"));
        q.done(&"a");
        assert!(q.is_idle());
    }

    #[tokio::test(start_paused = true)]
    async fn failures_back_off_and_success_resets() {
        let q = queue();
        let mut delays = Vec::new();
        let fail = || q.fail("a", Vec::new(), None).delay;
        for _ in 0..4 {
            delays.push(fail());
        }
        assert!(delays.windows(2).all(|w| w[0] < w[1]), "{delays:?}");
        assert_eq!(q.forget(&"a"), Some(4));
        assert!(fail() < delays[1]);
    }

    #[tokio::test(start_paused = true)]
    async fn polls_between_failures_do_not_reset_the_backoff_until_they_have_lasted() {
        const SOON: Duration = Duration::from_secs(2);
        let q = queue();
        for failures in 1..=20 {
            assert_eq!(q.fail("a", Vec::new(), None).count, failures);
            tokio::time::advance(Duration::from_millis(10)).await;
            assert_eq!(q.polled(&"a", SOON), None);
        }
        tokio::time::advance(WELL).await;
        assert_eq!(q.polled(&"a", SOON), None, "the last delay was longer");
        tokio::time::advance(Duration::from_secs(2500)).await;
        assert_eq!(q.polled(&"a", SOON), Some(20));
        assert_eq!(q.fail("a", Vec::new(), None).count, 1);
        // What has nothing to do for long has recovered.
        assert_eq!(q.polled(&"a", WELL), Some(1));
    }

    fn effect(version: u64) -> Effect {
        Effect {
            key: crate::object::ObjectKey::new("n", "child"),
            need: crate::guard::Need::Version(version),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn events_of_own_writes_do_not_end_the_delay_of_a_failure_and_other_events_do() {
        let q = queue();
        let far = Duration::from_secs(100);
        let fail = |q: &Queue<_>, own| {
            for _ in 0..20 {
                q.fail("a", Vec::new(), None);
            }
            q.fail("a", own, None)
        };
        // One event comes while the reconcile runs, and one afterwards.
        q.add("a");
        assert_eq!(q.next().await, Some("a"));
        q.add_for("a", Some(effect(1)));
        assert!(fail(&q, vec![effect(1), effect(2)]).again_in > far);
        q.done(&"a");
        q.add_for("a", Some(effect(2)));
        assert_eq!(q.depth(), 0);
        q.add_for("a", Some(effect(3)));
        assert_eq!(q.next().await, Some("a"));
        // Another event while it runs.
        q.add_for("a", Some(effect(4)));
        q.add_for("a", Some(effect(5)));
        assert_eq!(fail(&q, vec![effect(4)]).again_in, Duration::ZERO);
        q.done(&"a");
        assert_eq!(q.next().await, Some("a"));
        // After a success, own writes are worth a look.
        q.add_for("a", Some(effect(6)));
        q.forget(&"a");
        q.done(&"a");
        assert_eq!(q.next().await, Some("a"));
    }

    #[tokio::test(start_paused = true)]
    async fn delayed_keys_come_when_due_in_order() {
        let q = queue();
        let start = Instant::now();
        q.add_after("late", Duration::from_secs(20));
        q.add_after("soon", Duration::from_secs(10));
        assert_eq!(q.next().await, Some("soon"));
        assert_eq!(start.elapsed().as_secs(), 10);
        assert_eq!(q.next().await, Some("late"));
        assert_eq!(start.elapsed().as_secs(), 20);
    }

    #[tokio::test(start_paused = true)]
    async fn a_newer_delay_replaces_the_older_one() {
        let q = queue();
        q.add_after("a", Duration::from_secs(10));
        q.add_after("a", Duration::from_secs(30));
        let start = Instant::now();
        assert_eq!(q.next().await, Some("a"));
        assert_eq!(start.elapsed().as_secs(), 30);
        q.done(&"a");
        q.add_after("a", Duration::from_secs(10));
        q.cancel_delayed(&"a");
        assert!(q.is_idle());
    }

    #[tokio::test(start_paused = true)]
    async fn a_delay_that_ends_while_worked_on_waits_for_done() {
        let q = Arc::new(queue());
        q.add("a");
        assert_eq!(q.next().await, Some("a"));
        q.add_after("a", Duration::from_secs(1));
        let waiting = tokio::time::timeout(Duration::from_secs(5), q.next()).await;
        assert!(waiting.is_err(), "the key is still worked on");
        q.done(&"a");
        assert_eq!(q.next().await, Some("a"));
    }

    #[tokio::test(start_paused = true)]
    async fn many_workers_take_all_and_leave_on_close() {
        let q: Arc<Queue<u32>> = Arc::new(Queue::new(Backoff::per_object()));
        let workers: Vec<_> = (0..8)
            .map(|_| {
                let q = q.clone();
                tokio::spawn(async move {
                    let mut n = 0;
                    while let Some(key) = q.next().await {
                        tokio::task::yield_now().await;
                        q.done(&key);
                        n += 1;
                    }
                    n
                })
            })
            .collect();
        q.add_all(0..1000);
        while !q.is_idle() {
            tokio::task::yield_now().await;
        }
        q.close();
        let mut total = 0;
        for worker in workers {
            total += worker.await.unwrap();
        }
        assert_eq!(total, 1000);
    }
}
