//! One process of the manager: the real controller with driver, caches, queue and writer. It may end before or after any write.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rand::RngExt as _;
use rand::rngs::SmallRng;
use windlass_controller_runtime::{Metrics, Runtime, transport};
use windlass_controlplane_kubeadm::ControlPlaneController;
use windlass_meta::{Clock as _, SeededNames};
use windlass_runtime_client::{Callable, Extensions};
use windlass_testkit::faults::{Fault, Faults, Seen};
use windlass_testkit::{Simulated, Witnessed, keys};

use super::clock::SimClock;
use super::remote::Remote;
use super::truth::Shared;
use crate::play::cluster_key;

/// How a process ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ends {
    /// The write is not sent.
    Before,
    /// The write is carried out.
    After,
}

/// The life of a process.
#[derive(Debug)]
pub(super) struct Life {
    over: AtomicBool,
    /// The writes that it has left; zero for no limit.
    left: AtomicU32,
    /// When it tries the connection to the workload cluster.
    tried_at: Mutex<Timestamp>,
}

impl Life {
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Ends it at one of the next writes.
    pub(super) fn limit(&self, writes: u32) {
        self.left.store(writes, Ordering::Relaxed);
    }

    /// Another write.
    pub(super) fn spend(&self, random: &mut SmallRng) -> Option<Ends> {
        if self.is_over() {
            return Some(Ends::Before);
        }
        let left = self.left.load(Ordering::Relaxed);
        if left == 0 {
            return None;
        }
        self.left.store(left - 1, Ordering::Relaxed);
        if left > 1 {
            return None;
        }
        self.over.store(true, Ordering::Relaxed);
        Some(if random.random() { Ends::Before } else { Ends::After })
    }

    pub(super) fn tried_at(&self) -> Timestamp {
        *self.tried_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn has_tried(&self, now: Timestamp) -> bool {
        self.tried_at() <= now
    }
}

/// A running process.
pub(super) struct Process {
    kit: Runtime,
    pub(super) life: Arc<Life>,
}

impl Process {
    /// Starts a process that tries the connection to the workload cluster after a while.
    pub(super) fn start(server: &Simulated, truth: &Shared, clock: &SimClock, names: u64, after: Duration) -> Self {
        let tried_at = clock.now() + SignedDuration::try_from(after).unwrap();
        let life = Arc::new(Life {
            over: AtomicBool::new(false),
            left: AtomicU32::new(0),
            tried_at: Mutex::new(tried_at),
        });
        let (of_requests, lives) = (truth.clone(), Arc::clone(&life));
        let faults = Faults::when(move |seen| fault(&of_requests, &lives, seen));
        let seen = Witnessed::new(server.client(), "controller", Arc::new(truth.clone()));
        let client = transport::in_process(faults.wrap(seen), &Metrics::new());
        let kit = Runtime::builder(client)
            .clock(clock.clone())
            .names(SeededNames::new(names))
            .build();
        truth.lock().fake.state().subscribers.clear();
        let remote = Remote {
            truth: truth.clone(),
            life: Arc::clone(&life),
            clock: clock.clone(),
        };
        let extensions = Extensions::new(&kit.cx(), None, Callable::default());
        kit.start(vec![ControlPlaneController::entry(
            Arc::new(remote),
            keys(),
            extensions,
        )]);
        let fake = truth.lock().fake.clone();
        kit.tasks().spawn("first attempt", async move {
            tokio::time::sleep(after).await;
            fake.changed(&cluster_key());
        });
        Self { kit, life }
    }

    /// Ends it wherever it is.
    pub(super) fn end(&self) {
        self.life.over.store(true, Ordering::Relaxed);
        self.kit.tasks().stop();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

fn fault(truth: &Shared, life: &Life, seen: &Seen) -> Option<Fault> {
    let mut truth = truth.lock();
    if seen.is_write() && !seen.path.contains("/events") {
        match life.spend(&mut truth.random) {
            Some(Ends::Before) => return Some(Fault::Lost),
            Some(Ends::After) => return Some(Fault::AnswerLost),
            None => {}
        }
    } else if life.is_over() {
        return Some(Fault::Lost);
    }
    let chance = truth.trouble.requests;
    if chance == 0 || truth.random.random_range(0..100) >= chance {
        return None;
    }
    if seen.is_watch() {
        return Some(Fault::Broken(truth.random.random_range(0..4)));
    }
    let faults = [
        Fault::Refused(409),
        Fault::Refused(500),
        Fault::Refused(503),
        Fault::Lost,
        Fault::AnswerLost,
    ];
    Some(faults[truth.random.random_range(0..faults.len())])
}
