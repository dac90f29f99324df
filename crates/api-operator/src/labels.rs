//! Label keys of the operator and of what it installs.

pub use windlass_api::labels::*;

/// On everything that belongs to providers; the value is empty.
pub const CLUSTERCTL: &str = "clusterctl.cluster.x-k8s.io";
/// On what serves providers: the inventory, cert-manager.
pub const CLUSTERCTL_CORE: &str = "clusterctl.cluster.x-k8s.io/core";
/// The value of [`CLUSTERCTL_CORE`] on the inventory.
pub const CLUSTERCTL_CORE_INVENTORY: &str = "inventory";
/// The value of [`CLUSTERCTL_CORE`] on cert-manager.
pub const CLUSTERCTL_CORE_CERT_MANAGER: &str = "cert-manager";
/// The version that a ConfigMap holds, where its name does not say so.
pub const VERSION: &str = "provider.cluster.x-k8s.io/version";
/// The sort of provider that a ConfigMap or Secret is about.
pub const TYPE: &str = "provider.cluster.x-k8s.io/type";
/// The provider that a ConfigMap or Secret is about.
pub const NAME: &str = "provider.cluster.x-k8s.io/name";
/// Where the content of a ConfigMap came from, as a hash.
pub const SOURCE: &str = "provider.cluster.x-k8s.io/source";
/// Made by the operator.
pub const MANAGED_BY_OPERATOR: &str = "managed-by.operator.cluster.x-k8s.io";
