//! What the API servers of workload clusters may cost this process: bytes received, bytes held that are not decoded yet, bytes of objects in a cache. And which
//! addresses they may have.
//!
//! A server that exceeds a limit of its own is refused: all its answers end, and its connection is given up. When all servers together hold
//! too much, the answer that needs more ends, and nothing else happens to its server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;
use windlass_http_client::Reach;

const MIB: usize = 1 << 20;
/// What a decoded value takes beside its text.
const VALUE: usize = 64;

/// The limits of workload clusters, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// One answer, which is not a watch.
    pub answer: usize,
    /// What one answer or one event takes when it is decoded, by [`estimate`].
    pub decoded: usize,
    /// Received from one server at a time, beyond what it may send on average.
    pub burst: usize,
    /// Received from one server on average, per second.
    pub per_second: usize,
    /// The objects of one server in caches, of all its watches together, by [`estimate`].
    pub cached: usize,
    /// The objects of all servers in caches.
    pub cached_of_all: usize,
    /// A server with so much in caches is served also when all servers together have too much there.
    pub cached_small: usize,
    /// Not decoded yet, of all servers together.
    pub held: usize,
    /// Not decoded yet, of one server.
    pub held_of_one: usize,
    /// Of each answer this much is not counted there, so that small answers are received at all times.
    pub small: usize,
    /// The time from the first byte of an event to its last.
    pub event: Duration,
}

impl Limits {
    /// The limits with which the objects of one server may take this many bytes, and those of all servers eight times as much or
    /// what they may take by default, whichever is more.
    #[must_use]
    pub fn with_cached(bytes: usize) -> Self {
        let default = Self::default();
        Self {
            // A list may have all objects, and has to arrive before it is known which of them are kept.
            decoded: bytes.max(default.decoded),
            burst: bytes.max(default.burst),
            // As long as by default until the same list may come again.
            per_second: default.per_second.max(bytes / (default.burst / default.per_second)),
            cached: bytes,
            cached_of_all: default.cached_of_all.max(bytes.saturating_mul(8)),
            ..default
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            answer: 32 * MIB,
            decoded: 128 * MIB,
            burst: 128 * MIB,
            per_second: 8 * MIB,
            cached: 128 * MIB,
            cached_of_all: 1 << 30,
            cached_small: 16 * MIB,
            held: 512 * MIB,
            held_of_one: 32 * MIB,
            small: MIB,
            event: Duration::from_secs(30),
        }
    }
}

/// What administrators decide about the API servers of workload clusters.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The addresses that they may have.
    pub reach: Reach,
    /// What each of them may cost this process.
    pub limits: Limits,
}

impl Default for Policy {
    /// Any address, and the default limits.
    fn default() -> Self {
        Self {
            reach: Reach::anywhere(),
            limits: Limits::default(),
        }
    }
}

/// What all servers together hold.
#[derive(Clone, Debug, Default)]
pub struct Held(Arc<Sums>);

/// What one server holds, or all of them.
#[derive(Debug, Default)]
struct Sums {
    /// Not decoded yet.
    raw: AtomicUsize,
    /// In caches.
    cached: AtomicUsize,
}

/// What decoded JSON takes, in bytes: its text, and a struct, an entry of a map or a place in a list for each value. Short values would be
/// much larger than their text.
pub(crate) fn estimate(json: &[u8]) -> usize {
    let values = json.iter().filter(|byte| matches!(byte, b'{' | b'[' | b',')).count();
    json.len() + values * VALUE
}

/// Why a server is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It sent more than a limit allows.
    Excess(String),
    /// Its address is denied.
    Address(String),
}

impl Refusal {
    /// The reason, for people.
    pub fn why(&self) -> &str {
        match self {
            Self::Excess(why) | Self::Address(why) => why,
        }
    }
}

/// An answer that cannot be received further.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct TooMuch(pub(crate) String);

/// The limits of one server, and what it has used of them. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Bounds(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    policy: Policy,
    held: Held,
    own: Sums,
    flow: Mutex<Flow>,
    refusal: watch::Sender<Option<Refusal>>,
}

/// The bytes received beyond the average.
#[derive(Clone, Copy, Debug)]
struct Flow {
    ahead: u128,
    at: Instant,
}

impl Bounds {
    /// Nothing was used yet.
    pub fn new(policy: Policy, held: Held) -> Self {
        Self(Arc::new(Inner {
            policy,
            held,
            own: Sums::default(),
            flow: Mutex::new(Flow {
                ahead: 0,
                at: Instant::now(),
            }),
            refusal: watch::Sender::new(None),
        }))
    }

    /// The addresses that the server may have.
    pub fn reach(&self) -> &Reach {
        &self.0.policy.reach
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.0.policy.limits
    }

    /// Forgets a refusal, for the next attempt to connect. What was received still counts.
    pub fn begin(&self) {
        self.0.refusal.send_replace(None);
    }

    /// Why the server is refused, if it is.
    pub fn refusal(&self) -> Option<Refusal> {
        self.0.refusal.borrow().clone()
    }

