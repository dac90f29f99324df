//! The group `operator.cluster.x-k8s.io`.

pub mod v1alpha2;

pub use v1alpha2::*;
