//! Label keys of the add-on provider.

/// On a HelmReleaseProxy: the name of the HelmChartProxy that it is of, as a label can hold it.
pub const HELM_CHART_PROXY_NAME: &str = "helmreleaseproxy.addons.cluster.x-k8s.io/helmchartproxy-name";