    /// Resolves when the server is refused.
    pub async fn refused(&self) -> Refusal {
        let mut refusals = self.0.refusal.subscribe();
        match refusals
            .wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|one| one.clone())
        {
            Some(refusal) => refusal,
            // The sender lives as long as `self`.
            None => std::future::pending().await,
        }
    }

    /// Refuses the server. The first reason stays.
    pub(crate) fn refuse(&self, refusal: Refusal) {
        self.0
            .refusal
            .send_if_modified(|first| first.is_none().then(|| *first = Some(refusal)).is_some());
    }

    /// Refuses the server for this reason, which is also the error of the answer.
    pub(crate) fn exceeded(&self, why: String) -> TooMuch {
        self.refuse(Refusal::Excess(why.clone()));
        TooMuch(why)
    }

    /// Counts received bytes.
    pub(crate) fn received(&self, bytes: usize) -> Result<(), TooMuch> {
        if let Some(refusal) = self.refusal() {
            return Err(TooMuch(refusal.why().to_owned()));
        }
        let (burst, per_second) = (self.0.policy.limits.burst, self.0.policy.limits.per_second);
        let is_too_much = {
            let mut flow = self.0.flow.lock();
            let now = Instant::now();
            let allowed = now.duration_since(flow.at).as_nanos() * per_second as u128 / 1_000_000_000;
            *flow = Flow {
                ahead: flow.ahead.saturating_sub(allowed) + bytes as u128,
                at: now,
            };
            flow.ahead > burst as u128
        };
        if is_too_much {
            let text = format!(
                "the API server sent {} MiB more than {} MiB a second",
                burst / MIB,
                per_second / MIB
            );
            return Err(self.exceeded(text));
        }
        Ok(())
    }

    /// Checks what an answer or an event takes when it is decoded.
    pub(crate) fn decodes(&self, what: &str, bytes: usize) -> Result<(), TooMuch> {
        let most = self.0.policy.limits.decoded;
        if bytes <= most {
            return Ok(());
        }
        Err(self.exceeded(format!(
            "the API server sent {what} that takes more than {} MiB when it is decoded",
            most / MIB
        )))
    }

    /// A share of what all servers together may hold; nothing yet.
    pub(crate) fn share(&self) -> Share {
        Share {
            bounds: self.clone(),
            counted: 0,
        }
    }

    /// What a watch has in a cache; nothing yet.
    pub(crate) fn stock(&self) -> Stock {
        Stock {
            bounds: self.clone(),
            counted: 0,
        }
    }
}

/// What an answer holds that is not decoded yet. It is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    bounds: Bounds,
    counted: usize,
}

impl Share {
    /// Sets the bytes that the answer holds.
    pub(crate) fn set(&mut self, bytes: usize) -> Result<(), TooMuch> {
        let (all, own, limits) = (&self.bounds.0.held.0, &self.bounds.0.own, self.bounds.limits());
        let counted = bytes.saturating_sub(limits.small);
        let (of_all, of_one) = (
            replace(&all.raw, self.counted, counted),
            replace(&own.raw, self.counted, counted),
        );
        let grew = counted > self.counted;
        self.counted = counted;
        let why = match () {
            () if grew && of_one > limits.held_of_one => format!(
                "the answers of this API server hold {} MiB that are not decoded yet; this one has to wait",
                limits.held_of_one / MIB
            ),
            () if grew && of_all > limits.held => format!(
                "the answers of all workload clusters hold {} MiB that are not decoded yet; this one has to wait",
                limits.held / MIB
            ),
            () => return Ok(()),
        };
        // The answer ends, and holds nothing from now on.
        self.give_back();
        Err(TooMuch(why))
    }

