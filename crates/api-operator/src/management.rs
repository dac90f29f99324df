//! The group `management.cluster.x-k8s.io`.

pub mod v1alpha1;

pub use v1alpha1::*;
