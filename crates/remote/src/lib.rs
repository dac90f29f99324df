//! Connections to workload clusters.
