//! Schemas of types that are not ours (`schema_with` functions for derives), and of plain numbers.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// A whole number of 64 bits.
pub(super) fn int64(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "format": "int64"})
}

/// A whole number.
pub(super) fn integer(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer"})
}

/// The namespace of a release. The default is written by the server, so that it needs no webhook.
pub(super) fn namespace(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "default": crate::addons::values::DEFAULT_NAMESPACE})
}

/// How long an operation may take.
pub(super) fn timeout(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "default": crate::addons::values::DEFAULT_TIMEOUT})
}

/// How many revisions of a release are kept.
pub(super) fn max_history(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "default": crate::addons::values::DEFAULT_MAX_HISTORY})
}

/// A Secret anywhere (`SecretReference`).
pub(super) fn secret_reference(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "name": {"description": "The name of the Secret.", "type": "string"},
            "namespace": {"description": "Its namespace; that of this object where nothing is said.", "type": "string"},
        },
    })
}

/// An object (`ObjectReference`).
pub(super) fn object_reference(_: &mut SchemaGenerator) -> Schema {
    reference().try_into().unwrap_or_default()
}

/// Objects.
pub(super) fn object_references(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array", "items": reference()})
}

fn reference() -> Value {
    json!({
        "description": "An object.",
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "apiVersion": {"description": "The group and version.", "type": "string"},
            "fieldPath": {"description": "A part of the object.", "type": "string"},
            "kind": {"description": "The kind.", "type": "string"},
            "name": {"description": "The name.", "type": "string"},
            "namespace": {"description": "The namespace.", "type": "string"},
            "resourceVersion": {"description": "The version of the object that is meant.", "type": "string"},
            "uid": {"description": "The uid.", "type": "string"},
        },
    })
}
