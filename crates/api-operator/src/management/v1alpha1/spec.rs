//! What is declared of a provider, and what is known of it.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_api::{Condition, schema as core_schema};

use super::ManagerSpec;
use crate::common::EnvVar;
use crate::{rules, schema};

/// What a provider should be.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderSpec {
    /// The version to install, such as v1.2.3. Where nothing is said, the latest is chosen once and written here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256), pattern(rules::VERSION))]
    pub version: Option<String>,
    /// Settings of the provider's manager.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manager: Option<ManagerSpec>,
    /// Settings of the provider's Deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<DeploymentSpec>,
    /// The Secret, in the same namespace, with the variables for the provider's files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub secret_name: Option<String>,
    /// Where the provider's files come from; a provider that is known by its name needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetch_config: Option<FetchConfiguration>,
    /// Holds the provider still, without replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
}

/// Where the provider's files come from; exactly one field is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::one_source(&["url", "selector"])))]
pub struct FetchConfiguration {
    /// The releases of a repository, such as https://github.com/OWNER/REPOSITORY/releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2048))]
    pub url: Option<String>,
    /// ConfigMaps in the same namespace that hold one version each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "core_schema::label_selector")]
    pub selector: Option<LabelSelector>,
}

/// Settings of a Deployment. What is not said stays as the provider's files have it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentSpec {
    /// How many Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::replicas")]
    pub replicas: Option<i64>,
    /// Labels that the nodes must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<BTreeMap<String, String>>,
    /// Taints that the Pods tolerate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::tolerations")]
    pub tolerations: Option<Vec<Value>>,
    /// Which nodes and which company the Pods want.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::affinity")]
    pub affinity: Option<Value>,
    /// Settings of containers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub containers: Vec<ContainerSpec>,
}

/// Settings of a container that the Deployment has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerSpec {
    /// The name of the container.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// The image; parts that are not said stay as the provider's files have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageMeta>,
    /// Flags and their values. What the settings of the manager say counts more.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub args: BTreeMap<String, String>,
    /// Environment variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVar>,
    /// What the container may use, in place of what the provider's files say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::resources")]
    pub resources: Option<Value>,
}

/// Parts of an image's name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageMeta {
    /// The registry and path, such as gcr.io/myregistry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub repository: Option<String>,
    /// The last part of the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub name: Option<String>,
    /// The tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub tag: Option<String>,
}

/// What is known of a provider.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderStatus {
    /// The contract that the installed version follows, such as v1beta2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<String>,
    /// Observed aspects, one entry a type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "core_schema::conditions")]
    pub conditions: Vec<Condition>,
    /// The generation that was acted on last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::int64")]
    pub observed_generation: Option<i64>,
}
