//! The group `runtime.cluster.x-k8s.io`: extensions of the Runtime SDK.

pub mod v1beta2;

pub use v1beta2::*;
