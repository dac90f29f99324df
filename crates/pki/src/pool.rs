//! Generates keys in the background, so that callers do not wait for the search for primes.
//!
//! The pool keeps a stock of one algorithm and serves requests first. A request is a future (for async callers) and can also be
//! waited for on a thread. Dropping the last handle ends the threads and waits for them: if the process ended while a thread
//! works, the thread would lose its source of randomness and abort.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::task::{Context, Poll, Waker};
use std::thread::{self, JoinHandle};

use crate::{KeyAlgorithm, PkiError, PrivateKey};

/// Read by a thread for as long as it makes a key, and written for ever at the end of the process.
static AT_WORK: RwLock<()> = RwLock::new(());

/// Waits until no thread of any pool makes a key, and lets none make another: for the end of the process. At the exit the threads of pools
/// that are still held would lose their source of randomness at work, and abort. No pool may be dropped afterwards.
pub fn stop_generating() {
    std::mem::forget(AT_WORK.write().unwrap_or_else(PoisonError::into_inner));
}

/// A background generator of keys; clones share it.
#[derive(Clone)]
pub struct KeyPool {
    handle: Arc<Handle>,
}

impl fmt::Debug for KeyPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyPool").field("stocked", &self.stocked()).finish()
    }
}

/// Closes the pool when the last [`KeyPool`] is dropped; the threads hold only the shared part.
struct Handle {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        lock(&self.shared.state).closed = true;
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            // A caller that receives a key on a thread may drop the last handle there.
            if thread.thread().id() != thread::current().id() {
                // A thread that panicked has ended, too.
                let _ = thread.join();
            }
        }
    }
}

struct Shared {
    state: Mutex<State>,
    work: Condvar,
    source: Source,
}

/// Makes a key; may take long.
type Source = fn(KeyAlgorithm) -> Result<PrivateKey, PkiError>;

struct State {
    algorithm: KeyAlgorithm,
    stock: VecDeque<PrivateKey>,
    target: usize,
    requests: VecDeque<(KeyAlgorithm, Arc<Slot>)>,
    closed: bool,
}

#[derive(Default)]
struct Slot {
    answer: Mutex<Answer>,
    ready: Condvar,
}

#[derive(Default)]
struct Answer {
    key: Option<Result<PrivateKey, PkiError>>,
    waker: Option<Waker>,
}

impl KeyPool {
    /// A pool of `threads` threads that keeps `stock` keys of `algorithm` ready and starts to generate them at once.
    pub fn new(threads: usize, algorithm: KeyAlgorithm, stock: usize) -> Self {
        Self::with_source(threads, algorithm, stock, PrivateKey::generate)
    }

    /// [`Self::new`] with another source of keys than the search for primes, such as keys that a test has already.
    pub fn with_source(threads: usize, algorithm: KeyAlgorithm, stock: usize, source: Source) -> Self {
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                algorithm,
                stock: VecDeque::new(),
                target: stock,
                requests: VecDeque::new(),
                closed: false,
            }),
            work: Condvar::new(),
            source,
        });
        let start = |number| {
            let shared = Arc::clone(&shared);
            thread::Builder::new()
                .name(format!("key-generator-{number}"))
                .spawn(move || run(&shared))
        };
        // If a thread cannot be started, the others do its work; without any, `take` generates keys itself.
        let threads = (0..threads.max(1)).filter_map(|number| start(number).ok()).collect();
        Self {
            handle: Arc::new(Handle { shared, threads }),
        }
    }

    /// Requests a key. A key from the stock, or of a fast algorithm, is ready at once.
    pub fn take(&self, algorithm: KeyAlgorithm) -> PendingKey {
        let slot = Arc::new(Slot::default());
        let shared = &self.handle.shared;
        if !algorithm.is_slow() {
            slot.put((shared.source)(algorithm));
            return PendingKey { slot };
        }
        // Each thread holds the shared part, and so does the handle: with one holder, no thread lives.
        if Arc::strong_count(shared) == 1 {
            slot.put((shared.source)(algorithm));
            return PendingKey { slot };
        }
        let mut state = lock(&shared.state);
        if algorithm == state.algorithm
            && let Some(key) = state.stock.pop_front()
        {
            slot.put(Ok(key));
        } else {
            state.requests.push_back((algorithm, Arc::clone(&slot)));
        }
        drop(state);
        shared.work.notify_one();
        PendingKey { slot }
    }

    /// The number of keys in stock.
    pub fn stocked(&self) -> usize {
        lock(&self.handle.shared.state).stock.len()
    }
}

/// A requested key.
#[derive(Clone)]
pub struct PendingKey {
    slot: Arc<Slot>,
}

impl fmt::Debug for PendingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingKey").field("ready", &self.is_ready()).finish()
    }
}

impl PendingKey {
    /// Waits on this thread.
    pub fn wait(self) -> Result<PrivateKey, PkiError> {
        let mut answer = lock(&self.slot.answer);
        loop {
            if let Some(key) = answer.key.clone() {
                return key;
            }
            answer = self.slot.ready.wait(answer).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether it is ready.
    pub fn is_ready(&self) -> bool {
        lock(&self.slot.answer).key.is_some()
    }
}

impl Future for PendingKey {
    type Output = Result<PrivateKey, PkiError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut answer = lock(&self.slot.answer);
        if let Some(key) = answer.key.clone() {
            return Poll::Ready(key);
        }
        answer.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Slot {
    fn put(&self, key: Result<PrivateKey, PkiError>) {
        let mut answer = lock(&self.answer);
        answer.key = Some(key);
        let waker = answer.waker.take();
        drop(answer);
        self.ready.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

fn run(shared: &Shared) {
    loop {
        let mut state = lock(&shared.state);
        let next = loop {
            if state.closed {
                return;
            }
            if let Some((algorithm, slot)) = state.requests.pop_front() {
                break (algorithm, Some(slot));
            }
            if state.stock.len() < state.target {
                break (state.algorithm, None);
            }
            state = shared.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        };
        drop(state);
        let (algorithm, slot) = next;
        let made = {
            let _at_work = AT_WORK.read().unwrap_or_else(PoisonError::into_inner);
            (shared.source)(algorithm)
        };
        if let Some(slot) = slot {
            slot.put(made);
            continue;
        }
        // A key for the stock goes to a caller that has started to wait meanwhile.
        let mut state = lock(&shared.state);
        let waiting = state.requests.iter().position(|(asked, _)| *asked == algorithm);
        match (waiting.and_then(|index| state.requests.remove(index)), made) {
            (Some((_, slot)), made) => {
                drop(state);
                slot.put(made);
            }
            (None, Ok(key)) => state.stock.push_back(key),
            // Without randomness there is no stock; requests report the error.
            (None, Err(_)) => state.target = 0,
        }
    }
}

/// The data behind these locks is consistent even if a thread panicked while it held one.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_drops_the_last_handle_waits_until_no_thread_is_at_work() {
        let pool = KeyPool::new(2, KeyAlgorithm::Rsa2048, 100);
        let shared = Arc::downgrade(&pool.handle.shared);
        let other = pool.clone();
        drop(pool);
        assert!(shared.upgrade().is_some(), "another handle is left");
        drop(other);
        assert!(shared.upgrade().is_none());
    }
}
