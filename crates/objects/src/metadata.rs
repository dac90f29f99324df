//! The common fields of every object: metadata, finalizers, generation, timestamps.

use serde_json::{Map, Value};

/// The text of a top-level field.
pub fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or("")
}

/// The text of a metadata field.
pub fn meta<'a>(object: &'a Value, key: &str) -> &'a str {
    object
        .get("metadata")
        .and_then(|m| m.get(key))
        .and_then(Value::as_str)
        .unwrap_or("")
}

/// The metadata, created if missing.
pub fn meta_mut(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let map = object.as_object_mut();
    let slot = match map {
        Some(map) => map.entry("metadata").or_insert_with(|| Value::Object(Map::new())),
        None => unreachable!("made an object above"),
    };
    if !slot.is_object() {
        *slot = Value::Object(Map::new());
    }
    match slot {
        Value::Object(map) => map,
        _ => unreachable!("made an object above"),
    }
}

/// Sets or, with `None`, removes a metadata field.
pub fn set_meta(object: &mut Value, key: &str, value: Option<Value>) {
    let meta = meta_mut(object);
    match value {
        Some(value) => {
            meta.insert(key.to_owned(), value);
        }
        None => {
            meta.remove(key);
        }
    }
}

/// A metadata field.
pub fn meta_value<'a>(object: &'a Value, key: &str) -> Option<&'a Value> {
    object.get("metadata")?.get(key).filter(|v| !v.is_null())
}

/// The finalizers.
pub fn finalizers(object: &Value) -> Vec<&str> {
    strings(meta_value(object, "finalizers"))
}

/// The texts of a list.
pub fn strings(value: Option<&Value>) -> Vec<&str> {
    value
        .and_then(Value::as_array)
        .map(|a| a.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default()
}

/// Whether the object has a deletion timestamp.
pub fn is_deleting(object: &Value) -> bool {
    meta_value(object, "deletionTimestamp").is_some()
}

/// The generation, 0 when there is none.
pub fn generation(object: &Value) -> i64 {
    meta_value(object, "generation").and_then(Value::as_i64).unwrap_or(0)
}

/// A timestamp as Kubernetes writes it: whole seconds, UTC.
pub fn seconds(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
