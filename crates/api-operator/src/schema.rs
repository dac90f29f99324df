//! Schemas of foreign types (`schema_with` functions for derives).

mod affinity;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};
use windlass_api::schema::quantity;

use crate::rules;

pub use affinity::affinity;

/// An integer.
pub fn integer(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer"})
}

/// A 64-bit integer.
pub fn int64(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "format": "int64"})
}

/// An integer, at least 0.
pub fn natural(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "minimum": 0})
}

/// A number of Pods.
pub fn replicas(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "format": "int32", "minimum": 0})
}

/// An integer, at least 1.
pub fn positive(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "minimum": 1})
}

/// A port.
pub fn port(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "minimum": 1, "maximum": 65535})
}

/// Log verbosity in the API version that sets a default for it.
pub fn verbosity(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "minimum": 0, "default": 1})
}

/// Integers by name.
pub fn integers(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "additionalProperties": {"type": "integer"}})
}

/// Values of a type by name, without field descriptions. The type's fields are described elsewhere in the same schema,
/// and descriptions are half of the size of a CRD.
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

/// A non-negative duration, for example `10m`.
pub fn duration(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "maxLength": 64, "pattern": rules::DURATION})
}

/// A duration, for example `-1s`.
pub fn signed_duration(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "maxLength": 64, "pattern": rules::SIGNED_DURATION})
}

/// The tolerations of a Pod.
pub fn tolerations(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": {
            "description": "A toleration of the Pods.",
            "type": "object",
            "properties": {
                "effect": {
                    "description": "Effect of the taint: NoSchedule, PreferNoSchedule or NoExecute. Unset matches all.",
                    "type": "string",
                },
                "key": {"description": "Key of the taint. Unset matches all.", "type": "string"},
                "operator": {"description": "Operator: Exists or Equal. Defaults to Equal.", "type": "string"},
                "tolerationSeconds": {
                    "description": "Seconds to tolerate a NoExecute taint. No limit when unset.",
                    "type": "integer",
                    "format": "int64",
                },
                "value": {"description": "Value of the taint.", "type": "string"},
            },
        },
    })
}

/// The resource requirements of a container.
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
                "description": "Resource claims of the Pod that the container uses.",
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {
                    "description": "A resource claim.",
                    "type": "object",
                    "required": ["name"],
                    "properties": {
                        "name": {"description": "Name of the claim in the Pod.", "type": "string"},
                        "request": {
                            "description": "Name of the request in the claim. Defaults to all requests.",
                            "type": "string",
                        },
                    },
                },
            },
            "limits": quantities(generator, "Resource limits of the container."),
            "requests": quantities(generator, "Resource requests of the container."),
        },
    })
}

/// The source of the value of an environment variable.
pub fn env_var_source(generator: &mut SchemaGenerator) -> Schema {
    let mut divisor = Value::from(quantity(generator));
    divisor["description"] = json!("Unit of the value. Defaults to 1.");
    let key_of = |what: &str| {
        json!({
            "description": format!("Key of a {what}."),
            "type": "object",
            "x-kubernetes-map-type": "atomic",
            "required": ["key"],
            "properties": {
                "key": {"description": "Key to select.", "type": "string"},
                "name": {"description": format!("Name of the {what}."), "type": "string", "default": ""},
                "optional": {"description": "Whether the referenced object or key may be missing.", "type": "boolean"},
            },
        })
    };
    json_schema!({
        "type": "object",
        "properties": {
            "configMapKeyRef": key_of("ConfigMap"),
            "fieldRef": {
                "description": "Field of the Pod.",
                "type": "object",
                "x-kubernetes-map-type": "atomic",
                "required": ["fieldPath"],
                "properties": {
                    "apiVersion": {"description": "API version in which the path is defined. Defaults to v1.", "type": "string"},
                    "fieldPath": {"description": "Path of the field.", "type": "string"},
                },
            },
            "fileKeyRef": {
                "description": "Key of a file in a volume.",
                "type": "object",
                "x-kubernetes-map-type": "atomic",
                "required": ["key", "path", "volumeName"],
                "properties": {
                    "key": {"description": "Key to select.", "type": "string"},
                    "optional": {"description": "Whether the referenced object or key may be missing.", "type": "boolean", "default": false},
                    "path": {"description": "Path of the file in the volume.", "type": "string"},
                    "volumeName": {"description": "Name of the volume with the file.", "type": "string"},
                },
            },
            "resourceFieldRef": {
                "description": "Resource limit or request of a container.",
                "type": "object",
                "x-kubernetes-map-type": "atomic",
                "required": ["resource"],
                "properties": {
                    "containerName": {"description": "Name of the container.", "type": "string"},
                    "divisor": divisor,
                    "resource": {"description": "Resource to select, for example limits.cpu.", "type": "string"},
                },
            },
            "secretKeyRef": key_of("Secret"),
        },
    })
}
