//! What a dashboard shows of the connections: how many there are, and what keeping them costs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use windlass_kit::{Metrics, Row, Table};

use crate::health::Probe;

/// Probes over existing connections so far.
#[derive(Debug, Default)]
pub(crate) struct Probes {
    answered: AtomicU64,
    failed: AtomicU64,
}

impl Probes {
    /// Counts one.
    pub(crate) fn add(&self, probe: &Probe) {
        let count = match probe {
            Probe::Answered => &self.answered,
            Probe::Unauthorized | Probe::Failed(_) => &self.failed,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    fn rows(&self) -> Vec<Row> {
        let row = |result: &str, count: &AtomicU64| (vec![result.to_owned()], count.load(Ordering::Relaxed));
        vec![row("answered", &self.answered), row("failed", &self.failed)]
    }
}

/// Adds the metrics. `connected` tells how many of the known workload clusters are connected, and how many are not.
pub(crate) fn measure(
    metrics: &Metrics,
    probes: Arc<Probes>,
    connected: impl Fn() -> (u64, u64) + Send + Sync + 'static,
) {
    let table = |name, help, counts, labels| Table {
        name,
        help,
        counts,
        labels,
    };
    let help = "Workload clusters by whether there is a connection";
    let clusters = table("windlass_remote_clusters", help, false, &["connected"]);
    metrics.table(clusters, move || {
        let (yes, no) = connected();
        vec![(vec!["true".to_owned()], yes), (vec!["false".to_owned()], no)]
    });
    let help = "Probes of connections to workload clusters, which are among the requests, by how they ended";
    let sent = table("windlass_remote_probes", help, true, &["result"]);
    metrics.table(sent, move || probes.rows());
}
