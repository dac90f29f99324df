//! Label keys of the add-on provider.

/// On a HelmReleaseProxy: the name of its HelmChartProxy, shortened to fit a label value.
pub const HELM_CHART_PROXY_NAME: &str = "helmreleaseproxy.addons.cluster.x-k8s.io/helmchartproxy-name";
