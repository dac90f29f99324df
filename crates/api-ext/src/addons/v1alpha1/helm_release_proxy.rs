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
    /// A release of a Helm chart on one Cluster. The HelmChartProxy controller creates and manages it.
    pub struct HelmReleaseProxy {
        /// The desired state of the object.
        #[serde(default)]
        pub spec: HelmReleaseProxySpec,
        /// The observed state of the object.
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
        Column::new("Cluster", "string", ".spec.clusterRef.name", "Name of the Cluster"),
        Column::new("Ready", "string", ".status.conditions[?(@.type=='Ready')].status", ""),
        Column::new("Reason", "string", ".status.conditions[?(@.type=='Ready')].reason", ""),
        MESSAGE,
        Column::new("Status", "string", ".status.status", ""),
        Column::new("Revision", "string", ".status.revision", ""),
    ],
}

windlass_api::conditioned!(HelmReleaseProxy);

/// The desired state of a HelmReleaseProxy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmReleaseProxySpec {
    /// Reference to the Cluster of the release.
    #[schemars(schema_with = "core_schema::object_reference")]
    pub cluster_ref: ObjectReference,
    /// Name of the chart in the repository. Immutable.
    pub chart_name: String,
    /// URL of the chart repository. Immutable.
    #[serde(rename = "repoURL")]
    pub repo_url: String,
    /// Name of the release. Generated before the installation when unset. It can be set only once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_name: Option<String>,
    /// Namespace of the release. Immutable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::namespace")]
    pub namespace: Option<String>,
    /// Version of the chart, or a version range. Defaults to the latest version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Values of the chart as YAML. Defaults to the values of the chart itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<String>,
    /// Continuous reconciles the release all the time. InstallOnce does not change it after its installation.
    /// Immutable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["", "InstallOnce", "Continuous"]))]
    pub reconcile_strategy: Option<String>,
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

/// The observed state of a HelmReleaseProxy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmReleaseProxyStatus {
    /// Conditions of the object, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "core_schema::conditions")]
    pub conditions: Vec<Condition>,
    /// Status of the release as Helm reports it, for example deployed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Revision of the release. It is 1 after the installation and grows with every upgrade.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::integer")]
    pub revision: Option<i64>,
    /// The metadata.generation that the controller observed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::int64")]
    pub observed_generation: Option<i64>,
}

impl HelmReleaseProxySpec {
    /// The effective namespace of the release. Defaults to `default`.
    pub fn release_namespace(&self) -> &str {
        said(self.namespace.as_ref()).unwrap_or(values::DEFAULT_NAMESPACE)
    }

    /// The name of the release, once there is one.
    pub fn release_name(&self) -> Option<&str> {
        said(self.release_name.as_ref())
    }

    /// The desired version or version range. `None` means the latest.
    pub fn version(&self) -> Option<&str> {
        said(self.version.as_ref())
    }

    /// The name of the Cluster.
    pub fn cluster_name(&self) -> &str {
        said(self.cluster_ref.name.as_ref()).unwrap_or_default()
    }

    /// Whether the strategy is InstallOnce.
    pub fn is_install_once(&self) -> bool {
        self.reconcile_strategy.as_deref() == Some(values::RECONCILE_INSTALL_ONCE)
    }
}

impl HelmReleaseProxy {
    /// Whether the name of the release was generated.
    pub fn is_release_name_generated(&self) -> bool {
        self.is_annotated(annotations::IS_RELEASE_NAME_GENERATED)
    }

    /// Whether this controller has installed the release once.
    pub fn was_installed(&self) -> bool {
        self.is_annotated(annotations::RELEASE_SUCCESSFULLY_INSTALLED)
    }

    /// Whether this object may have a release on a cluster, and it is not known that its Cluster has existed since this object was
    /// created. Then a missing Cluster is no deleted one: a backup may restore it later.
    pub fn may_precede_its_cluster(&self) -> bool {
        let has_release = self.was_installed() || self.is_release_name_generated();
        let uid = self.metadata.uid.as_deref().unwrap_or_default();
        has_release && self.annotation(annotations::CLUSTER_SEEN) != Some(uid)
    }

    fn is_annotated(&self, key: &str) -> bool {
        self.annotation(key) == Some("true")
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        let annotations = self.metadata.annotations.as_ref()?;
        annotations.get(key).map(String::as_str)
    }
}

windlass_api::parts!(HelmReleaseProxySpec, HelmReleaseProxyStatus);
