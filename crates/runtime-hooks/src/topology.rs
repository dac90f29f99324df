//! Patches, checks and variables of ClusterClasses that extensions make.

use k8s_openapi::ByteString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_api::core::ClusterClassVariable;
use windlass_api::schema;

use crate::hook::hook;

/// A patch of an object that conforms to RFC 6902.
pub const JSON_PATCH: &str = "JSONPatch";
/// A patch of an object that conforms to RFC 7386.
pub const JSON_MERGE_PATCH: &str = "JSONMergePatch";

hook! {
    /// While the objects of a topology are computed: patches of the templates of its class.
    GeneratePatches;
    GeneratePatchesRequest {
        /// Variables of all templates.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        variables: Vec<Variable>,
        /// The templates.
        items: Vec<GeneratePatchesRequestItem>,
    }
    GeneratePatchesResponse {
        /// The patches, applied in this order.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        items: Vec<GeneratePatchesResponseItem>,
    }
}

/// A template to patch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GeneratePatchesRequestItem {
    /// Names the template in the answer.
    pub uid: String,
    /// The object that uses the template.
    pub holder_reference: HolderReference,
    /// The template.
    #[schemars(schema_with = "schema::any")]
    pub object: Value,
    /// Variables of this template, which have priority over those of all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
}

/// A patch of a template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GeneratePatchesResponseItem {
    /// The template, as in the request.
    pub uid: String,
    /// JSONPatch or JSONMergePatch.
    pub patch_type: String,
    /// The patch.
    #[schemars(schema_with = "schema::bytes")]
    pub patch: ByteString,
}

hook! {
    /// After all patches were applied: a check of the result.
    ValidateTopology;
    ValidateTopologyRequest {
        /// Variables of all templates.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        variables: Vec<Variable>,
        /// The templates.
        items: Vec<ValidateTopologyRequestItem>,
    }
    ValidateTopologyResponse {}
}

/// A template to check.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ValidateTopologyRequestItem {
    /// The object that uses the template.
    pub holder_reference: HolderReference,
    /// The template.
    #[schemars(schema_with = "schema::any")]
    pub object: Value,
    /// Variables of this template, which have priority over those of all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
}

hook! {
    /// While a ClusterClass is reconciled: the schemas of variables that the extension defines.
    DiscoverVariables;
    DiscoverVariablesRequest {}
    DiscoverVariablesResponse {
        /// The variables.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        variables: Vec<ClusterClassVariable>,
    }
}

/// A variable and its value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Variable {
    /// Its name; `builtin` for what the topology itself says.
    pub name: String,
    /// Its value.
    #[schemars(schema_with = "schema::any")]
    pub value: Value,
}

/// The place where a template is used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HolderReference {
    /// Group and version of the object.
    pub api_version: String,
    /// Kind of the object.
    pub kind: String,
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// The field of the object that refers to the template.
    pub field_path: String,
}
