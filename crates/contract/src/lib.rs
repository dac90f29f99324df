//! The provider contract: which version of a provider's kind to use, typed access to its objects, template cloning.

mod version;

pub use version::{ContractVersion, choose_version, compare_versions};
