//! The server through an in-process `kube` client.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::needless_pass_by_value,
    reason = "a test fails by panicking, and reads best with values"
)]

mod collect;
mod conversions;
mod crds;
mod dry_runs;
mod edge;
mod hookserver;
mod hostile;
mod hostile_answers;
mod hostile_depth;
mod hostile_limits;
mod hostile_network;
mod hostile_reads;
mod hostile_turns;
mod hostile_watch;
mod hostile_work;
mod kubectl_ports;
mod objects;
mod protocol;
mod rbac;
mod rbac_reviews;
mod rbac_roles;
mod stuck;
mod support;
mod views;
mod watching;
mod webhooks;
mod webhooks_failures;
mod webhooks_matching;
mod webhooks_mutating;
