//! The group `bootstrap.cluster.x-k8s.io`.

pub mod v1beta2;

pub use v1beta2::*;
