//! HelmReleaseProxy: the kind and its parts.

use k8s_openapi::api::core::v1::ObjectReference;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_api::kind::Column;
use windlass_api::{Condition, schema as core_schema};

use super::helm_chart_proxy::{MESSAGE, said};
use super::{Credentials, HelmOptions, TLSConfig, schema};
use crate::addons::{annotations, values};

windlass_api::api_kind! {
    /// A release of a Helm chart on one Cluster. It is made and kept by its HelmChartProxy.
    pub struct HelmReleaseProxy {
        /// What is wished for.
        #[serde(default)]
        pub spec: HelmReleaseProxySpec,
        /// What was observed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub status: Option<HelmReleaseProxyStatus>,
    }
    group: "addons.cluster.x-k8s.io",
    version: "v1alpha1",
    plural: "helmreleaseproxies",
    short_names: ["hrp"],
    categories: [],
    provider: "addon-helm",
    contract: false,
    required: [],
    status: true,
    scale: None,
    columns: [
        Column::new("Cluster", "string", ".spec.clusterRef.name", "The Cluster that this belongs to"),
        Column::new("Ready", "string", ".status.conditions[?(@.type=='Ready')].status", ""),
        Column::new("Reason", "string", ".status.conditions[?(@.type=='Ready')].reason", ""),
        MESSAGE,
        Column::new("Status", "string", ".status.status", ""),
        Column::new("Revision", "string", ".status.revision", ""),
    ],
}

windlass_api::conditioned!(HelmReleaseProxy);

/// What a release should be.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmReleaseProxySpec {
    /// The Cluster that the release is on.
    #[schemars(schema_with = "schema::object_reference")]
    pub cluster_ref: ObjectReference,
    /// The name of the chart in the repository. It cannot be changed later.
    pub chart_name: String,
    /// The repository of the chart. It cannot be changed later.
    #[serde(rename = "repoURL")]
    pub repo_url: String,
    /// The name of the release; made up before the installation where nothing is said. It can be set once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_name: Option<String>,
    /// The namespace of the release. It cannot be changed later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::namespace")]
    pub namespace: Option<String>,
    /// The version of the chart, or a range of versions; the latest where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The values of the chart as YAML; those of the chart itself where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<String>,
    /// Continuous keeps the release as described here; InstallOnce leaves it alone once it is installed. It cannot be changed
    /// later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["", "InstallOnce", "Continuous"]))]
    pub reconcile_strategy: Option<String>,
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

/// What is known of a release.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmReleaseProxyStatus {
    /// Observed aspects, one entry a type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "core_schema::conditions")]
    pub conditions: Vec<Condition>,
    /// The status of the release, in Helm's words, such as deployed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The revision of the release: 1 for the installation, and one more with every upgrade.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::integer")]
    pub revision: Option<i64>,
    /// The metadata.generation that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::int64")]
    pub observed_generation: Option<i64>,
}

impl HelmReleaseProxySpec {
    /// The namespace of the release; `default` where nothing is said.
    pub fn release_namespace(&self) -> &str {
        said(self.namespace.as_ref()).unwrap_or(values::DEFAULT_NAMESPACE)
    }

    /// The name of the release, once there is one.
    pub fn release_name(&self) -> Option<&str> {
        said(self.release_name.as_ref())
    }

    /// The version or range that is wished for; `None` for the latest.
    pub fn version(&self) -> Option<&str> {
        said(self.version.as_ref())
    }

    /// The name of the Cluster.
    pub fn cluster_name(&self) -> &str {
        said(self.cluster_ref.name.as_ref()).unwrap_or_default()
    }

    /// Whether the release is left alone once it is installed.
    pub fn is_install_once(&self) -> bool {
        self.reconcile_strategy.as_deref() == Some(values::RECONCILE_INSTALL_ONCE)
    }
}

impl HelmReleaseProxy {
    /// Whether the name of the release was made up.
    pub fn is_release_name_generated(&self) -> bool {
        self.is_annotated(annotations::IS_RELEASE_NAME_GENERATED)
    }

    /// Whether the release was installed once, by us.
    pub fn was_installed(&self) -> bool {
        self.is_annotated(annotations::RELEASE_SUCCESSFULLY_INSTALLED)
    }

    fn is_annotated(&self, key: &str) -> bool {
        let annotations = self.metadata.annotations.as_ref();
        annotations
            .and_then(|all| all.get(key))
            .is_some_and(|value| value == "true")
    }
}
