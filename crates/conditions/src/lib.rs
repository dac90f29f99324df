//! Conditions: set, get, mirror, summarize, aggregate, sort; and the deprecated v1beta1 conditions.
//!
//! Pure: the time of a change is an argument.

mod aggregate;
mod draft;
pub mod legacy;
mod merge;
mod message;
mod mirror;
mod order;
mod set;
mod slow;
mod summary;
pub mod value;

pub use aggregate::{Aggregate, Source, aggregate};
pub use draft::{Builder, Draft};
pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
pub use merge::{ComputeReason, GetPriority, Merged, Owned, Priority, Reasons, default_priority};
pub use message::listed;
pub use mirror::{Fallback, Mirror, mirror, named};
pub use order::{compare_types, sort};
pub use set::{
    Status, carried, condition, get, has_same_state, is_false, is_true, is_unknown, message, reason, remove, set,
    status, whole_seconds,
};
pub use slow::{Going, causes_of_delay, slow_deletions};
pub use summary::{Summary, TransformMessages, summary};

/// The reason in place of a missing condition.
pub const NOT_YET_REPORTED: &str = "NotYetReported";
/// The reason in place of a missing reason in a provider's condition.
pub const NO_REASON_REPORTED: &str = "NoReasonReported";
