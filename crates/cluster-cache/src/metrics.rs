//! Metrics of connections to workload clusters: their number, and the cost of health probes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use windlass_controller_runtime::transport::Refusal;
use windlass_controller_runtime::{Metrics, Row, Table};

use crate::health::Probe;

/// Counters of probes over existing connections, and of refusals.
#[derive(Debug, Default)]
pub(crate) struct Probes {
    answered: AtomicU64,
    failed: AtomicU64,
    addresses: AtomicU64,
    excesses: AtomicU64,
}

impl Probes {
    /// Counts one probe.
    pub(crate) fn add(&self, probe: &Probe) {
        let count = match probe {
            Probe::Answered => &self.answered,
            Probe::Unauthorized | Probe::Failed(_) => &self.failed,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a refusal.
    pub(crate) fn refused(&self, refusal: &Refusal) {
        let count = match refusal {
            Refusal::Address(_) => &self.addresses,
            Refusal::Excess(_) => &self.excesses,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    fn refusals(&self) -> Vec<Row> {
        let row = |reason: &str, count: &AtomicU64| (vec![reason.to_owned()], count.load(Ordering::Relaxed));
        vec![row("address", &self.addresses), row("excess", &self.excesses)]
    }

    fn rows(&self) -> Vec<Row> {
        let row = |result: &str, count: &AtomicU64| (vec![result.to_owned()], count.load(Ordering::Relaxed));
        vec![row("answered", &self.answered), row("failed", &self.failed)]
    }
}

const CLUSTERS: Table = Table {
    name: "windlass_remote_clusters",
    help: "Workload clusters by connection state",
    counts: false,
    labels: &["connected"],
};
const PROBES: Table = Table {
    name: "windlass_remote_probes",
    help: "Health probes of connections to workload clusters by result; they are included in the requests",
    counts: true,
    labels: &["result"],
};

const REFUSALS: Table = Table {
    name: "windlass_remote_refusals",
    help: "Refusals of API servers of workload clusters, by reason: a denied address, or more data than the limits allow",
    counts: true,
    labels: &["reason"],
};

/// The metrics of this crate.
pub static METRICS: &[Table] = &[CLUSTERS, PROBES, REFUSALS];

/// Registers the metrics. `connected` returns the numbers of connected and of other workload clusters.
pub(crate) fn measure(
    metrics: &Metrics,
    probes: Arc<Probes>,
    connected: impl Fn() -> (u64, u64) + Send + Sync + 'static,
) {
    metrics.table(CLUSTERS, move || {
        let (yes, no) = connected();
        vec![(vec!["true".to_owned()], yes), (vec!["false".to_owned()], no)]
    });
    let counters = probes.clone();
    metrics.table(REFUSALS, move || counters.refusals());
    metrics.table(PROBES, move || probes.rows());
}
