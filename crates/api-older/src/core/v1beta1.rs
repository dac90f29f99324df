//! Version v1beta1 of the core group.

mod machine_drain_rule;

pub use machine_drain_rule::*;
