//! Durations of what happens beside reconciles, by labels that are known when it happens.

use std::time::Duration;

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

use super::{Buckets, Metrics};

/// A histogram of durations.
#[derive(Clone, Copy, Debug)]
pub struct DurationMetric {
    /// Its name, which ends in `_seconds`.
    pub name: &'static str,
    /// What it is.
    pub help: &'static str,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// The upper limits of its buckets, in seconds.
    pub buckets: &'static [f64],
}

/// The durations of one histogram. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Durations {
    labels: &'static [&'static str],
    family: Family<Vec<(&'static str, String)>, Histogram, Buckets>,
}

impl Durations {
    /// Adds a duration. `values` are those of the labels, in their order.
    pub fn add(&self, values: &[String], took: Duration) {
        let labels = self.labels.iter().copied().zip(values.iter().cloned()).collect();
        self.family.get_or_create(&labels).observe(took.as_secs_f64());
    }
}

impl Metrics {
    /// Registers a histogram of durations.
    pub fn durations(&self, metric: DurationMetric) -> Durations {
        let family = Family::new_with_constructor(Buckets(metric.buckets));
        self.0
            .registry
            .lock()
            .register(metric.name, metric.help, family.clone());
        Durations {
            labels: metric.labels,
            family,
        }
    }
}
