//! Condition types of the add-on provider's kinds, together with those of the core.

pub use windlass_api::conditions::*;

/// On HelmChartProxy: every matching Cluster has an up-to-date HelmReleaseProxy, and no other Cluster has one.
pub const HELM_RELEASE_PROXY_SPECS_UP_TO_DATE: &str = "HelmReleaseProxySpecsUpToDate";
/// On HelmChartProxy: all its HelmReleaseProxies are ready.
pub const HELM_RELEASE_PROXIES_READY: &str = "HelmReleaseProxiesReady";
/// On a HelmChartProxy with rollout steps: the rollout covers all matching Clusters.
pub const HELM_RELEASE_PROXIES_ROLLOUT_COMPLETED: &str = "HelmReleaseProxiesRolloutCompleted";
/// On HelmReleaseProxy: the release is deployed as specified.
pub const HELM_RELEASE_READY: &str = "HelmReleaseReady";
/// On HelmReleaseProxy: the workload cluster is reachable.
pub const CLUSTER_AVAILABLE: &str = "ClusterAvailable";
