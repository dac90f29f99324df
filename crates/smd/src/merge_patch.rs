//! JSON merge patch (RFC 7386), with the peculiarities of the implementation in Kubernetes.

use serde_json::{Map, Value};

/// Applies a merge patch in place: null removes, objects merge, everything else replaces.
pub fn merge_patch(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = without_nulls(patch);
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(map) = target else { return };
    for (name, value) in fields {
        match (map.get_mut(name), value) {
            (_, Value::Null) => {
                map.remove(name);
            }
            (Some(there @ Value::Object(_)), Value::Object(_)) => merge_patch(there, value),
            // A value that replaces an object is used unchanged. Elsewhere its nulls are removed.
            (Some(there @ Value::Object(_)), _) => *there = value.clone(),
            _ => {
                map.insert(name.clone(), without_nulls(value));
            }
        }
    }
}

/// An object in a list without its nulls.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter()
                .filter(|(_, v)| !v.is_null())
                .map(|(name, v)| (name.clone(), without_nulls(v)))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}
