//! The group `infrastructure.cluster.x-k8s.io`: the dev provider.

pub mod v1beta2;

pub use v1beta2::*;
