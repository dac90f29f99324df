//! The provider contract: the version of a provider's kind to use, typed access to its objects, template cloning; and the label
//! selectors for objects of clusters.
//!
//! Reads are total: a field that is absent or does not match the contract reads as absent.

pub mod bootstrap;
mod clone;
pub mod control_plane;
pub mod infra_cluster;
pub mod infra_machine;
pub mod infra_machine_pool;
mod path;
mod reference;
pub mod selector;
mod version;

pub use clone::{Cloning, clone_template, is_template};
pub use path::{bool_at, conditions_at, int_at, set_at, str_at, value_at};
pub use reference::{group_kind_of, reference_to};
pub use selector::{Labels, Selector, SelectorError};
pub use version::{ContractVersion, choose_version, compare_versions};

use serde_json::Value;

/// The condition of a provider's object as a whole.
pub const READY: &str = "Ready";
/// The condition of a control plane as a whole.
pub const AVAILABLE: &str = "Available";

/// `status.failureReason` and `status.failureMessage`: terminal failures, as v1beta1 providers report them.
pub fn failures(object: &Value) -> (Option<String>, Option<String>) {
    let text = |field| str_at(object, &["status", field]).map(str::to_owned);
    (text("failureReason"), text("failureMessage"))
}
