//! Fetching charts for operations. All releases of a chart share its failures: a repository that is down, or that asks for fewer requests,
//! is asked once in a while and not once for each release.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use windlass_controller_runtime::Backoff;
use windlass_helm::{Chart, ChartSource, Engine, Freshness, HelmError};

/// The longest time for which a failure counts. After that a release adds its own delay.
const LONGEST: Duration = Duration::from_mins(1);
/// With more sources than this, the failures that no longer count are dropped.
const MANY: usize = 128;

/// The failures of all sources.
pub(super) struct Fetches {
    engine: Arc<dyn Engine>,
    retry: Backoff,
    failed: Mutex<HashMap<ChartSource, Failed>>,
}

struct Failed {
    error: HelmError,
    times: u32,
    at: Instant,
    pause: Duration,
}

impl Failed {
    fn counts(&self) -> bool {
        self.at.elapsed() < self.pause
    }
}

impl Fetches {
    pub(super) fn new(engine: Arc<dyn Engine>, retry: Backoff) -> Self {
        Self {
            engine,
            retry,
            failed: Mutex::default(),
        }
    }

    /// Fetches a chart, unless that has failed a moment ago for a reason that has nothing to do with the release.
    pub(super) async fn chart(&self, source: &ChartSource) -> Result<Chart, HelmError> {
        if let Some(failed) = self.failed.lock().get(source)
            && failed.counts()
        {
            return Err(failed.error.clone());
        }
        let fetched = self.engine.chart(source, Freshness::Any).await;
        self.learn(source, fetched.as_ref().err());
        fetched
    }

    fn learn(&self, source: &ChartSource, error: Option<&HelmError>) {
        let mut failed = self.failed.lock();
        let before = failed.remove(source);
        let Some(error) = error.filter(|error| error.kind.may_pass()) else {
            return;
        };
        if failed.len() > MANY {
            failed.retain(|_, failed| failed.counts());
        }
        let times = before.map_or(0, |before| before.times).saturating_add(1);
        let entry = Failed {
            error: error.clone(),
            times,
            at: Instant::now(),
            pause: self.retry.jittered(times).min(LONGEST),
        };
        failed.insert(source.clone(), entry);
    }
}
