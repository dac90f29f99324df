//! Label keys of the operator and of what it installs.

pub use windlass_api::labels::*;

/// On everything that belongs to providers; the value is empty.
pub const CLUSTERCTL: &str = "clusterctl.cluster.x-k8s.io";
/// On shared components: the inventory, cert-manager.
pub const CLUSTERCTL_CORE: &str = "clusterctl.cluster.x-k8s.io/core";
/// The value of [`CLUSTERCTL_CORE`] on the inventory.
pub const CLUSTERCTL_CORE_INVENTORY: &str = "inventory";
/// The value of [`CLUSTERCTL_CORE`] on cert-manager.
pub const CLUSTERCTL_CORE_CERT_MANAGER: &str = "cert-manager";
/// The version in a ConfigMap, if it is not the name of the ConfigMap.
pub const VERSION: &str = "provider.cluster.x-k8s.io/version";
/// The type of the provider of a ConfigMap or Secret.
pub const TYPE: &str = "provider.cluster.x-k8s.io/type";
/// The name of the provider of a ConfigMap or Secret.
pub const NAME: &str = "provider.cluster.x-k8s.io/name";
/// Hash of the source of a ConfigMap's content.
pub const SOURCE: &str = "provider.cluster.x-k8s.io/source";
/// Marks objects that the operator creates.
pub const MANAGED_BY_OPERATOR: &str = "managed-by.operator.cluster.x-k8s.io";
