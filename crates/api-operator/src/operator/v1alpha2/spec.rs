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
#[schemars(extend("x-kubernetes-validations" = rules::one_sort_of_patches()))]
pub struct ProviderSpec {
    /// The version to install, such as v1.2.3; the latest where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Settings of the provider's manager.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manager: Option<ManagerSpec>,
    /// Settings of the provider's Deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<DeploymentSpec>,
    /// The Secret with the variables for the provider's files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_secret: Option<ObjectReference>,
    /// Where the provider's files come from; a provider that is known by its name needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetch_config: Option<FetchConfiguration>,
    /// A ConfigMap with further objects, under the key manifests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_manifests: Option<ObjectReference>,
    /// JSON merge patches for the provider's objects, as YAML. Use patches instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub manifest_patches: Vec<String>,
    /// Patches for the provider's objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patches: Vec<Patch>,
    /// Settings of the provider's further Deployments, by their names; the fields are those of deployment and manager.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::by_name::<AdditionalDeployment>")]
    pub additional_deployments: BTreeMap<String, AdditionalDeployment>,
}

/// A Secret or ConfigMap.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectReference {
    /// The name.
    pub name: String,
    /// The namespace; the provider's where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// Where the provider's files come from; exactly one field is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::one_source(&["oci", "url", "selector"])))]
pub struct FetchConfiguration {
    /// An OCI artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oci: Option<String>,
    /// The releases of a repository, such as https://github.com/OWNER/REPOSITORY/releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// ConfigMaps that hold one version each, named like it or labelled provider.cluster.x-k8s.io/version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "core_schema::label_selector")]
    pub selector: Option<LabelSelector>,
}

/// A patch for objects of the provider.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Patch {
    /// The patch as YAML: a strategic merge patch, or a list of JSON patch operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// The objects that are patched; where nothing is said, the one that the patch itself names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<PatchSelector>,
}

/// Which objects are patched: those that fit everything that is said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PatchSelector {
    /// The API group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The API version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Labels, as kubectl writes selectors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<String>,
}

/// Settings of a further Deployment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdditionalDeployment {
    /// Settings of its manager.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manager: Option<ManagerSpec>,
    /// Settings of the Deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<DeploymentSpec>,
}

/// Settings of a Deployment. What is not said stays as the provider's files have it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentSpec {
    /// How many Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::natural")]
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
    pub containers: Vec<ContainerSpec>,
    /// The ServiceAccount of the Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Secrets with credentials for registries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_secrets: Option<Vec<SecretName>>,
}

/// A Secret in the Pods' namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct SecretName {
    /// The name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = ""))]
    pub name: Option<String>,
}

/// Settings of a container that the Deployment has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerSpec {
    /// The name of the container.
    pub name: String,
    /// The whole image, in place of the one in the provider's files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_url: Option<String>,
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
    /// The command, in place of the one in the provider's files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
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
    /// The version that is installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installed_version: Option<String>,
}
