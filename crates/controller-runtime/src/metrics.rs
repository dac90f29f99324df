//! Metrics, under the names that dashboards for controller-runtime use.

mod durations;
mod hosts;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::sync::atomic::AtomicU64;

pub use durations::{DurationMetric, Durations};
pub use hosts::CountedHost;
use hosts::Hosts;

/// All metrics of the process.
#[derive(Clone, Debug)]
pub struct Metrics(Arc<Inner>);

/// What a controller does now and has done, from its metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControllerLoad {
    /// The controller's name.
    pub controller: &'static str,
    /// Whether it reconciles, or has keys in its queue that are due.
    pub is_busy: bool,
    /// Reconciles that have ended, whatever their result.
    pub reconciles: u64,
}

/// The values of the label `result` of reconciles.
const RESULTS: [&str; 4] = ["success", "requeue", "requeue_after", "error"];

type Refresh = Box<dyn Fn() + Send + Sync>;

struct Inner {
    registry: Mutex<Registry>,
    /// Called before each scrape, for gauges that are computed at that time.
    refresh: Mutex<Vec<Refresh>>,
    controllers: Mutex<BTreeSet<&'static str>>,
    reconciles: Family<ReconcileLabels, Counter>,
    errors: Family<ControllerLabel, Counter>,
    failures: Family<FailureLabels, Counter>,
    panics: Family<ControllerLabel, Counter>,
    time: Family<ControllerLabel, Histogram, Buckets>,
    active: Family<ControllerLabel, Gauge>,
    concurrency: Family<ControllerLabel, Gauge>,
    depth: Family<QueueLabels, Gauge>,
    adds: Family<QueueLabels, Counter>,
    waited: Family<QueueLabels, Histogram, Buckets>,
    worked: Family<QueueLabels, Histogram, Buckets>,
    unfinished: Family<QueueLabels, Gauge<f64, AtomicU64>>,
    longest: Family<QueueLabels, Gauge<f64, AtomicU64>>,
    retries: Family<QueueLabels, Counter>,
    requests: Family<RequestLabels, Counter>,
    watches: Family<HostLabel, Counter>,
    writes_skipped: Family<ControllerLabel, Counter>,
    hosts: Hosts,
    leading: Family<LeaseLabel, Gauge>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

/// A metric whose rows are computed at each scrape.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// The name; for a counter, without `_total`.
    pub name: &'static str,
    /// The help text.
    pub help: &'static str,
    /// True for a counter, false for a gauge.
    pub counts: bool,
    /// The names of the labels.
    pub labels: &'static [&'static str],
}

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// A number that only grows. Its name gets the suffix `_total`.
    Counter,
    /// A number that goes up and down.
    Gauge,
    /// A distribution of values.
    Histogram,
}

/// The description of a metric, for its registration and for the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricInfo {
    /// The name; for a counter, without `_total`.
    pub name: &'static str,
    /// The help text.
    pub help: &'static str,
    /// The type.
    pub kind: MetricKind,
    /// The names of the labels.
    pub labels: &'static [&'static str],
}

impl From<&Table> for MetricInfo {
    fn from(table: &Table) -> Self {
        Self {
            name: table.name,
            help: table.help,
            kind: if table.counts {
                MetricKind::Counter
            } else {
                MetricKind::Gauge
            },
            labels: table.labels,
        }
    }
}

const fn metric(
    name: &'static str,
    kind: MetricKind,
    labels: &'static [&'static str],
    help: &'static str,
) -> MetricInfo {
    MetricInfo {
        name,
        help,
        kind,
        labels,
    }
}

/// The labels of metrics of a queue.
const QUEUE: &[&str] = &["name", "controller"];

