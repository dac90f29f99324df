//! The variables of a ClusterClass and their schemas.

mod convert;

pub(super) use convert::{from_hub, status_from_hub, status_to_hub, to_hub};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_api::core::ValidationRule;
use windlass_api::kind::is_unset;
use windlass_api::schema;

use crate::core::v1beta1::ObjectMeta;

/// A variable that Clusters of this class can set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterClassVariable {
    /// Name of the variable.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// Whether a value is required.
    pub required: bool,
    /// Labels and annotations of the variable. They have no effect.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Schema of the value.
    pub schema: VariableSchema,
}

/// Schema of a variable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VariableSchema {
    /// Schema of the value.
    #[serde(rename = "openAPIV3Schema")]
    pub open_api_v3_schema: JSONSchemaProps,
}

/// OpenAPI v3 schema as in a CustomResourceDefinition. Nested schemas are plain JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JSONSchemaProps {
    /// Description of the value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 4096))]
    pub description: String,
    /// Example value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any")]
    pub example: Option<Value>,
    /// Type of the value: object, array, string, integer, number or boolean.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["object", "array", "string", "integer", "number", "boolean"]))]
    pub type_: String,
    /// Schemas of the object's fields, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any")]
    pub properties: Option<Value>,
    /// Schema of the map values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any")]
    pub additional_properties: Option<Value>,
    /// Maximum number of map entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_properties: Option<i64>,
    /// Minimum number of map entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_properties: Option<i64>,
    /// Names of required fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), inner(length(min = 1, max = 256)))]
    pub required: Vec<String>,
    /// Schema of the list items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any")]
    pub items: Option<Value>,
    /// Maximum number of list items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_items: Option<i64>,
    /// Minimum number of list items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_items: Option<i64>,
    /// Whether the list items must be unique.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub unique_items: bool,
    /// Kubernetes format of a string or number.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 32))]
    pub format: String,
    /// Maximum length of a string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_length: Option<i64>,
    /// Minimum length of a string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_length: Option<i64>,
    /// Regular expression that a string must match.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 512))]
    pub pattern: String,
    /// Maximum number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum: Option<i64>,
    /// Whether maximum is exclusive.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub exclusive_maximum: bool,
    /// Minimum number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum: Option<i64>,
    /// Whether minimum is exclusive.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub exclusive_minimum: bool,
    /// Whether unknown fields are kept.
    #[serde(
        rename = "x-kubernetes-preserve-unknown-fields",
        default,
        skip_serializing_if = "is_unset"
    )]
    pub x_kubernetes_preserve_unknown_fields: bool,
    /// The allowed values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::any_items", length(max = 100))]
    pub enum_: Vec<Value>,
    /// Default value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any")]
    pub default: Option<Value>,
    /// Rules in CEL.
    #[serde(rename = "x-kubernetes-validations", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["rule"]))]
    pub x_kubernetes_validations: Vec<ValidationRule>,
    /// Labels and annotations of the schema. They have no effect.
    #[serde(rename = "x-metadata", default, skip_serializing_if = "Option::is_none")]
    pub x_metadata: Option<ObjectMeta>,
    /// Whether the value is an integer or a string.
    #[serde(rename = "x-kubernetes-int-or-string", default, skip_serializing_if = "is_unset")]
    pub x_kubernetes_int_or_string: bool,
    /// The value must match all of these schemas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any")]
    pub all_of: Option<Value>,
    /// The value must match exactly one of these schemas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any")]
    pub one_of: Option<Value>,
    /// The value must match at least one of these schemas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any")]
    pub any_of: Option<Value>,
    /// The value must not match this schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any")]
    pub not: Option<Value>,
}

/// A variable and all its definitions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterClassStatusVariable {
    /// Name of the variable.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// Whether the definitions are in conflict.
    #[serde(default)]
    pub definitions_conflict: bool,
    /// Definitions of the variable.
    #[schemars(length(max = 100))]
    pub definitions: Vec<ClusterClassStatusVariableDefinition>,
}

/// One definition of a variable, by the class or by a runtime extension.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterClassStatusVariableDefinition {
    /// Origin of the definition: inline for the class itself, otherwise the name of the patch whose extension defines the variable.
    #[schemars(length(min = 1, max = 256))]
    pub from: String,
    /// Whether a value is required.
    pub required: bool,
    /// Labels and annotations of the variable. They have no effect.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Schema of the value.
    pub schema: VariableSchema,
}
