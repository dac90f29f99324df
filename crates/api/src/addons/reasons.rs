//! Reasons of conditions of ClusterResourceSets.

/// All resources are on all selected Clusters.
pub const APPLIED: &str = "Applied";
/// A resource or Cluster cannot be read or reached, or a write on the management cluster failed.
pub const INTERNAL_ERROR: &str = "InternalError";
/// A resource cannot be applied to a Cluster.
pub const NOT_APPLIED: &str = "NotApplied";
/// A Secret has another type than `addons.cluster.x-k8s.io/resource-set`.
pub const WRONG_SECRET_TYPE: &str = "WrongSecretType";
