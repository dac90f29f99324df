//! Metrics of connections to workload clusters: their number, their health, and what was refused.
//!
//! The metrics of single clusters have the names and labels of Cluster API (`controllers/clustercache/metrics.go`), so that its dashboards and
//! alerts go on working. Their rows go with the Cluster.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use windlass_controller_runtime::transport::Refusal;
use windlass_controller_runtime::{Metrics, ObjectKey, Row, Table};

use crate::health::Probe;

/// Counters of refusals.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    addresses: AtomicU64,
    excesses: AtomicU64,
}

impl Refusals {
    /// Counts a refusal.
    pub(crate) fn add(&self, refusal: &Refusal) {
        let count = match refusal {
            Refusal::Address(_) => &self.addresses,
            Refusal::Excess(_) => &self.excesses,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    fn rows(&self) -> Vec<Row> {
        let row = |reason: &str, count: &AtomicU64| (vec![reason.to_owned()], count.load(Ordering::Relaxed));
        vec![row("address", &self.addresses), row("excess", &self.excesses)]
    }
}

/// The health checks of one workload cluster over its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Checks {
    succeeded: u64,
    failed: u64,
    /// Whether the last one succeeded; none before the first one.
    last: Option<bool>,
}

impl Checks {
    /// Counts one probe.
    pub(crate) fn add(&mut self, probe: &Probe) {
        let is_answered = *probe == Probe::Answered;
        let count = if is_answered {
            &mut self.succeeded
        } else {
            &mut self.failed
        };
        *count += 1;
        self.last = Some(is_answered);
    }
}

/// What the metrics say of one workload cluster.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) cluster: ObjectKey,
    pub(crate) is_connected: bool,
    /// Whether an attempt to connect was ever made.
    pub(crate) was_tried: bool,
    pub(crate) checks: Checks,
}

impl Measured {
    fn row(&self, status: Option<&str>, value: u64) -> Row {
        let mut labels = vec![self.cluster.name.clone(), self.cluster.namespace.clone()];
        labels.extend(status.map(str::to_owned));
        (labels, value)
    }
}

const CLUSTERS: Table = Table {
    name: "windlass_remote_clusters",
    help: "Workload clusters by connection state",
    counts: false,
    labels: &["connected"],
};

const REFUSALS: Table = Table {
    name: "windlass_remote_refusals",
    help: "Refusals of API servers of workload clusters, by reason: a denied address, or more data than the limits allow",
    counts: true,
    labels: &["reason"],
};

const CONNECTION_UP: Table = Table {
    name: "capi_cluster_cache_connection_up",
    help: "Whether there is a connection to the workload cluster; no row before the first attempt",
    counts: false,
    labels: &["cluster_name", "cluster_namespace"],
};

const HEALTHCHECK: Table = Table {
    name: "capi_cluster_cache_healthcheck",
    help: "Whether the last health probe of the workload cluster succeeded; no row before the first one",
    counts: false,
    labels: &["cluster_name", "cluster_namespace"],
};

const HEALTHCHECKS: Table = Table {
    name: "capi_cluster_cache_healthchecks",
    help: "Health probes of connections to workload clusters by status: success or error; they are included in the requests",
    counts: true,
    labels: &["cluster_name", "cluster_namespace", "status"],
};

/// The metrics of this crate.
pub static METRICS: &[Table] = &[CLUSTERS, REFUSALS, CONNECTION_UP, HEALTHCHECK, HEALTHCHECKS];

/// Registers the metrics. `clusters` returns what is known of each workload cluster.
pub(crate) fn measure(
    metrics: &Metrics,
    refusals: Arc<Refusals>,
    clusters: impl Fn() -> Vec<Measured> + Send + Sync + 'static,
) {
    let clusters = Arc::new(clusters);
    let of = |rows: fn(&[Measured]) -> Vec<Row>| {
        let clusters = clusters.clone();
        move || rows(&clusters())
    };
    metrics.table(REFUSALS, move || refusals.rows());
    let by_state = of(|all| {
        let count = |is: bool| all.iter().filter(|one| one.is_connected == is).count() as u64;
        vec![
            (vec!["true".to_owned()], count(true)),
            (vec!["false".to_owned()], count(false)),
        ]
    });
    metrics.table(CLUSTERS, by_state);
    let up = of(|all| {
        let tried = all.iter().filter(|one| one.was_tried);
        tried.map(|one| one.row(None, one.is_connected.into())).collect()
    });
    metrics.table(CONNECTION_UP, up);
    let last = of(|all| {
        let last = all.iter().filter_map(|one| Some((one, one.checks.last?)));
        last.map(|(one, last)| one.row(None, last.into())).collect()
    });
    metrics.table(HEALTHCHECK, last);
    let checks = of(|all| {
        // As with other counters with labels, there is no row before the first event.
        let rows = all.iter().flat_map(|one| {
            [("success", one.checks.succeeded), ("error", one.checks.failed)]
                .into_iter()
                .filter(|(_, count)| *count > 0)
                .map(|(status, count)| one.row(Some(status), count))
        });
        rows.collect()
    });
    metrics.table(HEALTHCHECKS, checks);
}
