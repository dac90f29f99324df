//! ClusterClass, Cluster and what exists, in; desired objects and the steps towards them, out.
//!
//! Pure: no client, no clock, no randomness.

mod error;
pub mod gotemplate;
pub mod keys;
pub mod model;
pub mod names;
pub mod patches;
pub mod variables;
pub mod version;

pub use error::{Error, describe};
