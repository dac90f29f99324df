//! The controller through its driver, against API servers in process.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic, too")]

mod pins;
mod tokens;
mod world;
