//! The stored form of definitions, without empty fields. Pure.

use serde_json::{Map, Value};

/// Fields that have a meaning even if they are empty, zero or false.
const KEPT: [&str; 18] = [
    "default",
    "example",
    "enum",
    "maximum",
    "minimum",
    "maxLength",
    "minLength",
    "maxItems",
    "minItems",
    "multipleOf",
    "maxProperties",
    "minProperties",
    "additionalProperties",
    "additionalItems",
    "items",
    "not",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-list-type",
];

/// Converts the schemas of all versions to the stored form.
pub(super) fn versions(spec: &mut Map<String, Value>) {
    let versions = spec.get_mut("versions").and_then(Value::as_array_mut);
    for version in versions.into_iter().flatten() {
        if let Some(root) = version.pointer_mut("/schema/openAPIV3Schema") {
            schema(root);
        }
        let Some(map) = version.as_object_mut() else {
            continue;
        };
        map.retain(|key, value| match (key.as_str(), &*value) {
            (_, Value::Null) | ("deprecated", Value::Bool(false)) => false,
            ("additionalPrinterColumns" | "selectableFields", Value::Array(list)) => !list.is_empty(),
            _ => true,
        });
        let columns = map.get_mut("additionalPrinterColumns").and_then(Value::as_array_mut);
        for column in columns.into_iter().flatten().filter_map(Value::as_object_mut) {
            column.retain(|key, value| match (key.as_str(), &*value) {
                ("format" | "description", Value::String(text)) => !text.is_empty(),
                ("priority", Value::Number(n)) => n.as_i64() != Some(0),
                (_, Value::Null) => false,
                _ => true,
            });
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

fn schema(value: &mut Value) {
    let Some(map) = value.as_object_mut() else {
        return;
    };
    map.retain(|key, value| !value.is_null() && (KEPT.contains(&key.as_str()) || !is_empty(value)));
    for (key, below) in map.iter_mut() {
        match (key.as_str(), below) {
            ("properties" | "patternProperties" | "definitions", Value::Object(named)) => {
                named.values_mut().for_each(schema);
            }
            ("allOf" | "anyOf" | "oneOf" | "items", Value::Array(list)) => list.iter_mut().for_each(schema),
            ("items" | "not" | "additionalProperties" | "additionalItems", below) => schema(below),
            _ => {}
        }
    }
}
