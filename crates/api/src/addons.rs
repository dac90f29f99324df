//! The group `addons.cluster.x-k8s.io`, as far as the core provider serves it: sets of resources that selected Clusters get.

pub mod conditions;
pub mod reasons;
pub mod v1beta2;

pub use v1beta2::*;
