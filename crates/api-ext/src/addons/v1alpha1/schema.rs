//! Schemas of foreign types (`schema_with` functions for derives), and of integers.

use schemars::{Schema, SchemaGenerator, json_schema};

/// A 64-bit integer.
pub(super) fn int64(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "format": "int64"})
}

/// An integer.
pub(super) fn integer(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer"})
}

/// The namespace of a release. The API server sets the default, so no webhook is needed.
pub(super) fn namespace(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "default": crate::addons::values::DEFAULT_NAMESPACE})
}

/// Timeout of an operation.
pub(super) fn timeout(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "default": crate::addons::values::DEFAULT_TIMEOUT})
}

/// Number of revisions to keep.
pub(super) fn max_history(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "default": crate::addons::values::DEFAULT_MAX_HISTORY})
}

/// A Secret in any namespace (`SecretReference`).
pub(super) fn secret_reference(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "name": {"description": "Name of the Secret.", "type": "string"},
            "namespace": {"description": "Namespace of the Secret. Defaults to the namespace of this object.", "type": "string"},
        },
    })
}
