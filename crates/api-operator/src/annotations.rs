//! Annotation keys of the operator and of what it installs.

pub use windlass_api::annotations::*;

/// The replicas of a Deployment before its provider was paused.
pub const ORIGINAL_CONTROLLER_REPLICAS: &str = "management.cluster.x-k8s.io/original-controller-replicas";
/// Hash of the last applied release.
pub const APPLIED_SPEC_HASH: &str = "operator.cluster.x-k8s.io/applied-spec-hash";
/// Marks a ConfigMap with compressed content.
pub const COMPRESSED: &str = "provider.cluster.x-k8s.io/compressed";
/// Source of the content of a ConfigMap.
pub const SOURCE: &str = "provider.cluster.x-k8s.io/source";
/// The version of cert-manager that was installed.
pub const CERT_MANAGER_VERSION: &str = "cert-manager.clusterctl.cluster.x-k8s.io/version";
