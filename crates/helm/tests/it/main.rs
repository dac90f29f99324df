//! The engine with the real helm, of both major versions, against the embedded API server and fake repositories.
//!
//! `cargo xtask tools` builds both; if one is missing, its tests are left out with a message.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::large_futures,
    reason = "a test fails by panicking, and how large one is does not matter"
)]

mod charts;
mod ends;
mod errors;
mod player;
mod releases;
mod stop;
mod support;
