//! The Helm add-on provider on an API server of each test's own, with Clusters that are objects alone.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic, too")]

mod charts;
mod charts_faults;
mod charts_many;
mod charts_values;
mod env;
