//! Finalizers of the add-on provider.

/// On HelmChartProxy: its releases are uninstalled first.
pub const HELM_CHART_PROXY: &str = "helmchartproxy.addons.cluster.x-k8s.io";
/// On HelmReleaseProxy: its release is uninstalled first.
pub const HELM_RELEASE_PROXY: &str = "helmreleaseproxy.addons.cluster.x-k8s.io";