/// The metrics that every process with controllers has.
pub static METRICS: &[MetricInfo] = &[
    metric(
        "controller_runtime_reconcile",
        MetricKind::Counter,
        &["controller", "result"],
        "Reconciles by controller and result",
    ),
    metric(
        "controller_runtime_reconcile_errors",
        MetricKind::Counter,
        &["controller"],
        "Failed reconciles by controller",
    ),
    metric(
        "controller_runtime_reconcile_panics",
        MetricKind::Counter,
        &["controller"],
        "Reconciles that panicked by controller",
    ),
    metric(
        "windlass_reconcile_failures",
        MetricKind::Counter,
        &["controller", "reason"],
        "Failed reconciles by controller and reason",
    ),
    metric(
        "controller_runtime_reconcile_time_seconds",
        MetricKind::Histogram,
        &["controller"],
        "Duration of reconciles",
    ),
    metric(
        "controller_runtime_active_workers",
        MetricKind::Gauge,
        &["controller"],
        "Number of busy workers",
    ),
    metric(
        "controller_runtime_max_concurrent_reconciles",
        MetricKind::Gauge,
        &["controller"],
        "Maximum number of concurrent reconciles",
    ),
    metric(
        "workqueue_depth",
        MetricKind::Gauge,
        QUEUE,
        "Number of keys in the queue",
    ),
    metric("workqueue_adds", MetricKind::Counter, QUEUE, "Keys added to the queue"),
    metric(
        "workqueue_queue_duration_seconds",
        MetricKind::Histogram,
        QUEUE,
        "Time that keys spent in the queue",
    ),
    metric(
        "workqueue_work_duration_seconds",
        MetricKind::Histogram,
        QUEUE,
        "Time that workers spent on a key",
    ),
    metric(
        "workqueue_unfinished_work_seconds",
        MetricKind::Gauge,
        QUEUE,
        "Seconds of work in progress",
    ),
    metric(
        "workqueue_longest_running_processor_seconds",
        MetricKind::Gauge,
        QUEUE,
        "Duration of the longest work in progress",
    ),
    metric(
        "workqueue_retries",
        MetricKind::Counter,
        QUEUE,
        "Keys added again after a failure",
    ),
    metric(
        "rest_client_requests",
        MetricKind::Counter,
        &["code", "method", "host"],
        "Requests by status code, method and host",
    ),
    metric(
        "windlass_watches",
        MetricKind::Counter,
        &["host"],
        "Watches that were started or renewed, by host; they are included in the requests",
    ),
    metric(
        "windlass_writes_skipped",
        MetricKind::Counter,
        &["controller"],
        "Writes that were skipped because nothing would have changed",
    ),
    metric(
        "leader_election_master_status",
        MetricKind::Gauge,
        &["name"],
        "Whether this process holds the Lease of this name: 1, or 0 while it is a candidate",
    ),
];

/// The values of the labels, and the number.
pub type Row = (Vec<String>, u64);

struct Computed {
    table: Table,
    rows: Box<dyn Fn() -> Vec<Row> + Send + Sync>,
}

impl std::fmt::Debug for Computed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Computed")
            .field("table", &self.table)
            .finish_non_exhaustive()
    }
}

