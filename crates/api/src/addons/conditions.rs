//! Condition types of ClusterResourceSets.

/// The resources are on all selected Clusters.
pub const RESOURCES_APPLIED: &str = "ResourcesApplied";
