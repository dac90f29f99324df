//! Objects with gaps, as Go's decoders read them: what is null, or required and not there, has its zero value.
//!
//! API servers convert such objects. For an apply they convert what is left of an object without the fields that a manager applies no more,
//! and before the schema has judged a write, admission has to see it. An error would refuse writes that are good.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use serde_json::{Map, Value};
use windlass_api::crd::open_api_schema;
use windlass_api::kind::ApiKind;

/// The schemas that were needed, by type.
static SCHEMAS: LazyLock<Mutex<HashMap<TypeId, Arc<Value>>>> = LazyLock::new(Mutex::default);

fn schema<K: ApiKind>() -> Arc<Value> {
    let mut schemas = SCHEMAS.lock().unwrap_or_else(PoisonError::into_inner);
    let made = schemas
        .entry(TypeId::of::<K>())
        .or_insert_with(|| Arc::new(open_api_schema::<K>()));
    Arc::clone(made)
}

/// The encoded object without gaps. `None` if it is no JSON.
pub(crate) fn filled<K: ApiKind>(object: &[u8]) -> Option<Vec<u8>> {
    let mut value: Value = serde_json::from_slice(object).ok()?;
    let schema = schema::<K>();
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        if !matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
            fill_field(&mut value, name, schema);
        }
    }
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    serde_json::to_vec(&value).ok()
}

/// Fills what is there of a field, and drops it if it is null.
fn fill_field(object: &mut Value, name: &str, schema: &Value) {
    let Some(fields) = object.as_object_mut() else { return };
    match fields.get_mut(name) {
        Some(Value::Null) => drop(fields.remove(name)),
        Some(value) => fill(value, schema),
        None => {}
    }
}

fn fill(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(_) => {
            for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
                fill_field(value, name, schema);
            }
            let Some(fields) = value.as_object_mut() else { return };
            if let Some(schema) = schema.get("additionalProperties").filter(|schema| schema.is_object()) {
                fields.values_mut().for_each(|item| fill_item(item, schema));
            }
            for name in schema["required"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
            {
                if !fields.contains_key(name) {
                    fields.insert(name.to_owned(), zero_of(name, &schema["properties"][name]));
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill_item(item, &schema["items"])),
        _ => {}
    }
}

fn fill_item(item: &mut Value, schema: &Value) {
    if item.is_null() {
        *item = zero(schema);
    } else {
        fill(item, schema);
    }
}

/// [`zero`] of a field. Schemas do not tell durations from other texts; this is the only one that is required.
fn zero_of(name: &str, schema: &Value) -> Value {
    if name == "timeout" && schema["type"] == "string" {
        return Value::from("0s");
    }
    zero(schema)
}

/// What Go has where nothing was set.
fn zero(schema: &Value) -> Value {
    if schema["x-kubernetes-int-or-string"] == true {
        return Value::from(0);
    }
    match schema["type"].as_str() {
        Some("object") => {
            let mut empty = Value::Object(Map::new());
            fill(&mut empty, schema);
            empty
        }
        Some("array") => Value::Array(Vec::new()),
        Some("string") if schema["format"] == "date-time" => Value::from("0001-01-01T00:00:00Z"),
        Some("string") => Value::from(""),
        Some("integer" | "number") => Value::from(0),
        Some("boolean") => Value::from(false),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_api::core::Cluster;

    use super::*;

    #[test]
    fn what_is_required_and_not_there_is_zero() {
        let check = |spec: Value, expect: Value| {
            let object = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "a"}, "spec": spec});
            let filled = filled::<Cluster>(object.to_string().as_bytes()).unwrap();
            let filled: Value = serde_json::from_slice(&filled).unwrap();
            assert_eq!(filled["spec"], expect);
            assert_eq!(filled["metadata"], json!({"name": "a"}));
        };
        check(
            json!({"topology": {"variables": [{}, null], "workers": null}}),
            json!({"topology": {"classRef": {"name": ""}, "version": "", "variables": [{"name": "", "value": null}, {"name": "", "value": null}]}}),
        );
        check(json!({"paused": true}), json!({"paused": true}));
        // What has no schema stays as it is.
        check(
            json!({"topology": {"classRef": {"name": "c"}, "version": "v1", "variables": [{"name": "x", "value": {"a": null}}]}}),
            json!({"topology": {"classRef": {"name": "c"}, "version": "v1", "variables": [{"name": "x", "value": {"a": null}}]}}),
        );
    }
}
