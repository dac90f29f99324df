//! Finalizers of the operator.

/// On provider objects of both APIs.
pub const PROVIDER: &str = "provider.cluster.x-k8s.io";
