//! The Cluster, MachineDeployment, MachineSet and MachineHealthCheck controllers against an API server of each test's own.

#![allow(clippy::unwrap_used, reason = "this is a test")]

mod cluster_fields;
mod env;
mod external;
mod guards;
mod health;
mod infrastructure;
mod rollouts;
mod scale;
mod sets;
mod standalone;
