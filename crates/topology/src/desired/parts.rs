//! Parts of objects: metadata and fields of class and topology, put together.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::keys;
use crate::model::Metadata;
use crate::patches;

/// Metadata of class and topology: all keys, the topology's value where both have one.
pub(super) fn merged_metadata(class: &Metadata, topology: &Metadata) -> Metadata {
    let mut out = class.clone();
    out.labels.extend(topology.labels.clone());
    out.annotations.extend(topology.annotations.clone());
    // These steer this controller and mean nothing on what it generates.
    for switch in [keys::DEFER_UPGRADE, keys::HOLD_UPGRADE_SEQUENCE] {
        out.annotations.remove(switch);
    }
    out
}

/// Sets a field of an object unless the value is empty.
pub(super) fn put(object: &mut Value, path: &[&str], value: Option<Value>) {
    let empty = match &value {
        None | Some(Value::Null) => true,
        Some(Value::Object(map)) => map.is_empty(),
        Some(_) => false,
    };
    if !empty {
        patches::set_or_remove(object, path, value);
    }
}

/// The fields of `class`, replaced one by one by those of `topology`.
pub(super) fn overlaid(class: &Map<String, Value>, topology: &Map<String, Value>) -> Map<String, Value> {
    let mut out = class.clone();
    out.extend(topology.clone());
    out
}

/// `labels` and `annotations` as JSON, without empty parts.
pub(super) fn metadata_json(labels: &BTreeMap<String, String>, annotations: &BTreeMap<String, String>) -> Value {
    let mut out = Map::new();
    for (name, map) in [("labels", labels), ("annotations", annotations)] {
        if !map.is_empty() {
            out.insert(name.to_owned(), json!(map));
        }
    }
    out.into()
}

/// A map of strings in an object.
pub(super) fn string_map(object: &Value, pointer: &str) -> BTreeMap<String, String> {
    let map = object.pointer(pointer).and_then(Value::as_object);
    map.into_iter()
        .flatten()
        .filter_map(|(k, v)| v.as_str().map(|v| (k.clone(), v.to_owned())))
        .collect()
}
