//! Sequences of applies and updates with the results of the reference implementation, step by step.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_schema::Schema;
use windlass_smd::{ApplyError, ManagedFields, Operation, Request, Scope, Versions, apply, update};

/// The schema that all recorded sequences use.
pub(crate) fn schema() -> Schema {
    let string = json!({"type": "string"});
    let number = json!({"type": "integer"});
    let strings = json!({"type": "object", "additionalProperties": string});
    let sub = json!({"type": "object", "properties": {"x": number, "y": string, "t": strings}});
    let spec = json!({"type": "object", "properties": {
        "a": number, "b": string, "m": strings, "sub": sub,
        "s": {"type": "array", "x-kubernetes-list-type": "set", "items": string},
        "l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
              "items": {"type": "object", "required": ["name"], "properties": {"name": string, "v": number, "sub": sub}}},
        "p": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "proto"],
              "items": {"type": "object", "required": ["port"], "properties": {
                  "port": number, "proto": {"type": "string", "default": "TCP"}, "n": string}}},
        "al": {"type": "array", "items": string},
        "am": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": string},
        "mm": {"type": "object", "additionalProperties": sub},
    }});
    let any = json!({"x-kubernetes-preserve-unknown-fields": true});
    Schema::open_api(
        &json!({"type": "object", "properties": {"spec": spec, "any": any}}),
        &Value::Null,
    )
    .expect("schema")
}

/// The reference leaves null where a removal empties a map or list; here the empty value stays.
pub(crate) fn without_empty(value: &Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(k, v)| (k.clone(), without_empty(v)))
                .filter(|(_, v)| !is_nothing(v))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.iter().map(without_empty).collect()),
        other => other.clone(),
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

fn owners(object: &Value) -> BTreeMap<String, Value> {
    let managers = ManagedFields::of(object).expect("managed fields");
    managers
        .entries
        .iter()
        .map(|e| (e.manager.clone(), e.fields.to_value()))
        .collect()
}

fn replay(schema: &Schema, steps: &[Value], label: &str) {
    let now = "2026-01-01T00:00:00Z".parse().expect("time");
    let mut live: Option<Value> = None;
    for (index, step) in steps.iter().enumerate() {
        let at = || {
            format!(
                "{label} step {index}: {step}\nlive: {}",
                live.clone().unwrap_or_default()
            )
        };
        let mut object = step["object"].clone();
        object["metadata"] = json!({});
        let manager = step["manager"].as_str().expect("manager");
        let mut conflicts = Vec::new();
        let request = Request {
            schema: Some(schema),
            versions: Versions::ALIKE,
            live: live.as_ref(),
            manager,
            api_version: "v1",
            subresource: "",
            scope: Scope::ALL,
            now,
        };
        let result = if step["op"] == "apply" {
            match apply(&request, &object, step["force"] == true) {
                Ok(applied) => Some(applied.object),
                Err(ApplyError::Conflicts(found)) => {
                    conflicts = found
                        .listed
                        .iter()
                        .map(|c| {
                            format!(
                                "{} {}",
                                c.manager.split(' ').next().unwrap_or_default().trim_matches('"'),
                                c.path
                            )
                        })
                        .collect();
                    live.clone()
                }
                Err(error) => unreachable!("{error}: {}", at()),
            }
        } else {
            update(&request, &mut object);
            Some(object)
        };
        conflicts.sort();
        let expected: Vec<String> = step
            .get("conflicts")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|c| c.as_str().map(str::to_owned))
            .collect();
        assert_eq!(conflicts, expected, "{}", at());
        let mut plain = result.clone().unwrap_or_else(|| json!({}));
        plain.as_object_mut().expect("object").remove("metadata");
        let expected = if step["result"].is_null() {
            json!({})
        } else {
            without_empty(&step["result"])
        };
        assert_eq!(without_empty(&plain), expected, "{}", at());
        let expected: BTreeMap<String, Value> = step["managers"]
            .as_object()
            .expect("managers")
            .clone()
            .into_iter()
            .collect();
        let have = result.as_ref().map(owners).unwrap_or_default();
        assert_eq!(have, expected, "{}", at());
        live = result;
    }
}

/// `SMD_VECTORS` names another file of the same form, to try more sequences.
#[test]
fn recorded_sequences_come_out_the_same() {
    let text = match std::env::var("SMD_VECTORS") {
        Ok(path) => std::fs::read_to_string(path).expect("vectors"),
        Err(_) => include_str!("sequences.jsonl").to_owned(),
    };
    let schema = schema();
    for (number, line) in text.lines().enumerate() {
        let steps: Vec<Value> = serde_json::from_str(line).expect("line");
        replay(&schema, &steps, &format!("sequence {number}"));
    }
    assert!(ManagedFields::default().get("x", Operation::Apply, "").is_none());
}
