//! The operator on an API server of each test's own, with providers that look like real ones.

#![expect(clippy::panic, reason = "a test that cannot go on ends by a panic")]

mod adopt;
mod airgap;
mod contract;
mod drift;
mod env;
mod faults;
mod preflight;
mod removal;
mod upgrade;
