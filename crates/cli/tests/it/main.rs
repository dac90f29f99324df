//! The built program, as a person or a script meets it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic, too")]

mod bad_input;
mod crash;
mod demo;
mod guide;
mod helm;
mod operator;
mod snapshot;
mod support;
mod up;
mod webhook;
