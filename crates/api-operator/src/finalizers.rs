//! Finalizers of the operator.

/// On declarations of providers, of both APIs.
pub const PROVIDER: &str = "provider.cluster.x-k8s.io";
