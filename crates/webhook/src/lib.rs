//! Admission over HTTPS.
//!
//! A [`Rule`] is a pure function that judges writes of one kind. API servers in the same process call [`Rule::judge`] themselves.

mod rule;

pub use rule::{Change, Check, Operation, Rule, Verdict};
