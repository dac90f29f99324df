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
        Column::new("Cluster", "string", r".metadata.labels['cluster\.x-k8s\.io/cluster-name']", "The Cluster that this belongs to"),
        Column::new("Age", "date", ".metadata.creationTimestamp", "How long ago this was created"),
    ],
}

windlass_api::conditioned!(DevCluster);

/// What a DevCluster should be.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevClusterSpec {
    /// What the cluster runs on.
    pub backend: DevClusterBackendSpec,
    /// Where the API server of the cluster is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_endpoint: Option<APIEndpoint>,
}

/// What is known of a DevCluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevClusterStatus {
    /// Observed aspects, one entry a type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// Fields of older API versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<DevClusterDeprecatedStatus>,
    /// The failure domains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub failure_domains: Vec<FailureDomain>,
    /// The first steps; each becomes true once and stays so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization: Option<DevClusterInitializationStatus>,
}

/// What the cluster runs on; exactly one backend is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevClusterBackendSpec {
    /// A container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docker: Option<DockerClusterBackendSpec>,
    /// Simulated in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_memory: Option<InMemoryClusterBackendSpec>,
}

/// Status fields of older API versions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevClusterDeprecatedStatus {
    /// Fields of v1beta1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v1beta1: Option<DevClusterV1Beta1DeprecatedStatus>,
}

/// The first steps of the infrastructure. Each becomes true once and stays so.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct DevClusterInitializationStatus {
    /// Whether everything is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioned: Option<bool>,
}

/// A cluster of containers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DockerClusterBackendSpec {
    /// Failure domains that are offered; they mean nothing to containers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub failure_domains: Vec<FailureDomain>,
    /// The container in front of the API servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_balancer: Option<DockerLoadBalancer>,
}

/// A cluster that is simulated in the memory of the manager.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InMemoryClusterBackendSpec {}

/// Status fields of v1beta1, kept up for those who still read them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevClusterV1Beta1DeprecatedStatus {
    /// Observed aspects, one entry a type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<V1Beta1Condition>,
}

/// The container in front of the API servers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DockerLoadBalancer {
    /// A ConfigMap with another template for the configuration of the load balancer.
    #[serde(
        rename = "customHAProxyConfigTemplateRef",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub custom_ha_proxy_config_template_ref: Option<LocalObjectReference>,
    /// The registry and path that images are pulled from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_repository: Option<String>,
    /// The tag of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_tag: Option<String>,
}

/// A ConfigMap in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct LocalObjectReference {
    /// The name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = ""))]
    pub name: Option<String>,
}

windlass_api::parts!(DevClusterStatus);
