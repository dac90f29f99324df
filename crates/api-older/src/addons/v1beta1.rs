//! Version v1beta1 of the group of ClusterResourceSets.

mod cluster_resource_set;
mod cluster_resource_set_binding;

pub use cluster_resource_set::*;
pub use cluster_resource_set_binding::*;
