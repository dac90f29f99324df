//! Keywords that are not supported in structural schemas.

use serde_json::{Map, Value};

/// The first unsupported keyword of a schema, if any.
pub(crate) fn unsupported(map: &Map<String, Value>) -> Option<String> {
    let is_set = |name: &str| map.get(name).is_some_and(|value| !is_empty(value));
    for name in [
        "id",
        "$schema",
        "$ref",
        "patternProperties",
        "dependencies",
        "additionalItems",
        "definitions",
    ] {
        if is_set(name) || (name == "additionalItems" && map.contains_key(name)) {
            let name = name.replace("$schema", "schema");
            return Some(format!("OpenAPIV3Schema '{name}' is not supported"));
        }
    }
    if map.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        return Some("internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined".to_owned());
    }
    if matches!(map.get("items"), Some(Value::Array(items)) if !items.is_empty()) {
        return Some("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned());
    }
    below(map).find_map(unsupported)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// The schemas directly in a schema.
fn below(map: &Map<String, Value>) -> impl Iterator<Item = &Map<String, Value>> {
    let single = ["not", "items", "additionalProperties"]
        .into_iter()
        .filter_map(|name| map.get(name));
    let lists = ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|name| map.get(name));
    let lists = lists.filter_map(Value::as_array).flatten();
    let properties = map.get("properties").and_then(Value::as_object).into_iter().flatten();
    single
        .chain(lists)
        .chain(properties.map(|(_, schema)| schema))
        .filter_map(Value::as_object)
}
