//! The operator on an API server of each test's own, with providers that look like real ones.
//!
//! What is decided is tested beside the code that decides it; here, on an API server, is what comes of it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic, too")]

mod additional;
mod addons;
mod adopt;
mod airgap;
mod asked;
mod bad_input;
mod built_in;
mod certificates;
mod clusterctl;
mod contract;
mod drift;
mod env;
mod events;
mod examples;
mod faults;
mod fetch;
mod hook;
mod own_kinds;
mod preflight;
mod removal;
mod restart;
mod rollback;
mod settings;
mod shelves;
mod storage;
mod together;
mod trust;
mod upgrade;
