//! The group `clusterctl.cluster.x-k8s.io`: what is installed, as the command line tools see it.

pub mod v1alpha3;

pub use v1alpha3::*;