impl Collector for Computed {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let (name, help) = (self.table.name, self.table.help);
        let type_ = if self.table.counts {
            MetricType::Counter
        } else {
            MetricType::Gauge
        };
        let mut metric = encoder.encode_descriptor(name, help, None, type_)?;
        for (values, number) in (self.rows)() {
            let labels: Vec<_> = self.table.labels.iter().copied().zip(values).collect();
            let row = metric.encode_family(&labels)?;
            if self.table.counts {
                ConstCounter::new(number).encode(row)?;
            } else {
                ConstGauge::new(i64::try_from(number).unwrap_or(i64::MAX)).encode(row)?;
            }
        }
        Ok(())
    }
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ReconcileLabels {
    controller: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct FailureLabels {
    controller: &'static str,
    reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ControllerLabel {
    controller: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct LeaseLabel {
    name: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct QueueLabels {
    name: &'static str,
    controller: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestLabels {
    code: String,
    method: String,
    host: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct HostLabel {
    host: String,
}

/// Bucket limits of a histogram family.
#[derive(Clone, Copy, Debug)]
struct Buckets(&'static [f64]);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

const RECONCILE_BUCKETS: Buckets = Buckets(&[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
]);
const QUEUE_BUCKETS: Buckets = Buckets(&[1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.5, 1.0, 5.0, 30.0, 300.0]);

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// A new registry with all metrics registered.
    pub fn new() -> Self {
        let inner = Inner {
            registry: Mutex::new(Registry::default()),
            refresh: Mutex::new(Vec::new()),
            controllers: Mutex::default(),
            reconciles: Family::default(),
            errors: Family::default(),
            failures: Family::default(),
            panics: Family::default(),
            time: Family::new_with_constructor(RECONCILE_BUCKETS),
            active: Family::default(),
            concurrency: Family::default(),
            depth: Family::default(),
            adds: Family::default(),
            waited: Family::new_with_constructor(QUEUE_BUCKETS),
            worked: Family::new_with_constructor(QUEUE_BUCKETS),
            unfinished: Family::default(),
            longest: Family::default(),
            retries: Family::default(),
            requests: Family::default(),
            watches: Family::default(),
            writes_skipped: Family::default(),
            hosts: Hosts::default(),
            leading: Family::default(),
        };
        inner.register();
        Self(Arc::new(inner))
    }

    /// The text of a scrape.
    pub fn encode(&self) -> String {
        for refresh in self.0.refresh.lock().iter() {
            refresh();
        }
        let mut text = String::new();
        // Writing into a String cannot fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.0.registry.lock());
        text
    }

    pub(crate) fn on_scrape(&self, refresh: impl Fn() + Send + Sync + 'static) {
        self.0.refresh.lock().push(Box::new(refresh));
    }

    /// The load of every controller, at a small part of the cost of a scrape.
    pub fn loads(&self) -> Vec<ControllerLoad> {
        let controllers: Vec<&'static str> = self.0.controllers.lock().iter().copied().collect();
        let ended = |controller| -> u64 {
            let counters = RESULTS.map(|result| {
                let counter = self.0.reconciles.get(&ReconcileLabels { controller, result });
                counter.map_or(0, |counter| counter.get())
            });
            counters.iter().sum()
        };
        let is_busy = |controller| {
            let name = controller;
            let queued = self.0.depth.get(&QueueLabels { name, controller });
            let queued = queued.is_some_and(|gauge| gauge.get() > 0);
            let active = self.0.active.get(&ControllerLabel { controller });
            queued || active.is_some_and(|gauge| gauge.get() > 0)
        };
        // What a counted reconcile has left to do shows afterwards, here or at another controller.
        let counted: Vec<u64> = controllers.iter().map(|controller| ended(*controller)).collect();
        let loads = controllers.into_iter().zip(counted);
        let load = |(controller, reconciles)| ControllerLoad {
            controller,
            is_busy: is_busy(controller),
            reconciles,
        };
        loads.map(load).collect()
    }

    /// Adds a metric whose rows are computed at each scrape, from data that the caller has anyway.
    pub fn table(&self, table: Table, rows: impl Fn() -> Vec<Row> + Send + Sync + 'static) {
        let rows = Box::new(rows);
        self.0
            .registry
            .lock()
            .register_collector(Box::new(Computed { table, rows }));
    }

    /// A host whose requests are counted. Its rows are removed with the last copy.
    pub fn host(&self, name: impl Into<String>) -> CountedHost {
        CountedHost::new(self.clone(), name.into())
    }

    /// Requests counted so far: code, method, host, count.
    pub fn requests(&self, code: &str, method: &str, host: &str) -> u64 {
        let labels = RequestLabels {
            code: code.to_owned(),
            method: method.to_owned(),
            host: host.to_owned(),
        };
        self.0.requests.get_or_create(&labels).get()
    }

    pub(crate) fn controller(&self, controller: &'static str) -> ControllerMetrics {
        self.0.controllers.lock().insert(controller);
        let label = ControllerLabel { controller };
        ControllerMetrics {
            metrics: self.clone(),
            controller,
            time: self.0.time.get_or_create(&label).clone(),
            active: self.0.active.get_or_create(&label).clone(),
            concurrency: self.0.concurrency.get_or_create(&label).clone(),
            errors: self.0.errors.get_or_create(&label).clone(),
            panics: self.0.panics.get_or_create(&label).clone(),
        }
    }

    pub(crate) fn queue(&self, name: &'static str) -> QueueMetrics {
        let labels = QueueLabels { name, controller: name };
        QueueMetrics {
            depth: self.0.depth.get_or_create(&labels).clone(),
            adds: self.0.adds.get_or_create(&labels).clone(),
            waited: self.0.waited.get_or_create(&labels).clone(),
            worked: self.0.worked.get_or_create(&labels).clone(),
            unfinished: self.0.unfinished.get_or_create(&labels).clone(),
            longest: self.0.longest.get_or_create(&labels).clone(),
            retries: self.0.retries.get_or_create(&labels).clone(),
        }
    }

    /// Whether this process holds a Lease.
    pub(crate) fn leading(&self, lease: &str, holds: bool) {
        let label = LeaseLabel { name: lease.to_owned() };
        self.0.leading.get_or_create(&label).set(i64::from(holds));
    }

    pub(crate) fn write_skipped(&self, controller: &'static str) {
        self.0
            .writes_skipped
            .get_or_create(&ControllerLabel { controller })
            .inc();
    }

    /// Reconciles of a controller that ended with `result` (success, requeue, requeue_after, error).
    pub fn reconciles(&self, controller: &'static str, result: &'static str) -> u64 {
        let labels = ReconcileLabels { controller, result };
        self.0.reconciles.get_or_create(&labels).get()
    }
}

impl Inner {
    fn register(&self) {
        let mut r = self.registry.lock();
        add(&mut r, "controller_runtime_reconcile", self.reconciles.clone());
        add(&mut r, "controller_runtime_reconcile_errors", self.errors.clone());
        add(&mut r, "controller_runtime_reconcile_panics", self.panics.clone());
        add(&mut r, "windlass_reconcile_failures", self.failures.clone());
        add(&mut r, "controller_runtime_reconcile_time_seconds", self.time.clone());
        add(&mut r, "controller_runtime_active_workers", self.active.clone());
        add(
            &mut r,
            "controller_runtime_max_concurrent_reconciles",
            self.concurrency.clone(),
        );
        add(&mut r, "workqueue_depth", self.depth.clone());
        add(&mut r, "workqueue_adds", self.adds.clone());
        add(&mut r, "workqueue_queue_duration_seconds", self.waited.clone());
        add(&mut r, "workqueue_work_duration_seconds", self.worked.clone());
        add(&mut r, "workqueue_unfinished_work_seconds", self.unfinished.clone());
        add(
            &mut r,
            "workqueue_longest_running_processor_seconds",
            self.longest.clone(),
        );
        add(&mut r, "workqueue_retries", self.retries.clone());
        add(&mut r, "rest_client_requests", self.requests.clone());
        add(&mut r, "windlass_watches", self.watches.clone());
        add(&mut r, "windlass_writes_skipped", self.writes_skipped.clone());
        add(&mut r, "leader_election_master_status", self.leading.clone());
    }
}

/// Registers a metric with the help text of [`METRICS`]. The encoder appends `_total` to counters.
fn add(registry: &mut Registry, name: &'static str, metric: impl prometheus_client::registry::Metric) {
    let help = METRICS
        .iter()
        .find(|known| known.name == name)
        .map_or("", |known| known.help);
    registry.register(name, help, metric);
}

/// The handles of one controller.
#[derive(Clone, Debug)]
pub(crate) struct ControllerMetrics {
    metrics: Metrics,
    controller: &'static str,
    pub(crate) time: Histogram,
    pub(crate) active: Gauge,
    pub(crate) concurrency: Gauge,
    pub(crate) errors: Counter,
    pub(crate) panics: Counter,
}

impl ControllerMetrics {
    pub(crate) fn result(&self, result: &'static str) {
        debug_assert!(RESULTS.contains(&result), "{result} is not in the list");
        let labels = ReconcileLabels {
            controller: self.controller,
            result,
        };
        self.metrics.0.reconciles.get_or_create(&labels).inc();
    }

    pub(crate) fn failure(&self, reason: &'static str) {
        self.errors.inc();
        let labels = FailureLabels {
            controller: self.controller,
            reason,
        };
        self.metrics.0.failures.get_or_create(&labels).inc();
    }
}

/// The handles of one queue.
#[derive(Clone, Debug)]
pub(crate) struct QueueMetrics {
    pub(crate) depth: Gauge,
    pub(crate) adds: Counter,
    pub(crate) waited: Histogram,
    pub(crate) worked: Histogram,
    pub(crate) unfinished: Gauge<f64, AtomicU64>,
    pub(crate) longest: Gauge<f64, AtomicU64>,
    pub(crate) retries: Counter,
}
