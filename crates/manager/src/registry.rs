//! The registry: kinds, CRDs, controllers, admission rules and metrics, as data.

pub mod admission;
pub(crate) mod built_in;
pub mod controllers;
pub mod crds;
pub mod helm;
pub mod install;
pub mod kinds;
pub mod metrics;
