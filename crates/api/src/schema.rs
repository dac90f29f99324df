//! Schemas of foreign types (`schema_with` functions for derives), and the conversion of a derived schema into a
//! structural schema.

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use crate::patterns;

/// A timestamp (`metav1.Time`).
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
                "description": "Label selector requirements. All of them must hold.",
                "type": "array",
                "x-kubernetes-list-type": "atomic",
                "items": {
                    "description": "A label selector requirement.",
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": {"description": "The label key.", "type": "string"},
                        "operator": {"description": "Operator: In, NotIn, Exists or DoesNotExist.", "type": "string"},
                        "values": {
                            "description": "Values for the operators In and NotIn.",
                            "type": "array",
                            "items": {"type": "string"},
                            "x-kubernetes-list-type": "atomic",
                        },
                    },
                },
            },
            "matchLabels": {
                "description": "Required labels and their values.",
                "type": "object",
                "additionalProperties": {"type": "string"},
            },
        },
    })
}

/// A reference to an object (`ObjectReference`).
pub fn object_reference(_: &mut SchemaGenerator) -> Schema {
    reference("Reference to an object.").try_into().unwrap_or_default()
}

/// References to objects.
pub fn object_references(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array", "items": reference("Reference to an object.")})
}

/// References to the Nodes of a MachinePool.
pub fn node_references(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 10000,
        "x-kubernetes-list-type": "atomic",
        "items": reference("Reference to a Node."),
    })
}

fn reference(description: &str) -> Value {
    json!({
        "description": description,
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "apiVersion": {"description": "API group and version of the object.", "type": "string"},
            "fieldPath": {"description": "Path of a field of the object.", "type": "string"},
            "kind": {"description": "Kind of the object.", "type": "string"},
            "name": {"description": "Name of the object.", "type": "string"},
            "namespace": {"description": "Namespace of the object.", "type": "string"},
            "resourceVersion": {"description": "resourceVersion of the object.", "type": "string"},
            "uid": {"description": "UID of the object.", "type": "string"},
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
            "description": "A condition of the object.",
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": {
                    "description": "Time of the last change of the status.",
                    "type": "string",
                    "format": "date-time",
                },
                "message": {
                    "description": "Human-readable details. May be empty.",
                    "type": "string",
                    "maxLength": 32768,
                },
                "observedGeneration": {
                    "description": "The metadata.generation that the condition is based on.",
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                },
                "reason": {
                    "description": "Machine-readable reason in CamelCase.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": patterns::REASON,
                },
                "status": {
                    "description": "Status of the condition: True, False or Unknown.",
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                },
                "type": {
                    "description": "Type of the condition.",
                    "type": "string",
                    "maxLength": 316,
                    "pattern": patterns::QUALIFIED_NAME,
                },
            },
        },
    })
}

/// A generator that inlines subschemas, as structural schemas require.
pub fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .into_generator()
}

/// Converts a derived schema into a structural schema: no nulls, no references, no titles.
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

/// Removes the line breaks of doc comments. Clients wrap descriptions themselves.
fn unwrap_lines(node: &mut Map<String, Value>) {
    if let Some(Value::String(description)) = node.get_mut("description") {
        let paragraphs: Vec<String> = description
            .split("\n\n")
            .map(|paragraph| paragraph.replace('\n', " "))
            .collect();
        *description = paragraphs.join("\n\n");
    }
}

/// Removes null from the type: an optional field may be absent, but it is never null.
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
