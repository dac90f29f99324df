//! Version v1beta2 of ClusterResourceSets and ClusterResourceSetBindings.

mod cluster_resource_set;
mod cluster_resource_set_binding;

pub use cluster_resource_set::*;
pub use cluster_resource_set_binding::*;

/// The finalizer of ClusterResourceSets.
pub const CLUSTER_RESOURCE_SET_FINALIZER: &str = "addons.cluster.x-k8s.io";

/// The type that a Secret with resources must have.
pub const RESOURCE_SET_SECRET_TYPE: &str = "addons.cluster.x-k8s.io/resource-set";

/// Strategy: a resource is created once on each Cluster.
pub const STRATEGY_APPLY_ONCE: &str = "ApplyOnce";
/// Strategy: a resource is applied again when its contents change.
pub const STRATEGY_RECONCILE: &str = "Reconcile";
