//! Condition types of the add-on provider's kinds, together with those of the core.

pub use windlass_api::conditions::*;

/// Of a HelmChartProxy: every selected cluster has the HelmReleaseProxy that it should have, and no other cluster has one.
pub const HELM_RELEASE_PROXY_SPECS_UP_TO_DATE: &str = "HelmReleaseProxySpecsUpToDate";
/// Of a HelmChartProxy: all its HelmReleaseProxies are ready.
pub const HELM_RELEASE_PROXIES_READY: &str = "HelmReleaseProxiesReady";
/// Of a HelmChartProxy that goes in steps: no cluster waits for its turn any more.
pub const HELM_RELEASE_PROXIES_ROLLOUT_COMPLETED: &str = "HelmReleaseProxiesRolloutCompleted";
/// Of a HelmReleaseProxy: its release is on the cluster as it should be.
pub const HELM_RELEASE_READY: &str = "HelmReleaseReady";
/// Of a HelmReleaseProxy: its cluster can be reached.
pub const CLUSTER_AVAILABLE: &str = "ClusterAvailable";
