//! The provider operator: installs, upgrades, changes and removes the providers that are declared in a management cluster.
//!
//! - [`provider`] is the controller, the same for the eleven kinds of both APIs: `observe` reads what is cheap, `plan` decides or asks,
//!   `answer` reads what it asks for, `apply` writes, `status` reports.
//! - [`prepare`] fetches the files of a desired release and renders it with crate `provider-components`. It belongs to `answer`.
//! - [`kept`] is what is kept of an installed provider, in Secrets beside its declaration.
//! - [`tracker`] notices what is no longer as it was left; [`health`] says whether what runs works.
//! - [`awaited`] is what blocked providers wait for.
//! - [`peers`] is what declared providers know of one another.
//! - [`BuiltIns`] are the providers that need no installation, as this process has their controllers.

pub mod awaited;
mod built_in;
mod certificates;
mod claims;
pub mod health;
mod inventory;
pub mod kept;
mod masked;
mod metrics;
pub mod names;
pub mod objects;
pub mod peers;
mod ports;
pub mod prepare;
pub mod provider;
pub mod tracker;

use windlass_api_operator::{management, operator};
use windlass_controller_runtime::ControllerEntry;

pub use built_in::{BuiltIns, Own};
pub use metrics::METRICS;
pub use ports::Operator;
pub use provider::Provided;

/// The controllers of all kinds of both APIs.
pub fn entries(operator: &Operator) -> Vec<ControllerEntry> {
    let mut entries = Vec::new();
    macro_rules! add {
        ($kind:ty) => {
            entries.push(<$kind>::controller(operator));
        };
    }
    peers::for_all_kinds!(add);
    entries
}
