//! The patches of a ClusterClass.

mod convert;

pub(super) use convert::{from_hub, to_hub};

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_api::core::JSONPatch;
use windlass_api::kind::is_unset;

/// A patch for templates of the class, rendered for each Cluster from its variables.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterClassPatch {
    /// Name of the patch.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// Description of the patch.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 1024))]
    pub description: String,
    /// Go template that enables the patch when it renders to true. Always enabled when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub enabled_if: Option<String>,
    /// Inline patches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub definitions: Vec<PatchDefinition>,
    /// Runtime extensions that generate the patch. Mutually exclusive with definitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalPatchDefinition>,
}

/// The templates to patch, and the patches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PatchDefinition {
    /// Selector of the templates to patch.
    pub selector: PatchSelector,
    /// JSON patches, applied in order.
    #[schemars(length(max = 100))]
    pub json_patches: Vec<JSONPatch>,
}

/// Selector of the templates to patch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PatchSelector {
    /// API group and version of the templates.
    #[schemars(length(min = 1, max = 512))]
    pub api_version: String,
    /// Kind of the object.
    #[schemars(length(min = 1, max = 256))]
    pub kind: String,
    /// The places of the class in which the templates are used.
    pub match_resources: PatchSelectorMatch,
}

/// The places of the class in which the templates are used. Templates in any of them match.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PatchSelectorMatch {
    /// Matches the control plane template and the infrastructure template of control plane Machines.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub control_plane: bool,
    /// Matches the template of the cluster infrastructure.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub infrastructure_cluster: bool,
    /// Matches the templates of these MachineDeployment classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_deployment_class: Option<PatchSelectorMatchClass>,
    /// Matches the templates of these MachinePool classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_pool_class: Option<PatchSelectorMatchClass>,
}

/// Worker classes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PatchSelectorMatchClass {
    /// Class names. A * at the start or at the end is a wildcard, and * alone matches all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 256)))]
    pub names: Vec<String>,
}

/// Runtime extensions that generate a patch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalPatchDefinition {
    /// Name of the extension that generates the patches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub generate_extension: Option<String>,
    /// Name of the extension that checks the objects of the topology.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub validate_extension: Option<String>,
    /// Runtime extension that discovers variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub discover_variables_extension: Option<String>,
    /// Settings that are passed to the extensions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
}
