//! The variables of a ClusterClass and their schemas.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::core::v1beta2::ObjectMeta;
use crate::schema;

/// A variable that clusters of this class set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterClassVariable {
    /// Labels and annotations that v1beta1 held here.
    #[serde(
        rename = "deprecatedV1Beta1Metadata",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub deprecated_v1beta1_metadata: Option<ObjectMeta>,
    /// The name of the variable.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// Whether a value must be given.
    pub required: bool,
    /// What values are allowed.
    pub schema: VariableSchema,
}

/// A variable, with all its definitions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterClassStatusVariable {
    /// Who defines the variable, and how.
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub definitions: Vec<ClusterClassStatusVariableDefinition>,
    /// Whether the definitions contradict each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definitions_conflict: Option<bool>,
    /// The name of the variable.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
}

/// What values a variable may have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VariableSchema {
    /// The schema.
    #[serde(rename = "openAPIV3Schema")]
    pub open_api_v3_schema: JSONSchemaProps,
}

/// One definition of a variable: by the class itself, or by an extension.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterClassStatusVariableDefinition {
    /// Labels and annotations that v1beta1 held here.
    #[serde(
        rename = "deprecatedV1Beta1Metadata",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub deprecated_v1beta1_metadata: Option<ObjectMeta>,
    /// inline for the class itself, otherwise the name of the patch whose extension defines it.
    #[schemars(length(min = 1, max = 256))]
    pub from: String,
    /// Whether a value must be given.
    pub required: bool,
    /// What values are allowed.
    pub schema: VariableSchema,
}

/// A schema as in a CustomResourceDefinition. Schemas within it are kept as JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct JSONSchemaProps {
    /// Schema of the values of a map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any")]
    pub additional_properties: Option<Value>,
    /// Schemas that must all hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any")]
    pub all_of: Option<Value>,
    /// Schemas of which at least one must hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any")]
    pub any_of: Option<Value>,
    /// The value that is used when none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any")]
    pub default: Option<Value>,
    /// What the value is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub description: Option<String>,
    /// The values that are allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::any_items", length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub enum_: Vec<Value>,
    /// An example of a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any")]
    pub example: Option<Value>,
    /// Whether the maximum itself is too large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclusive_maximum: Option<bool>,
    /// Whether the minimum itself is too small.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclusive_minimum: Option<bool>,
    /// The format of a string or number, as Kubernetes knows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32))]
    pub format: Option<String>,
    /// Schema of the items of a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any")]
    pub items: Option<Value>,
    /// The most items a list may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_items: Option<i64>,
    /// The longest text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_length: Option<i64>,
    /// The most entries of a map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_properties: Option<i64>,
    /// The largest number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum: Option<i64>,
    /// The fewest items a list may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_items: Option<i64>,
    /// The shortest text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_length: Option<i64>,
    /// The fewest entries of a map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_properties: Option<i64>,
    /// The smallest number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum: Option<i64>,
    /// A schema that must not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any")]
    pub not: Option<Value>,
    /// Schemas of which exactly one must hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any")]
    pub one_of: Option<Value>,
    /// A regular expression that a text must match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub pattern: Option<String>,
    /// Schemas of the fields of an object, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any")]
    pub properties: Option<Value>,
    /// Fields of an object that must be there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 1000), inner(length(min = 1, max = 256)), extend("x-kubernetes-list-type" = "atomic"))]
    pub required: Vec<String>,
    /// The type of the value: object, array, string, integer, number or boolean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["object", "array", "string", "integer", "number", "boolean"]))]
    pub type_: Option<String>,
    /// Whether no two items of a list may be equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unique_items: Option<bool>,
    /// Whether the value is an integer or a string.
    #[serde(
        rename = "x-kubernetes-int-or-string",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub x_kubernetes_int_or_string: Option<bool>,
    /// Whether fields that no schema names are kept.
    #[serde(
        rename = "x-kubernetes-preserve-unknown-fields",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub x_kubernetes_preserve_unknown_fields: Option<bool>,
    /// Rules in the Common Expression Language.
    #[serde(rename = "x-kubernetes-validations", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["rule"]))]
    pub x_kubernetes_validations: Vec<ValidationRule>,
    /// Labels and annotations of the field, for other programs.
    #[serde(rename = "x-metadata", default, skip_serializing_if = "Option::is_none")]
    pub x_metadata: Option<ObjectMeta>,
}

/// A rule in the Common Expression Language.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValidationRule {
    /// The field that the error names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub field_path: Option<String>,
    /// What is said when the rule does not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub message: Option<String>,
    /// A rule that makes the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub message_expression: Option<String>,
    /// The reason that is given for the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"], "default" = "FieldValueInvalid"))]
    pub reason: Option<String>,
    /// The rule; self is the value.
    #[schemars(length(min = 1, max = 4096))]
    pub rule: String,
}
