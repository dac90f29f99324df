//! DevCluster: the kind and its parts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use windlass_api::Condition;
use windlass_api::core::v1beta2::{APIEndpoint, FailureDomain, V1Beta1Condition};
use windlass_api::kind::Column;
use windlass_api::schema;

windlass_api::api_kind! {
    /// The infrastructure of a cluster for development and tests: simulated in memory, or containers.
    pub struct DevCluster {
        /// What is wished for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub spec: Option<DevClusterSpec>,
        /// What was observed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub status: Option<DevClusterStatus>,
    }
    group: "infrastructure.cluster.x-k8s.io",
    version: "v1beta2",
    plural: "devclusters",
    short_names: [],
    provider: "infrastructure-docker",
    contract: true,
    required: [],
    status: true,
    scale: None,
    columns: [
        Column::new("Cluster", "string", r#".metadata.labels['cluster\.x-k8s\.io/cluster-name']"#, "The Cluster that this belongs to"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "How long ago this was created"),
    ],
}

windlass_api::conditioned!(DevCluster);

/// Dev cluster spec.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevClusterSpec {
    /// Backend.
    pub backend: DevClusterBackendSpec,
    /// Control plane endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_endpoint: Option<APIEndpoint>,
}

/// Dev cluster status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevClusterStatus {
    /// Conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// Deprecated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<DevClusterDeprecatedStatus>,
    /// Failure domains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub failure_domains: Vec<FailureDomain>,
    /// Initialization.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization: Option<DevClusterInitializationStatus>,
}

/// Dev cluster backend spec.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevClusterBackendSpec {
    /// Docker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docker: Option<DockerClusterBackendSpec>,
    /// In memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_memory: Option<InMemoryClusterBackendSpec>,
}

/// Dev cluster deprecated status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevClusterDeprecatedStatus {
    /// V1beta1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta1: Option<DevClusterV1Beta1DeprecatedStatus>,
}

/// Dev cluster initialization status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct DevClusterInitializationStatus {
    /// Provisioned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioned: Option<bool>,
}

/// Docker cluster backend spec.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DockerClusterBackendSpec {
    /// Failure domains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub failure_domains: Vec<FailureDomain>,
    /// Load balancer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_balancer: Option<DockerLoadBalancer>,
}

/// In memory cluster backend spec.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InMemoryClusterBackendSpec {}

/// Dev cluster v1 beta1 deprecated status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevClusterV1Beta1DeprecatedStatus {
    /// Conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<V1Beta1Condition>,
}

/// Docker load balancer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DockerLoadBalancer {
    /// Custom haproxy config template ref.
    #[serde(
        rename = "customHAProxyConfigTemplateRef",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub custom_ha_proxy_config_template_ref: Option<LocalObjectReference>,
    /// Image repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_repository: Option<String>,
    /// Image tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_tag: Option<String>,
}

/// Local object reference.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct LocalObjectReference {
    /// Name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = ""))]
    pub name: Option<String>,
}
