//! What the API servers of workload clusters may cost this process: bytes received, bytes held that are not decoded yet, bytes of objects in a cache. And which
//! addresses they may have.
//!
//! A server that exceeds a limit of its own is refused: all its answers end, and its connection is given up. When all servers together hold
//! too much, the answer that needs more ends, and nothing else happens to its server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;
use windlass_http_client::Reach;

const MIB: usize = 1 << 20;

/// The limits of workload clusters, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// One answer, which is not a watch.
    pub answer: usize,
    /// Received from one server at a time, beyond what it may send on average.
    pub burst: usize,
    /// Received from one server on average, per second.
    pub per_second: usize,
    /// The objects in the cache of a watch.
    pub cached: usize,
    /// Not decoded yet, of all servers together.
    pub held: usize,
    /// Of each answer this much is not counted there, so that small answers are received at all times.
    pub small: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            answer: 64 * MIB,
            burst: 512 * MIB,
            per_second: 8 * MIB,
            cached: 512 * MIB,
            held: 512 * MIB,
            small: MIB,
        }
    }
}

/// What all servers together hold.
#[derive(Clone, Debug, Default)]
pub struct Held(Arc<AtomicUsize>);

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
    limits: Limits,
    reach: Reach,
    held: Held,
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
    pub fn new(limits: Limits, reach: Reach, held: Held) -> Self {
        Self(Arc::new(Inner {
            limits,
            reach,
            held,
            flow: Mutex::new(Flow {
                ahead: 0,
                at: Instant::now(),
            }),
            refusal: watch::Sender::new(None),
        }))
    }

    /// The addresses that the server may have.
    pub fn reach(&self) -> &Reach {
        &self.0.reach
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.0.limits
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
        let (burst, per_second) = (self.0.limits.burst, self.0.limits.per_second);
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

    /// A share of what all servers together may hold; nothing yet.
    pub(crate) fn share(&self) -> Share {
        Share {
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
        let (held, limits) = (&self.bounds.0.held.0, self.bounds.limits());
        let counted = bytes.saturating_sub(limits.small);
        if counted <= self.counted {
            held.fetch_sub(self.counted - counted, Ordering::Relaxed);
            self.counted = counted;
            return Ok(());
        }
        let more = counted - self.counted;
        let before = held.fetch_add(more, Ordering::Relaxed);
        if before + more > limits.held {
            held.fetch_sub(more, Ordering::Relaxed);
            let most = limits.held / MIB;
            let why = format!(
                "the answers of all workload clusters hold {most} MiB that are not decoded yet; this one has to wait"
            );
            return Err(TooMuch(why));
        }
        self.counted = counted;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.bounds.0.held.0.fetch_sub(self.counted, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn bounds(limits: Limits, held: &Held) -> Bounds {
        Bounds::new(limits, Reach::anywhere(), held.clone())
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
        assert_eq!(held.0.load(Ordering::Relaxed), 0);
    }
}
