//! What an operator asks its server, and when it asks nothing.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::MissedTickBehavior;
use windlass_provider_repository::Settings;
use windlass_testkit::Deployments;
use windlass_testkit::faults::{Fault, Faults, Seen};

use crate::env::Env;

/// Notes what the operator asks and writes; watches go on by themselves.
#[derive(Clone, Default)]
pub(crate) struct Asked(Arc<Mutex<Vec<Seen>>>);

impl Asked {
    /// A server where Deployments run, and an operator that is listened to.
    pub(crate) async fn env(&self) -> Env {
        let mut env = Env::idle(Settings::default()).await;
        env.runs = Some(Deployments::run(env.client.clone()));
        env.operate(&self.faults(|_| None));
        env
    }

    /// These faults, with notes of what was asked.
    pub(crate) fn faults(&self, choose: impl Fn(&Seen) -> Option<Fault> + Send + Sync + 'static) -> Faults {
        let asked = self.0.clone();
        Faults::when(move |request| {
            if !request.is_watch() {
                asked.lock().push(request.clone());
            }
            choose(request)
        })
    }

    /// What was written, but for events.
    pub(crate) fn writes(&self) -> Vec<String> {
        let asked = self.0.lock();
        let writes = asked
            .iter()
            .filter(|request| request.is_write() && !request.path.contains("/events"));
        writes
            .map(|request| format!("{} {}", request.method, request.path))
            .collect()
    }

    /// Forgets what was asked so far.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }

    /// Waits until nothing was asked for longer than any poll takes.
    pub(crate) async fn nothing(&self) {
        let mut looks = tokio::time::interval(Duration::from_secs(1));
        // Looks that a busy machine delayed must not follow each other at once: nothing happens between them.
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut last, mut quiet) = (usize::MAX, 0);
        let waited = tokio::time::timeout(Duration::from_secs(90), async {
            while quiet < 6 {
                looks.tick().await;
                let now = self.0.lock().len();
                quiet = if now == last { quiet + 1 } else { 0 };
                last = now;
            }
        });
        if waited.await.is_err() {
            let asked = self.0.lock();
            let last: Vec<_> = asked.iter().rev().take(20).map(|seen| &seen.path).collect();
            panic!("it asks on and on: {last:#?}");
        }
    }
}
