//! The Cluster, MachineDeployment, MachineSet and MachineHealthCheck controllers against an API server in this process.

#![allow(clippy::unwrap_used, reason = "this is a test")]

mod env;
mod external;
mod health;
mod infrastructure;
mod rollouts;
mod sets;
