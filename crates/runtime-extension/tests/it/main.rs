//! Extensions over real TLS on loopback.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic, too")]

mod calls;
mod serving;
mod support;
