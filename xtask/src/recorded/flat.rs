//! An object as one line per field.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// Text by path.
pub(crate) type Flat = BTreeMap<String, String>;

/// The path of a field below another.
pub(crate) fn join(path: &str, key: &str) -> String {
    let plain = !key.is_empty() && !key.contains(['.', '/', '[']);
    match (path.is_empty(), plain) {
        (true, _) => key.to_owned(),
        (false, true) => format!("{path}.{key}"),
        (false, false) => format!("{path}[{key}]"),
    }
}

/// Adds all leaves of a value. Items of lists are identified by their keys, so that an additional item is one difference.
pub(crate) fn flatten(path: &str, value: &Value, flat: &mut Flat) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                flatten(&join(path, key), value, flat);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let keys: Vec<Option<String>> = items.iter().map(item_key).collect();
            let known: BTreeSet<&String> = keys.iter().flatten().collect();
            let keyed = known.len() == items.len();
            for (index, item) in items.iter().enumerate() {
                match &keys[index] {
                    Some(key) if keyed => flatten(&format!("{path}[{key}]"), item, flat),
                    _ => flatten(&format!("{path}[{index}]"), item, flat),
                }
            }
            if keyed && path.ends_with("conditions") {
                let order: Vec<String> = keys.into_iter().flatten().collect();
                flat.insert(format!("{path}.order"), order.join(" "));
            }
        }
        Value::String(text) => drop(flat.insert(path.to_owned(), format!("{text:?}"))),
        other => drop(flat.insert(path.to_owned(), other.to_string())),
    }
}

fn item_key(item: &Value) -> Option<String> {
    let text = |name: &str| item.get(name).and_then(Value::as_str);
    match item {
        Value::String(text) => Some(text.clone()),
        Value::Object(_) => match (text("kind"), text("name")) {
            (Some(kind), Some(name)) => Some(format!("{kind} {name}")),
            (None, Some(name)) => Some(name.to_owned()),
            _ => text("type").map(str::to_owned),
        },
        _ => None,
    }
}

/// The owners of fields in metadata and spec: managers by path, from `metadata.managedFields`.
pub(crate) fn owners(object: &Value) -> Flat {
    let mut owners: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let entries = object["metadata"]["managedFields"].as_array();
    for entry in entries.into_iter().flatten() {
        if entry.get("subresource").is_some() {
            continue;
        }
        let manager = entry["manager"].as_str().unwrap_or_default();
        if let Some(fields) = entry["fieldsV1"].as_object() {
            let mut add = |path: String| {
                owners.entry(path).or_default().insert(manager.to_owned());
            };
            for (key, below) in fields.iter().filter(|(key, _)| *key != "f:status") {
                leaves(&element("", key), below, &mut add);
            }
        }
    }
    let joined = owners.into_iter().map(|(path, managers)| {
        let managers: Vec<String> = managers.into_iter().collect();
        (format!("owner of {path}"), managers.join(" "))
    });
    joined.collect()
}

fn leaves(path: &str, fields: &Value, add: &mut impl FnMut(String)) {
    let below: Vec<(&String, &Value)> = fields
        .as_object()
        .into_iter()
        .flat_map(Map::iter)
        .filter(|(key, _)| *key != ".")
        .collect();
    if below.is_empty() {
        add(path.to_owned());
    }
    for (key, fields) in below {
        leaves(&element(path, key), fields, add);
    }
}

/// One step of a FieldsV1 path.
pub(crate) fn element(path: &str, key: &str) -> String {
    let rest = key.get(2..).unwrap_or_default();
    match key.get(..2) {
        Some("f:") => join(path, rest),
        Some("v:") => format!("{path}[{}]", rest.trim_matches('"')),
        Some("k:") => {
            let named: Map<String, Value> = serde_json::from_str(rest).unwrap_or_default();
            let values: Vec<String> = named
                .values()
                .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
                .collect();
            format!("{path}[{}]", values.join(" "))
        }
        _ => format!("{path}[{key}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn items_go_by_what_tells_them_apart() {
        let check = |value: Value, expect: &[(&str, &str)]| {
            let mut flat = Flat::new();
            flatten("", &value, &mut flat);
            let found: Vec<(&str, &str)> = flat.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
            assert_eq!(found, expect);
        };
        check(json!({"a": {"b": 1, "c/d": "x"}}), &[("a.b", "1"), ("a[c/d]", "\"x\"")]);
        check(
            json!({"finalizers": ["y", "x"]}),
            &[("finalizers[x]", "\"x\""), ("finalizers[y]", "\"y\"")],
        );
        check(
            json!({"conditions": [{"type": "B", "status": "True"}, {"type": "A", "status": "False"}]}),
            &[
                ("conditions.order", "B A"),
                ("conditions[A].status", "\"False\""),
                ("conditions[A].type", "\"A\""),
                ("conditions[B].status", "\"True\""),
                ("conditions[B].type", "\"B\""),
            ],
        );
        check(
            json!({"l": [{"k": 1}, 2], "e": {}, "n": null}),
            &[("e", "{}"), ("l[0].k", "1"), ("l[1]", "2"), ("n", "null")],
        );
        check(json!({"l": ["x", "x"]}), &[("l[0]", "\"x\""), ("l[1]", "\"x\"")]);
    }

    #[test]
    fn owners_are_managers_of_leaves_outside_of_status() {
        let object = json!({"metadata": {"managedFields": [
            {"manager": "user", "fieldsV1": {"f:spec": {"f:list": {"k:{\"name\":\"md-0\"}": {".": {}, "f:class": {}}}}}},
            {"manager": "capi-manager", "fieldsV1": {
                "f:metadata": {"f:finalizers": {".": {}, "v:\"a.b/c\"": {}}, "f:labels": {".": {}, "f:x.y/z": {}}},
                "f:spec": {"f:list": {"k:{\"name\":\"md-0\"}": {"f:class": {}}}},
                "f:status": {"f:phase": {}}}},
            {"manager": "other", "subresource": "status", "fieldsV1": {"f:status": {"f:phase": {}}}},
        ]}});
        let found: Vec<(String, String)> = owners(&object).into_iter().collect();
        let expect = [
            ("owner of metadata.finalizers[a.b/c]", "capi-manager"),
            ("owner of metadata.labels[x.y/z]", "capi-manager"),
            ("owner of spec.list[md-0].class", "capi-manager user"),
        ];
        assert_eq!(found, expect.map(|(path, who)| (path.to_owned(), who.to_owned())));
    }
}
