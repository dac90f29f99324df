//! Connections to workload clusters, against embedded API servers behind TLS.

#![allow(clippy::unwrap_used, clippy::panic, reason = "this is a test")]

mod connection;
mod hostile;
mod slow;
mod tunnel;
mod world;
