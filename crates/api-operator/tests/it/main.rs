//! What the schemas of both APIs take and refuse, as a strict API server does.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic, too")]

mod examples;
mod management;
mod operator;
mod server;
