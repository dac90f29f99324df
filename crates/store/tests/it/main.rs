//! The store through its public interface: history, durability, damage.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod durable;
mod history;
mod killed;
mod labels;
mod snapshots;
mod support;
