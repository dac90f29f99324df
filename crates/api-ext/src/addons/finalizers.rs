//! Finalizers of the add-on provider.

/// Of a HelmChartProxy: its releases go first.
pub const HELM_CHART_PROXY: &str = "helmchartproxy.addons.cluster.x-k8s.io";
/// Of a HelmReleaseProxy: its release is uninstalled first.
pub const HELM_RELEASE_PROXY: &str = "helmreleaseproxy.addons.cluster.x-k8s.io";
