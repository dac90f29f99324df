//! The patches of a ClusterClass.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::patterns;
use crate::schema;

/// Cluster class patch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterClassPatch {
    /// Definitions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub definitions: Vec<PatchDefinition>,
    /// Description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub description: Option<String>,
    /// Enabled if.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub enabled_if: Option<String>,
    /// External.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalPatchDefinition>,
    /// Name.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
}

/// Patch definition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PatchDefinition {
    /// Json patches.
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub json_patches: Vec<JSONPatch>,
    /// Selector.
    pub selector: PatchSelector,
}

/// External patch definition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalPatchDefinition {
    /// Discover variables extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub discover_variables_extension: Option<String>,
    /// Generate patches extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub generate_patches_extension: Option<String>,
    /// Settings.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// Validate topology extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub validate_topology_extension: Option<String>,
}

/// Jsonpatch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JSONPatch {
    /// Op.
    #[schemars(extend("enum" = ["add", "replace", "remove"]))]
    pub op: String,
    /// Path.
    #[schemars(length(min = 1, max = 512))]
    pub path: String,
    /// Value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any")]
    pub value: Option<Value>,
    /// Value from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_from: Option<JSONPatchValue>,
}

/// Patch selector.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PatchSelector {
    /// Api version.
    #[schemars(length(min = 1, max = 317), regex(pattern = patterns::API_VERSION))]
    pub api_version: String,
    /// Kind.
    #[schemars(length(min = 1, max = 63), regex(pattern = patterns::KIND))]
    pub kind: String,
    /// Match resources.
    pub match_resources: PatchSelectorMatch,
}

/// Jsonpatch value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JSONPatchValue {
    /// Template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10240))]
    pub template: Option<String>,
    /// Variable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub variable: Option<String>,
}

/// Patch selector match.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct PatchSelectorMatch {
    /// Control plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<bool>,
    /// Infrastructure cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infrastructure_cluster: Option<bool>,
    /// Machine deployment class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_deployment_class: Option<PatchSelectorMatchClass>,
    /// Machine pool class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_pool_class: Option<PatchSelectorMatchClass>,
}

/// Patch selector match class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PatchSelectorMatchClass {
    /// Names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 256)), extend("x-kubernetes-list-type" = "atomic"))]
    pub names: Vec<String>,
}
