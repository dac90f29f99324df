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
    /// A Helm chart, and the Clusters of the same namespace that have it installed.
    pub struct HelmChartProxy {
        /// What is wished for.
        #[serde(default)]
        pub spec: HelmChartProxySpec,
        /// What was observed.
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

/// The column with the message of the condition Ready, for `-o wide`.
pub(super) const MESSAGE: Column = Column {
    name: "Message",
    path: ".status.conditions[?(@.type=='Ready')].message",
    type_: "string",
    priority: 1,
    description: "",
};

windlass_api::conditioned!(HelmChartProxy);

/// Which chart goes where, and with which values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmChartProxySpec {
    /// The Clusters of this namespace that get the chart. An empty selector chooses all of them. From a Cluster that is no
    /// longer chosen the release is uninstalled.
    #[schemars(schema_with = "core_schema::label_selector")]
    pub cluster_selector: LabelSelector,
    /// The name of the chart in the repository. Another chart means another release: the old one is uninstalled first.
    pub chart_name: String,
    /// The repository of the chart: https://HOST/PATH for an index, oci://HOST/PATH for a registry. Another repository means
    /// another release.
    #[serde(rename = "repoURL")]
    pub repo_url: String,
    /// The name of the release; made up, once for each Cluster, where nothing is said. Another name means another release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_name: Option<String>,
    /// The namespace of the release on each Cluster, created where it is missing. Another namespace means another release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::namespace")]
    pub namespace: Option<String>,
    /// The version of the chart, or a range of versions. Where nothing is said it is the latest, and releases follow when a later
    /// one is published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The values of the chart as YAML. It may use Go templates with fields of the Cluster, such as
    /// {{ .Cluster.metadata.name }}, of the object behind controlPlaneRef (.ControlPlane) and of the one behind
    /// infrastructureRef (.InfraCluster).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values_template: Option<String>,
    /// Continuous keeps releases as described here; InstallOnce leaves them alone once they are installed, also when their
    /// Cluster is no longer chosen. It cannot be changed later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["", "InstallOnce", "Continuous"]))]
    pub reconcile_strategy: Option<String>,
    /// How many Clusters go at a time; all of them where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<Rollout>,
    /// How Helm is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = {}))]
    pub options: Option<HelmOptions>,
    /// Credentials for a registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Credentials>,
    /// How the repository is trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_config: Option<TLSConfig>,
}

/// How many Clusters go at a time, for first installations and for later changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rollout {
    /// When the chart comes to Clusters that do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install: Option<RolloutSteps>,
    /// When releases change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<RolloutSteps>,
}

/// Clusters go in steps: the next step begins when all Clusters that went before are ready.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutSteps {
    /// How many Clusters the first step has: a number, or a percentage of all chosen Clusters, rounded up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "core_schema::int_or_string")]
    pub step_init: Option<IntOrString>,
    /// By how many Clusters each further step is larger; a number or a percentage. All steps are equal where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "core_schema::int_or_string")]
    pub step_increment: Option<IntOrString>,
    /// The most Clusters that a step ever has; a number or a percentage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "core_schema::int_or_string")]
    pub step_limit: Option<IntOrString>,
}

/// What is known of a HelmChartProxy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmChartProxyStatus {
    /// Observed aspects, one entry a type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "core_schema::conditions")]
    pub conditions: Vec<Condition>,
    /// The Clusters that the selector chooses, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::object_references")]
    pub matching_clusters: Option<Vec<ObjectReference>>,
    /// The metadata.generation that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::int64")]
    pub observed_generation: Option<i64>,
}

impl HelmChartProxySpec {
    /// The namespace of releases; `default` where nothing is said.
    pub fn release_namespace(&self) -> &str {
        said(self.namespace.as_ref()).unwrap_or(values::DEFAULT_NAMESPACE)
    }

    /// The name of releases, where one is given.
    pub fn release_name(&self) -> Option<&str> {
        said(self.release_name.as_ref())
    }

    /// Whether releases are left alone once they are installed.
    pub fn is_install_once(&self) -> bool {
        self.reconcile_strategy.as_deref() == Some(values::RECONCILE_INSTALL_ONCE)
    }
}

/// A text that says something.
pub(super) fn said(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}
