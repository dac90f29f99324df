//! Metrics of calls, under the names and labels of Cluster API, so that its dashboards and alerts go on working.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::{StatusCode, Uri};
use parking_lot::Mutex;
use windlass_controller_runtime::{DurationMetric, Durations, MetricInfo, MetricKind, Metrics, Row, Table};
use windlass_runtime_hooks::{GROUP, Status, VERSION};

const REQUESTS: Table = Table {
    name: "capi_runtime_sdk_requests",
    help: "Requests to extensions by status code, host, hook and status of the answer",
    counts: true,
    labels: &["code", "host", "group", "version", "hook", "status"],
};

const DURATION: DurationMetric = DurationMetric {
    name: "capi_runtime_sdk_request_duration_seconds",
    help: "Duration of requests to extensions by host and hook",
    labels: &["host", "group", "version", "hook"],
    buckets: &[
        0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0,
        30.0, 45.0, 60.0,
    ],
};

/// The metrics of this crate.
pub static METRICS: &[MetricInfo] = &[
    MetricInfo {
        name: REQUESTS.name,
        help: REQUESTS.help,
        kind: MetricKind::Counter,
        labels: REQUESTS.labels,
    },
    MetricInfo {
        name: DURATION.name,
        help: DURATION.help,
        kind: MetricKind::Histogram,
        labels: DURATION.labels,
    },
];

/// The counters of a process.
#[derive(Clone, Debug)]
pub(crate) struct Counters {
    requests: Arc<Mutex<BTreeMap<Vec<String>, u64>>>,
    durations: Durations,
}

impl Counters {
    pub(crate) fn new(metrics: &Metrics) -> Self {
        let requests = Arc::<Mutex<BTreeMap<Vec<String>, u64>>>::default();
        let rows = requests.clone();
        metrics.table(REQUESTS, move || {
            let rows = rows.lock();
            rows.iter()
                .map(|(labels, count)| (labels.clone(), *count))
                .collect::<Vec<Row>>()
        });
        Self {
            requests,
            durations: metrics.durations(DURATION),
        }
    }

    /// Counts a request. `status` is that of the answer, if there is one.
    pub(crate) fn add(&self, hook: &str, to: &Uri, code: Option<StatusCode>, status: &Status, took: Duration) {
        let host = to.authority().map(ToString::to_string).unwrap_or_default();
        let of = |host: &str| [host.to_owned(), GROUP.to_owned(), VERSION.to_owned(), hook.to_owned()];
        let code = code.map_or_else(|| "<error>".to_owned(), |code| code.as_u16().to_string());
        // Other words are the extension's, and any number of them.
        let status = match status {
            Status::Success | Status::Failure => status.as_str(),
            Status::Missing | Status::Other(_) => "Unknown",
        };
        let labels = std::iter::once(code).chain(of(&host)).chain([status.to_owned()]);
        *self.requests.lock().entry(labels.collect()).or_default() += 1;
        self.durations.add(&of(&host), took);
    }
}
