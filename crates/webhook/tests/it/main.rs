//! Webhooks between an API server and a process that serves them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic, too")]

mod certificates;
mod configuration;
mod conversion;
mod load;
mod reads;
mod serving;
mod support;
