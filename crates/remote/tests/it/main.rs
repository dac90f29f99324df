//! Connections to workload clusters, against embedded API servers behind TLS.

#![allow(clippy::unwrap_used, reason = "this is a test")]

mod connection;
mod tunnel;
mod world;
