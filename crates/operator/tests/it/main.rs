//! The operator on an API server of each test's own, with providers that look like real ones.
//!
//! OP-230: what is decided is tested beside the code that decides it; here, on an API server, is what comes of it.

#![expect(clippy::panic, reason = "a test that cannot go on ends by a panic")]

mod adopt;
mod airgap;
mod contract;
mod drift;
mod env;
mod faults;
mod preflight;
mod removal;
mod settings;
mod together;
mod upgrade;
