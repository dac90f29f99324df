//! The variables of a ClusterClass and their schemas.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::core::v1beta2::ObjectMeta;
use crate::schema;

/// A variable that Clusters of this class can set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ClusterClassVariable {
    /// Metadata that v1beta1 had in this place.
    #[serde(
        rename = "deprecatedV1Beta1Metadata",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub deprecated_v1beta1_metadata: Option<ObjectMeta>,
    /// Name of the variable.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// Whether a value is required.
    pub required: bool,
    /// Schema of the value.
    #[serde(skip_serializing_if = "crate::kind::is_unset")]
    pub schema: VariableSchema,
}

/// A variable and all its definitions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ClusterClassStatusVariable {
    /// Definitions of the variable.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub definitions: Vec<ClusterClassStatusVariableDefinition>,
    /// Whether the definitions are in conflict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definitions_conflict: Option<bool>,
    /// Name of the variable.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
}

/// Schema of a variable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct VariableSchema {
    /// OpenAPI v3 schema.
    #[serde(rename = "openAPIV3Schema", skip_serializing_if = "crate::kind::is_unset")]
    pub open_api_v3_schema: JSONSchemaProps,
}

/// One definition of a variable, by the class or by a runtime extension.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ClusterClassStatusVariableDefinition {
    /// Metadata that v1beta1 had in this place.
    #[serde(
        rename = "deprecatedV1Beta1Metadata",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub deprecated_v1beta1_metadata: Option<ObjectMeta>,
    /// Origin of the definition: inline for the class itself, otherwise the name of the patch whose extension defines
    /// the variable.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 256))]
    pub from: String,
    /// Whether a value is required.
    pub required: bool,
    /// Schema of the value.
    #[serde(skip_serializing_if = "crate::kind::is_unset")]
    pub schema: VariableSchema,
}

/// OpenAPI v3 schema as in a CustomResourceDefinition. Nested schemas are plain JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
#[schemars(extend("minProperties" = 1))]
pub struct JSONSchemaProps {
    /// Schema of the map values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any")]
    pub additional_properties: Option<Value>,
    /// The value must match all of these schemas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any")]
    pub all_of: Option<Value>,
    /// The value must match at least one of these schemas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any")]
    pub any_of: Option<Value>,
    /// Default value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any")]
    pub default: Option<Value>,
    /// Description of the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub description: Option<String>,
    /// Allowed values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::any_items", length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub enum_: Vec<Value>,
    /// Example value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any")]
    pub example: Option<Value>,
    /// Whether maximum is exclusive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclusive_maximum: Option<bool>,
    /// Whether minimum is exclusive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclusive_minimum: Option<bool>,
    /// Kubernetes format of a string or number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32))]
    pub format: Option<String>,
    /// Schema of the list items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any")]
    pub items: Option<Value>,
    /// Maximum number of list items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_items: Option<i64>,
    /// Maximum length of a string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_length: Option<i64>,
    /// Maximum number of map entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_properties: Option<i64>,
    /// Maximum number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum: Option<i64>,
    /// Minimum number of list items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_items: Option<i64>,
    /// Minimum length of a string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_length: Option<i64>,
    /// Minimum number of map entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_properties: Option<i64>,
    /// Minimum number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum: Option<i64>,
    /// The value must not match this schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any")]
    pub not: Option<Value>,
    /// The value must match exactly one of these schemas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any")]
    pub one_of: Option<Value>,
    /// Regular expression that a string must match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub pattern: Option<String>,
    /// Schemas of the object's fields, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any")]
    pub properties: Option<Value>,
    /// Names of required fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 1000), inner(length(min = 1, max = 256)), extend("x-kubernetes-list-type" = "atomic"))]
    pub required: Vec<String>,
    /// Type of the value: object, array, string, integer, number or boolean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["object", "array", "string", "integer", "number", "boolean"]))]
    pub type_: Option<String>,
    /// Whether the list items must be unique.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unique_items: Option<bool>,
    /// Whether the value is an integer or a string.
    #[serde(
        rename = "x-kubernetes-int-or-string",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub x_kubernetes_int_or_string: Option<bool>,
    /// Whether unknown fields are preserved.
    #[serde(
        rename = "x-kubernetes-preserve-unknown-fields",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub x_kubernetes_preserve_unknown_fields: Option<bool>,
    /// Validation rules in CEL.
    #[serde(rename = "x-kubernetes-validations", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["rule"]))]
    pub x_kubernetes_validations: Vec<ValidationRule>,
    /// Labels and annotations of the field, for other tools.
    #[serde(rename = "x-metadata", default, skip_serializing_if = "Option::is_none")]
    pub x_metadata: Option<ObjectMeta>,
}

/// A validation rule in CEL.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(!default)]
pub struct ValidationRule {
    /// Path of the field in the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub field_path: Option<String>,
    /// Error message of a violation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub message: Option<String>,
    /// CEL expression that computes the error message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub message_expression: Option<String>,
    /// Machine-readable reason of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"], "default" = "FieldValueInvalid"))]
    pub reason: Option<String>,
    /// CEL expression. self is the value.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 4096))]
    pub rule: String,
}
