//! The group `ipam.cluster.x-k8s.io`: addresses of machines from pools of IPAM providers.

pub mod v1beta2;

pub use v1beta2::*;
