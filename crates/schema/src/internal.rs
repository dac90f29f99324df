//! Schemas in the form of Kubernetes' messages: all fields of its internal type, in their order, with its names.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::error::go_json;

/// The form of an unset field.
#[derive(Clone, Copy)]
enum Unset {
    Text,
    False,
    Null,
}

/// The form of a set field.
#[derive(Clone, Copy)]
enum Set {
    Plain,
    Schema,
    Schemas,
    Named,
    SchemaOrBool,
    Items,
    Rules,
}

/// The fields with their JSON names.
const FIELDS: [(&str, &str, Unset, Set); 43] = [
    ("ID", "id", Unset::Text, Set::Plain),
    ("Schema", "$schema", Unset::Text, Set::Plain),
    ("Ref", "$ref", Unset::Null, Set::Plain),
    ("Description", "description", Unset::Text, Set::Plain),
    ("Type", "type", Unset::Text, Set::Plain),
    ("Nullable", "nullable", Unset::False, Set::Plain),
    ("Format", "format", Unset::Text, Set::Plain),
    ("Title", "title", Unset::Text, Set::Plain),
    ("Default", "default", Unset::Null, Set::Plain),
    ("Maximum", "maximum", Unset::Null, Set::Plain),
    ("ExclusiveMaximum", "exclusiveMaximum", Unset::False, Set::Plain),
    ("Minimum", "minimum", Unset::Null, Set::Plain),
    ("ExclusiveMinimum", "exclusiveMinimum", Unset::False, Set::Plain),
    ("MaxLength", "maxLength", Unset::Null, Set::Plain),
    ("MinLength", "minLength", Unset::Null, Set::Plain),
    ("Pattern", "pattern", Unset::Text, Set::Plain),
    ("MaxItems", "maxItems", Unset::Null, Set::Plain),
    ("MinItems", "minItems", Unset::Null, Set::Plain),
    ("UniqueItems", "uniqueItems", Unset::False, Set::Plain),
    ("MultipleOf", "multipleOf", Unset::Null, Set::Plain),
    ("Enum", "enum", Unset::Null, Set::Plain),
    ("MaxProperties", "maxProperties", Unset::Null, Set::Plain),
    ("MinProperties", "minProperties", Unset::Null, Set::Plain),
    ("Required", "required", Unset::Null, Set::Plain),
    ("Items", "items", Unset::Null, Set::Items),
    ("AllOf", "allOf", Unset::Null, Set::Schemas),
    ("OneOf", "oneOf", Unset::Null, Set::Schemas),
    ("AnyOf", "anyOf", Unset::Null, Set::Schemas),
    ("Not", "not", Unset::Null, Set::Schema),
    ("Properties", "properties", Unset::Null, Set::Named),
    (
        "AdditionalProperties",
        "additionalProperties",
        Unset::Null,
        Set::SchemaOrBool,
    ),
    ("PatternProperties", "patternProperties", Unset::Null, Set::Named),
    ("Dependencies", "dependencies", Unset::Null, Set::Plain),
    ("AdditionalItems", "additionalItems", Unset::Null, Set::SchemaOrBool),
    ("Definitions", "definitions", Unset::Null, Set::Named),
    ("ExternalDocs", "externalDocs", Unset::Null, Set::Plain),
    ("Example", "example", Unset::Null, Set::Plain),
    (
        "XPreserveUnknownFields",
        "x-kubernetes-preserve-unknown-fields",
        Unset::Null,
        Set::Plain,
    ),
    (
        "XEmbeddedResource",
        "x-kubernetes-embedded-resource",
        Unset::False,
        Set::Plain,
    ),
    ("XIntOrString", "x-kubernetes-int-or-string", Unset::False, Set::Plain),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Unset::Null, Set::Plain),
    ("XListType", "x-kubernetes-list-type", Unset::Null, Set::Plain),
    ("XMapType", "x-kubernetes-map-type", Unset::Null, Set::Plain),
];

/// A schema in the form of messages.
pub(crate) fn schema(map: &Map<String, Value>) -> String {
    let mut out = String::from("{");
    for (shown, name, unset, set) in FIELDS {
        let _ = write!(out, "\"{shown}\":");
        match map.get(name).filter(|value| !value.is_null()) {
            None => out.push_str(match unset {
                Unset::Text => "\"\"",
                Unset::False => "false",
                Unset::Null => "null",
            }),
            Some(value) => out.push_str(&field(value, set)),
        }
        out.push(',');
    }
    let rules = map.get("x-kubernetes-validations").filter(|value| !value.is_null());
    let rules = rules.map_or_else(|| "null".to_owned(), |value| field(value, Set::Rules));
    let _ = write!(out, "\"XValidations\":{rules}}}");
    out
}

/// A validation rule as messages show it.
pub fn rule(rule: &Value) -> String {
    let field = |name: &str, none: &str| rule.get(name).map_or_else(|| none.to_owned(), go_json);
    format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\"OptionalOldSelf\":{}}}",
        field("rule", "\"\""),
        field("message", "\"\""),
        field("messageExpression", "\"\""),
        field("reason", "null"),
        field("fieldPath", "\"\""),
        field("optionalOldSelf", "null"),
    )
}

fn any(value: &Value) -> String {
    value.as_object().map_or_else(|| "null".to_owned(), schema)
}

fn list(values: &[Value], each: fn(&Value) -> String) -> String {
    let parts: Vec<String> = values.iter().map(each).collect();
    format!("[{}]", parts.join(","))
}

fn field(value: &Value, set: Set) -> String {
    match (set, value) {
        (Set::Schema, value) => any(value),
        (Set::Schemas, Value::Array(values)) => list(values, any),
        (Set::Rules, Value::Array(values)) => list(values, rule),
        (Set::Named, Value::Object(map)) => {
            let parts: Vec<String> = map
                .iter()
                .map(|(name, value)| format!("{}:{}", go_json(&Value::from(name.as_str())), any(value)))
                .collect();
            format!("{{{}}}", parts.join(","))
        }
        (Set::Items, Value::Array(values)) => format!("{{\"Schema\":null,\"JSONSchemas\":{}}}", list(values, any)),
        (Set::Items, value) => format!("{{\"Schema\":{},\"JSONSchemas\":null}}", any(value)),
        (Set::SchemaOrBool, Value::Bool(allows)) => format!("{{\"Allows\":{allows},\"Schema\":null}}"),
        (Set::SchemaOrBool, value) => format!("{{\"Allows\":true,\"Schema\":{}}}", any(value)),
        (_, value) => go_json(value),
    }
}
