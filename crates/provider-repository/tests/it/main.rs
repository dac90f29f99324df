//! Every type of repository and its failures, with servers on loopback.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod env;
mod faults;
mod folder;
mod github;
mod known;
mod oci;
mod others;
mod way;
mod whatever;
