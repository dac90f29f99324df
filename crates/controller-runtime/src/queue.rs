//! The work queue: keys, not events. A key is never handed out twice at a time. A key that is added while a worker has it is
//! handed out once more afterwards. Failing keys come back with growing delay.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::metrics::QueueMetrics;

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
    dirty: HashMap<K, Instant>,
    processing: HashMap<K, Instant>,
    delayed: BTreeSet<(Instant, K)>,
    delayed_at: HashMap<K, Instant>,
    failures: HashMap<K, u32>,
    closed: bool,
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
        let mut state = self.state.lock();
        if self.mark(&mut state, key) {
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
    fn mark(&self, state: &mut State<K>, key: K) -> bool {
        if state.closed || state.dirty.contains_key(&key) {
            return false;
        }
        if let Some(metrics) = &self.metrics {
            metrics.adds.inc();
        }
        state.dirty.insert(key.clone(), Instant::now());
        if state.processing.contains_key(&key) {
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

    /// Adds `key` after its backoff, which doubles until [`Self::forget`]. Returns the delay.
    pub fn add_failed(&self, key: K) -> Duration {
        let failures = {
            let mut state = self.state.lock();
            let failures = state.failures.entry(key.clone()).or_default();
            *failures += 1;
            *failures
        };
        if let Some(metrics) = &self.metrics {
            metrics.retries.inc();
        }
        let delay = self.backoff.jittered(failures);
        self.add_after(key, delay);
        delay
    }

    /// Resets the backoff of `key`.
    pub fn forget(&self, key: &K) {
        self.state.lock().failures.remove(key);
    }

    /// How many times `key` has failed in a row.
    pub fn failures(&self, key: &K) -> u32 {
        self.state.lock().failures.get(key).copied().unwrap_or(0)
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
                    let since = state.dirty.remove(&key).unwrap_or(now);
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
            self.mark(state, key);
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
        for _ in 0..4 {
            delays.push(q.add_failed("a"));
        }
        assert!(delays.windows(2).all(|w| w[0] < w[1]), "{delays:?}");
        assert_eq!(q.failures(&"a"), 4);
        q.forget(&"a");
        assert!(q.add_failed("a") < delays[1]);
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
