//! The Helm add-on provider on an API server of each test's own: charts with Clusters that are objects alone, releases with workload
//! clusters on loopback.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic, too")]

mod borders;
mod charts;
mod charts_faults;
mod charts_many;
mod charts_values;
mod env;
mod releases;
