//! The group `clusterctl.cluster.x-k8s.io`: the inventory of installed providers, which command-line tools read.

pub mod v1alpha3;

pub use v1alpha3::*;
