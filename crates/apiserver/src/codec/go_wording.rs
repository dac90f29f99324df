//! Go's wording of error messages that contain its types; clients match on them.

use serde_json::Value;
use windlass_meta::beginning;
use windlass_meta::budget::PATH_BYTES;

/// The name of a JSON value's type in Go's decoder.
pub(crate) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The error for an unregistered kind.
pub(crate) fn unregistered(kind: &str, version: &str) -> String {
    let (kind, version) = (beginning(kind, PATH_BYTES), beginning(version, PATH_BYTES));
    format!("no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\"")
}
