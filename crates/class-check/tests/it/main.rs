//! Checks and unit tests of classes, on whole files.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic, too")]

mod hostile;
mod lint;
mod unit;
mod world;
