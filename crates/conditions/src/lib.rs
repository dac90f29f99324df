//! Conditions: set, mirror, summary, aggregate.
