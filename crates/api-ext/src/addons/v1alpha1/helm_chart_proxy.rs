//! HelmChartProxy: the kind and its parts.

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_api::kind::Column;
use windlass_api::{Condition, schema as core_schema};

use super::{Credentials, HelmOptions, TLSConfig, schema};
use crate::addons::values;

windlass_api::api_kind! {
    /// A Helm chart, and a selector of the Clusters in the same namespace on which it is installed.
    pub struct HelmChartProxy {
        /// The desired state of the object.
        #[serde(default)]
        pub spec: HelmChartProxySpec,
        /// The observed state of the object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub status: Option<HelmChartProxyStatus>,
    }
    group: "addons.cluster.x-k8s.io",
    version: "v1alpha1",
    plural: "helmchartproxies",
    short_names: ["hcp"],
    categories: [],
    provider: "addon-helm",
    labels: [("clusterctl.cluster.x-k8s.io/move-hierarchy", "true")],
    contract: false,
    required: [],
    status: true,
    scale: None,
    columns: [
        Column::new("Ready", "string", ".status.conditions[?(@.type=='Ready')].status", ""),
        Column::new("Reason", "string", ".status.conditions[?(@.type=='Ready')].reason", ""),
        MESSAGE,
    ],
}

/// Column with the message of the Ready condition, for `-o wide`.
pub(super) const MESSAGE: Column = Column {
    name: "Message",
    path: ".status.conditions[?(@.type=='Ready')].message",
    type_: "string",
    priority: 1,
    description: "",
};

windlass_api::conditioned!(HelmChartProxy);

/// The desired state of a HelmChartProxy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmChartProxySpec {
    /// Label selector of the Clusters in this namespace that get the chart. An empty selector matches all of them. When
    /// a Cluster no longer matches, its release is uninstalled.
    #[schemars(schema_with = "core_schema::label_selector")]
    pub cluster_selector: LabelSelector,
    /// Name of the chart in the repository. A change replaces the release: the old one is uninstalled first.
    pub chart_name: String,
    /// URL of the chart repository: https://HOST/PATH for a repository with an index, oci://HOST/PATH for a registry. A
    /// change replaces the release.
    #[serde(rename = "repoURL")]
    pub repo_url: String,
    /// Name of the release. Generated once per Cluster when unset. A change replaces the release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_name: Option<String>,
    /// Namespace of the release on each Cluster. It is created if it does not exist. A change replaces the release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::namespace")]
    pub namespace: Option<String>,
    /// Version of the chart, or a version range. When unset, releases follow the latest published version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Values of the chart as YAML. It may contain Go template actions with fields of the Cluster, for example {{
    /// .Cluster.metadata.name }}, of its control plane object (.ControlPlane) and of its infrastructure object
    /// (.InfraCluster).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values_template: Option<String>,
    /// Continuous reconciles releases all the time. InstallOnce does not change a release after its installation, even
    /// when the Cluster no longer matches. Immutable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["", "InstallOnce", "Continuous"]))]
    pub reconcile_strategy: Option<String>,
    /// Rollout in steps. When unset, all Clusters are changed at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<Rollout>,
    /// Options of Helm operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = {}))]
    pub options: Option<HelmOptions>,
    /// Credentials of a registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Credentials>,
    /// TLS settings of the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_config: Option<TLSConfig>,
}

/// Rollout steps, separate for installations and for upgrades.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rollout {
    /// Steps of installations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install: Option<RolloutSteps>,
    /// Steps of upgrades.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<RolloutSteps>,
}

/// Sizes of rollout steps. A step starts when the releases of all earlier steps are ready.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutSteps {
    /// Size of the first step: a number, or a percentage of the matching Clusters, rounded up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "core_schema::int_or_string")]
    pub step_init: Option<IntOrString>,
    /// Increment of the step size per step: a number or a percentage. All steps have the same size when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "core_schema::int_or_string")]
    pub step_increment: Option<IntOrString>,
    /// Maximum step size: a number or a percentage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "core_schema::int_or_string")]
    pub step_limit: Option<IntOrString>,
}

/// The observed state of a HelmChartProxy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmChartProxyStatus {
    /// Conditions of the object, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "core_schema::conditions")]
    pub conditions: Vec<Condition>,
    /// References to the matching Clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "core_schema::object_references")]
    pub matching_clusters: Option<Vec<ObjectReference>>,
    /// The metadata.generation that the controller observed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::int64")]
    pub observed_generation: Option<i64>,
}

impl HelmChartProxySpec {
    /// The effective namespace of releases. Defaults to `default`.
    pub fn release_namespace(&self) -> &str {
        said(self.namespace.as_ref()).unwrap_or(values::DEFAULT_NAMESPACE)
    }

    /// The configured name of releases.
    pub fn release_name(&self) -> Option<&str> {
        said(self.release_name.as_ref())
    }

    /// Whether the strategy is InstallOnce.
    pub fn is_install_once(&self) -> bool {
        self.reconcile_strategy.as_deref() == Some(values::RECONCILE_INSTALL_ONCE)
    }
}

/// The text, unless it is empty.
pub(super) fn said(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}

windlass_api::parts!(HelmChartProxyStatus);
