//! Schemas of types that are not ours (`schema_with` functions for derives), and the step that makes a schema structural.

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use crate::patterns;

/// A point in time (`metav1.Time`).
pub fn date_time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "format": "date-time"})
}

/// Bytes, base64 in JSON.
pub fn bytes(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "format": "byte"})
}

/// A number or a percentage.
pub fn int_or_string(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true})
}

/// A Kubernetes quantity.
pub fn quantity(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": patterns::QUANTITY,
        "x-kubernetes-int-or-string": true,
    })
}

/// Quantities by resource name.
pub fn quantities(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "additionalProperties": quantity(generator)})
}

/// Any JSON value, kept as it is.
pub fn any(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"x-kubernetes-preserve-unknown-fields": true})
}

/// A list of any JSON values.
pub fn any_items(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array", "items": any(generator)})
}

/// A label selector.
pub fn label_selector(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchExpressions": {
                "description": "Requirements that must all hold.",
                "type": "array",
                "x-kubernetes-list-type": "atomic",
                "items": {
                    "description": "One requirement on the value of a label.",
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": {"description": "The label key that is looked at.", "type": "string"},
                        "operator": {"description": "In, NotIn, Exists or DoesNotExist.", "type": "string"},
                        "values": {
                            "description": "The values to compare with; for In and NotIn only.",
                            "type": "array",
                            "items": {"type": "string"},
                            "x-kubernetes-list-type": "atomic",
                        },
                    },
                },
            },
            "matchLabels": {
                "description": "Labels that must all be there with these values.",
                "type": "object",
                "additionalProperties": {"type": "string"},
            },
        },
    })
}

/// The list `status.conditions`.
pub fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 32,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "description": "One observed aspect of the object.",
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": {
                    "description": "When the status last changed.",
                    "type": "string",
                    "format": "date-time",
                },
                "message": {
                    "description": "Details for people; may be empty.",
                    "type": "string",
                    "maxLength": 32768,
                },
                "observedGeneration": {
                    "description": "The metadata.generation that this condition was computed from.",
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                },
                "reason": {
                    "description": "Why the condition has its status, as one word for programs.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": patterns::REASON,
                },
                "status": {
                    "description": "Whether the condition holds.",
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                },
                "type": {
                    "description": "What the condition is about.",
                    "type": "string",
                    "maxLength": 316,
                    "pattern": patterns::QUALIFIED_NAME,
                },
            },
        },
    })
}

/// A generator that writes schemas out in full, as structural schemas need them.
pub fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .into_generator()
}

/// Turns what schemars derives into a structural schema: no nulls, no references, no titles.
pub fn structural(schema: &mut Value) {
    let Value::Object(node) = schema else { return };
    for key in ["$schema", "$defs", "title"] {
        node.remove(key);
    }
    drop_null(node);
    unwrap_lines(node);
    if let Some(properties) = node.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(structural);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(child) = node.get_mut(key) {
            structural(child);
        }
    }
    if let Some(required) = node.get_mut("required").and_then(Value::as_array_mut) {
        required.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
    }
}

/// Doc comments are wrapped for the source; descriptions are wrapped by whoever shows them.
fn unwrap_lines(node: &mut Map<String, Value>) {
    if let Some(Value::String(description)) = node.get_mut("description") {
        let paragraphs: Vec<String> = description
            .split("\n\n")
            .map(|paragraph| paragraph.replace('\n', " "))
            .collect();
        *description = paragraphs.join("\n\n");
    }
}

/// An optional field may be absent; it is never null.
fn drop_null(node: &mut Map<String, Value>) {
    let null = json!("null");
    if let Some(Value::Array(types)) = node.get_mut("type") {
        types.retain(|t| *t != null);
        if let [only] = types.as_slice() {
            let only = only.clone();
            node.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = node.get_mut("enum") {
        values.retain(|v| !v.is_null());
    }
    if node.get("default").is_some_and(Value::is_null) {
        node.remove("default");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(mut schema: Value, expect: &Value) {
        structural(&mut schema);
        assert_eq!(&schema, expect);
    }

    #[test]
    fn nulls_and_titles_go() {
        check(
            json!({"title": "T", "type": ["string", "null"], "enum": ["a", null], "default": null}),
            &json!({"type": "string", "enum": ["a"]}),
        );
    }

    #[test]
    fn descriptions_are_not_wrapped() {
        check(
            json!({"description": "one\ntwo\n\nthree", "type": "string"}),
            &json!({"description": "one two\n\nthree", "type": "string"}),
        );
    }

    #[test]
    fn the_step_reaches_into_items_maps_and_properties() {
        let inner = json!({"type": ["integer", "null"], "title": "T"});
        check(
            json!({
                "type": "object",
                "required": ["b", "a"],
                "properties": {
                    "list": {"type": "array", "items": inner},
                    "map": {"type": "object", "additionalProperties": inner},
                },
            }),
            &json!({
                "type": "object",
                "required": ["a", "b"],
                "properties": {
                    "list": {"type": "array", "items": {"type": "integer"}},
                    "map": {"type": "object", "additionalProperties": {"type": "integer"}},
                },
            }),
        );
    }
}
