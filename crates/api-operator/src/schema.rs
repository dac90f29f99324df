//! Schemas of types that are not ours (`schema_with` functions for derives).

mod affinity;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};
use windlass_api::schema::quantity;

use crate::rules;

pub use affinity::affinity;

/// A whole number.
pub fn integer(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer"})
}

/// A whole number of 64 bits.
pub fn int64(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "format": "int64"})
}

/// A whole number from 0 on.
pub fn natural(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "minimum": 0})
}

/// A number of Pods.
pub fn replicas(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "format": "int32", "minimum": 0})
}

/// A whole number from 1 on.
pub fn positive(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "minimum": 1})
}

/// A port.
pub fn port(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "minimum": 1, "maximum": 65535})
}

/// How much is logged, in the version of the API that has a default for it.
pub fn verbosity(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "minimum": 0, "default": 1})
}

/// Whole numbers by name.
pub fn integers(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "additionalProperties": {"type": "integer"}})
}

/// Values of a type by name, for a type whose fields are described elsewhere in the same schema: descriptions are half of a
/// definition, and every server keeps them several times.
pub fn by_name<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let mut values = generator.subschema_for::<T>().to_value();
    if let Some(fields) = values.get_mut("properties").and_then(Value::as_object_mut) {
        fields.values_mut().for_each(strip_descriptions);
    }
    json_schema!({"type": "object", "additionalProperties": values})
}

fn strip_descriptions(schema: &mut Value) {
    let Value::Object(node) = schema else { return };
    node.remove("description");
    if let Some(properties) = node.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(strip_descriptions);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(child) = node.get_mut(key) {
            strip_descriptions(child);
        }
    }
}

/// A duration from zero on, such as `10m`.
pub fn duration(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "maxLength": 64, "pattern": rules::DURATION})
}

/// A duration, such as `-1s`.
pub fn signed_duration(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "maxLength": 64, "pattern": rules::SIGNED_DURATION})
}

/// The tolerations of a Pod.
pub fn tolerations(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": {
            "description": "A taint that the Pods tolerate.",
            "type": "object",
            "properties": {
                "effect": {
                    "description": "NoSchedule, PreferNoSchedule or NoExecute; all where nothing is said.",
                    "type": "string",
                },
                "key": {"description": "The key of the taint; any where nothing is said.", "type": "string"},
                "operator": {"description": "Exists or Equal; Equal where nothing is said.", "type": "string"},
                "tolerationSeconds": {
                    "description": "How long a taint that evicts is tolerated; for ever where nothing is said.",
                    "type": "integer",
                    "format": "int64",
                },
                "value": {"description": "The value of the taint.", "type": "string"},
            },
        },
    })
}

/// What a container may use.
pub fn resources(generator: &mut SchemaGenerator) -> Schema {
    let quantities = |generator: &mut SchemaGenerator, description: &str| {
        json!({
            "description": description,
            "type": "object",
            "additionalProperties": quantity(generator),
        })
    };
    json_schema!({
        "type": "object",
        "properties": {
            "claims": {
                "description": "Claims of the Pod that the container uses.",
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {
                    "description": "One claim.",
                    "type": "object",
                    "required": ["name"],
                    "properties": {
                        "name": {"description": "The name of the claim in the Pod.", "type": "string"},
                        "request": {
                            "description": "The request of the claim; all where nothing is said.",
                            "type": "string",
                        },
                    },
                },
            },
            "limits": quantities(generator, "The most that the container may use."),
            "requests": quantities(generator, "What the container is sure to have."),
        },
    })
}

/// Where the value of an environment variable comes from.
pub fn env_var_source(generator: &mut SchemaGenerator) -> Schema {
    let mut divisor = Value::from(quantity(generator));
    divisor["description"] = json!("The unit; 1 where nothing is said.");
    let key_of = |what: &str| {
        json!({
            "description": format!("A key of a {what}."),
            "type": "object",
            "x-kubernetes-map-type": "atomic",
            "required": ["key"],
            "properties": {
                "key": {"description": "The key.", "type": "string"},
                "name": {"description": format!("The name of the {what}."), "type": "string", "default": ""},
                "optional": {"description": "Whether it may be missing.", "type": "boolean"},
            },
        })
    };
    json_schema!({
        "type": "object",
        "properties": {
            "configMapKeyRef": key_of("ConfigMap"),
            "fieldRef": {
                "description": "A field of the Pod.",
                "type": "object",
                "x-kubernetes-map-type": "atomic",
                "required": ["fieldPath"],
                "properties": {
                    "apiVersion": {"description": "The version of the path; v1 where nothing is said.", "type": "string"},
                    "fieldPath": {"description": "The path of the field.", "type": "string"},
                },
            },
            "fileKeyRef": {
                "description": "A key of a file.",
                "type": "object",
                "x-kubernetes-map-type": "atomic",
                "required": ["key", "path", "volumeName"],
                "properties": {
                    "key": {"description": "The key.", "type": "string"},
                    "optional": {"description": "Whether it may be missing.", "type": "boolean", "default": false},
                    "path": {"description": "The file in the volume.", "type": "string"},
                    "volumeName": {"description": "The volume with the file.", "type": "string"},
                },
            },
            "resourceFieldRef": {
                "description": "A limit or request of a container.",
                "type": "object",
                "x-kubernetes-map-type": "atomic",
                "required": ["resource"],
                "properties": {
                    "containerName": {"description": "The container.", "type": "string"},
                    "divisor": divisor,
                    "resource": {"description": "The resource, such as limits.cpu.", "type": "string"},
                },
            },
            "secretKeyRef": key_of("Secret"),
        },
    })
}
