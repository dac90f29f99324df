//! The built program, as a user or a script runs it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic, too")]

mod bad_input;
mod class_check;
mod crash;
mod demo;
mod election;
mod gates;
mod guide;
mod helm;
mod operator;
mod others;
mod plan;
mod secrets;
mod snapshot;
mod support;
mod up;
mod webhook;
