//! The patches of a ClusterClass.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::patterns;
use crate::schema;

/// A patch for templates of the class, rendered for each Cluster from its variables.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ClusterClassPatch {
    /// Inline patches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub definitions: Vec<PatchDefinition>,
    /// Description of the patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub description: Option<String>,
    /// Go template that enables the patch when it renders to true. Always enabled when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub enabled_if: Option<String>,
    /// Runtime extensions that generate the patch. Mutually exclusive with definitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalPatchDefinition>,
    /// Name of the patch.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
}

/// The templates to patch, and the patches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct PatchDefinition {
    /// JSON patches, applied in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub json_patches: Vec<JSONPatch>,
    /// Selector of the templates to patch.
    #[serde(skip_serializing_if = "crate::kind::is_unset")]
    pub selector: PatchSelector,
}

/// Runtime extensions that generate a patch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ExternalPatchDefinition {
    /// Runtime extension that discovers variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub discover_variables_extension: Option<String>,
    /// Runtime extension that generates patches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub generate_patches_extension: Option<String>,
    /// Settings that are passed to the extensions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// Runtime extension that validates the topology.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub validate_topology_extension: Option<String>,
}

/// One JSON patch operation on a template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct JSONPatch {
    /// Operation: add, replace or remove.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["add", "replace", "remove"]))]
    pub op: String,
    /// JSON pointer of the target field. It must start with /spec/.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 512))]
    pub path: String,
    /// Literal value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any")]
    pub value: Option<Value>,
    /// Value that is computed from variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_from: Option<JSONPatchValue>,
}

/// Selector of the templates to patch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct PatchSelector {
    /// API group and version of the templates.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 317), regex(pattern = patterns::API_VERSION))]
    pub api_version: String,
    /// Kind of the templates.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 63), regex(pattern = patterns::KIND))]
    pub kind: String,
    /// The places of the class in which the templates are used.
    #[serde(skip_serializing_if = "crate::kind::is_unset")]
    pub match_resources: PatchSelectorMatch,
}

/// Source of the value of a patch operation. Exactly one field is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct JSONPatchValue {
    /// Go template. Its output is parsed as YAML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10240))]
    pub template: Option<String>,
    /// Name of a variable, or a path into it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub variable: Option<String>,
}

/// The places of the class in which the templates are used. Templates in any of them match.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct PatchSelectorMatch {
    /// Matches the control plane template and the infrastructure template of control plane Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<bool>,
    /// Matches the template of the cluster infrastructure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infrastructure_cluster: Option<bool>,
    /// Matches the templates of these MachineDeployment classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_deployment_class: Option<PatchSelectorMatchClass>,
    /// Matches the templates of these MachinePool classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_pool_class: Option<PatchSelectorMatchClass>,
}

/// Names of worker classes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct PatchSelectorMatchClass {
    /// Class names. A * at the start or at the end is a wildcard, and * alone matches all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 256)), extend("x-kubernetes-list-type" = "atomic"))]
    pub names: Vec<String>,
}
