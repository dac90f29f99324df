//! Conversions of whole objects.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic, too")]

mod random;
mod round_trips;
