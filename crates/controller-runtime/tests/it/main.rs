//! The driver against an API server, with faults in between.

#![allow(clippy::unwrap_used, clippy::panic, reason = "this is a test")]

mod cache;
mod concerns;
mod driver;
mod dynamic;
mod election;
mod gadget;
mod harness;
mod lost_fields;
mod pipeline;
mod streams;
mod transport;
mod writer;