    fn give_back(&mut self) {
        replace(&self.bounds.0.held.0.raw, self.counted, 0);
        replace(&self.bounds.0.own.raw, self.counted, 0);
        self.counted = 0;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// What the objects of a watch take in a cache. It is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Stock {
    bounds: Bounds,
    counted: usize,
}

impl Stock {
    /// Sets the bytes of all objects of the watch.
    pub(crate) fn set(&mut self, bytes: usize) -> Result<(), TooMuch> {
        let (all, own, limits) = (&self.bounds.0.held.0, &self.bounds.0.own, self.bounds.limits());
        let of_all = replace(&all.cached, self.counted, bytes);
        let of_one = replace(&own.cached, self.counted, bytes);
        let grew = bytes > self.counted;
        self.counted = bytes;
        if of_one > limits.cached {
            return Err(self.bounds.exceeded(format!(
                "the API server has objects that take more than {} MiB, the --workload-memory-limit",
                limits.cached / MIB
            )));
        }
        if grew && of_all > limits.cached_of_all && of_one > limits.cached_small {
            return Err(TooMuch(format!(
                "the objects of all workload clusters take {} MiB; those of this one have to wait, for they take more than {} MiB",
                limits.cached_of_all / MIB,
                limits.cached_small / MIB
            )));
        }
        Ok(())
    }
}

impl Drop for Stock {
    fn drop(&mut self) {
        replace(&self.bounds.0.held.0.cached, self.counted, 0);
        replace(&self.bounds.0.own.cached, self.counted, 0);
    }
}

/// Replaces a part of a sum, and returns the new sum.
fn replace(sum: &AtomicUsize, old: usize, new: usize) -> usize {
    if new >= old {
        sum.fetch_add(new - old, Ordering::Relaxed) + (new - old)
    } else {
        sum.fetch_sub(old - new, Ordering::Relaxed) - (old - new)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn bounds(limits: Limits, held: &Held) -> Bounds {
        let policy = Policy {
            limits,
            ..Policy::default()
        };
        Bounds::new(policy, held.clone())
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_may_send_a_burst_and_then_what_the_average_allows() {
        let limits = Limits {
            burst: 10 * MIB,
            per_second: MIB,
            ..Limits::default()
        };
        let bounds = bounds(limits, &Held::default());
        bounds.received(10 * MIB).unwrap();
        for _ in 0..100 {
            tokio::time::advance(Duration::from_secs(1)).await;
            bounds.received(MIB).unwrap();
        }
        assert_eq!(bounds.refusal(), None);
        tokio::time::advance(Duration::from_secs(3)).await;
        bounds.received(3 * MIB).unwrap();
        let error = bounds.received(1).unwrap_err();
        assert_eq!(error.to_string(), "the API server sent 10 MiB more than 1 MiB a second");
        assert_eq!(bounds.refused().await, Refusal::Excess(error.to_string()));
        tokio::time::advance(Duration::from_secs(9)).await;
        assert!(bounds.received(1).is_err(), "it stays refused");
        bounds.begin();
        bounds.received(8 * MIB).unwrap();
        assert!(bounds.received(2 * MIB).is_err(), "what it sent before still counts");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_may_have_more_objects_may_send_them_again_as_soon_as_others() {
        for cached in [128 * MIB, 2048 * MIB] {
            let bounds = bounds(Limits::with_cached(cached), &Held::default());
            bounds.received(cached).unwrap();
            tokio::time::advance(Duration::from_secs(16)).await;
            bounds.received(cached).unwrap();
            assert!(bounds.received(1).is_err(), "{cached}");
        }
        let few = Limits::with_cached(16 * MIB);
        assert_eq!((few.cached, few.burst), (16 * MIB, Limits::default().burst));
    }

    #[tokio::test]
    async fn all_servers_share_what_may_be_held_and_small_answers_need_none_of_it() {
        let limits = Limits {
            held: 10 * MIB,
            small: MIB,
            ..Limits::default()
        };
        let held = Held::default();
        let (one, other) = (bounds(limits, &held), bounds(limits, &held));
        let (mut first, mut second) = (one.share(), other.share());
        first.set(11 * MIB).unwrap();
        second.set(MIB).unwrap();
        assert!(second.set(MIB + 1).is_err());
        assert_eq!(
            (one.refusal(), other.refusal()),
            (None, None),
            "neither is to blame alone"
        );
        first.set(2 * MIB).unwrap();
        second.set(10 * MIB).unwrap();
        drop((first, second));
        assert_eq!(held.0.raw.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn one_server_leaves_the_others_their_share_of_what_may_be_held() {
        let limits = Limits {
            held: 160 * MIB,
            held_of_one: 10 * MIB,
            ..Limits::default()
        };
        let held = Held::default();
        let (hostile, other) = (bounds(limits, &held), bounds(limits, &held));
        let mut events: Vec<Share> = (0..160).map(|_| hostile.share()).collect();
        let taken = events.iter_mut().filter_map(|event| event.set(6 * MIB).ok()).count();
        assert_eq!(taken, 2);
        assert_eq!(hostile.refusal(), None);
        other.share().set(11 * MIB).unwrap();
        drop(events);
        assert_eq!(hostile.0.own.raw.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn all_servers_share_what_may_be_cached_and_small_ones_are_served_in_any_case() {
        let limits = Limits {
            cached: 10 * MIB,
            cached_of_all: 20 * MIB,
            cached_small: 2 * MIB,
            ..Limits::default()
        };
        let held = Held::default();
        let servers: Vec<Bounds> = (0..4).map(|_| bounds(limits, &held)).collect();
        let mut stocks: Vec<Stock> = servers.iter().map(Bounds::stock).collect();
        stocks[0].set(9 * MIB).unwrap();
        stocks[1].set(9 * MIB).unwrap();
        stocks[2].set(2 * MIB).unwrap();
        stocks[3].set(2 * MIB).unwrap();
        let error = stocks[2].set(3 * MIB).unwrap_err();
        assert!(error.to_string().contains("have to wait"), "{error}");
        stocks[0].set(MIB).unwrap();
        stocks[2].set(4 * MIB).unwrap();
        assert!(servers.iter().all(|server| server.refusal().is_none()));
        // Two watches of one server.
        let mut second = servers[1].stock();
        let error = second.set(2 * MIB).unwrap_err();
        assert!(error.to_string().contains("more than 10 MiB"), "{error}");
        assert!(servers[1].refusal().is_some());
        drop((stocks, second));
        assert_eq!(held.0.cached.load(Ordering::Relaxed), 0);
    }
}
