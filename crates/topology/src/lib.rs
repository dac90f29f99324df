//! ClusterClass, Cluster and what exists, in; desired objects and the steps towards them, out.
//!
//! Pure: no client, no clock, no randomness. [`blueprint`] puts a class and its templates together, [`current`] says
//! what exists, and [`plan::plan`] gives the steps with the reason for each, which a preview prints and a controller
//! takes.

pub mod blueprint;
pub mod current;
pub mod desired;
pub mod diff;
mod error;
pub mod hooks;
pub mod keys;
pub mod model;
pub mod names;
pub mod patches;
pub mod plan;
pub mod revision;
pub mod status;
mod target;
#[cfg(test)]
mod testing;
pub mod trial;
pub mod upgrade;
pub mod variables;
pub mod version;
pub mod waves;

pub use error::{Error, describe};
pub use target::Target;
