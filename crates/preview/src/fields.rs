//! The difference between two states of an object, by field.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use windlass_api::codec::LAST_APPLIED;
use windlass_topology::keys;

use crate::model::FieldChange;
use crate::names::text;

/// Annotations with which controllers remember where they are. They come and go, and nothing follows from them for users.
const BOOKKEEPING: [&str; 4] = [LAST_APPLIED, keys::DRY_RUN, keys::PENDING_HOOKS, keys::UPGRADE_STEP];

/// Fields that say the same of items of a list on both sides.
const ITEM_KEYS: [&str; 3] = ["name", "class", "type"];

/// How an object changes: in everything that users and controllers ask for, without status and bookkeeping.
pub fn changes(before: &Value, after: &Value) -> Vec<FieldChange> {
    if text(after, "/kind") == "Secret" && text(after, "/apiVersion") == "v1" {
        let is_same = before["data"] == after["data"];
        let hidden = FieldChange {
            path: "data".to_owned(),
            from: Some("(hidden)".into()),
            to: Some("(hidden)".into()),
        };
        return if is_same { Vec::new() } else { vec![hidden] };
    }
    let mut out = Vec::new();
    compare("", &wanted(before), &wanted(after), &mut out);
    out
}

/// All differences of two objects of which the caller has left out what does not count. Contents of Secrets are hidden.
pub(crate) fn all(before: &Value, after: &Value) -> Vec<FieldChange> {
    let mut out = Vec::new();
    compare("", before, after, &mut out);
    out
}

/// How the content of a template differs from that of another one.
pub(crate) fn spec_changes(before: &Value, after: &Value) -> Vec<FieldChange> {
    let mut out = Vec::new();
    compare("spec", &before["spec"], &after["spec"], &mut out);
    out
}

fn wanted(object: &Value) -> Value {
    let mut out = Map::new();
    for (key, value) in object.as_object().into_iter().flatten() {
        if !matches!(key.as_str(), "apiVersion" | "kind" | "metadata" | "status") {
            out.insert(key.clone(), value.clone());
        }
    }
    let mut metadata = Map::new();
    for part in ["labels", "annotations"] {
        let mut all = object["metadata"][part].as_object().cloned().unwrap_or_default();
        all.retain(|key, _| !BOOKKEEPING.contains(&key.as_str()));
        if !all.is_empty() {
            metadata.insert(part.to_owned(), all.into());
        }
    }
    out.insert("metadata".to_owned(), metadata.into());
    out.into()
}

fn compare(path: &str, before: &Value, after: &Value, out: &mut Vec<FieldChange>) {
    if before == after {
        return;
    }
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let mut keys: Vec<&String> = before.keys().chain(after.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let (have, want) = (before.get(key), after.get(key));
                side(&child(path, key), have, want, out);
            }
        }
        (Value::Array(have), Value::Array(want)) => list(path, have, want, out),
        _ => push(path, Some(before), Some(after), out),
    }
}

fn side(path: &str, before: Option<&Value>, after: Option<&Value>, out: &mut Vec<FieldChange>) {
    match (before, after) {
        (Some(before), Some(after)) => compare(path, before, after, out),
        // A whole part that comes or goes is shown field by field, but an empty one is a field.
        (None, Some(Value::Object(fields))) if !fields.is_empty() => {
            for (key, value) in fields {
                side(&child(path, key), None, Some(value), out);
            }
        }
        (Some(Value::Object(fields)), None) if !fields.is_empty() => {
            for (key, value) in fields {
                side(&child(path, key), Some(value), None, out);
            }
        }
        (before, after) => push(path, before, after, out),
    }
}

/// Items with names are compared by name, others by position if there are as many.
fn list(path: &str, have: &[Value], want: &[Value], out: &mut Vec<FieldChange>) {
    for key in ITEM_KEYS {
        let (Some(have), Some(want)) = (by(key, have), by(key, want)) else {
            continue;
        };
        let mut names: Vec<&&str> = have.keys().chain(want.keys()).collect();
        names.sort();
        names.dedup();
        let before = out.len();
        for name in names {
            side(
                &format!("{path}[{key}={name}]"),
                have.get(*name).copied(),
                want.get(*name).copied(),
                out,
            );
        }
        if out.len() > before {
            return;
        }
        // Only the order differs.
        break;
    }
    if have.len() == want.len() && have.iter().zip(want).all(|(a, b)| a.is_object() && b.is_object()) {
        for (index, (have, want)) in have.iter().zip(want).enumerate() {
            compare(&format!("{path}[{index}]"), have, want, out);
        }
        return;
    }
    let array = |items: &[Value]| Value::Array(items.to_vec());
    push(path, Some(&array(have)), Some(&array(want)), out);
}

fn by<'a>(key: &str, items: &'a [Value]) -> Option<BTreeMap<&'a str, &'a Value>> {
    let named: Option<BTreeMap<&str, &Value>> = items.iter().map(|item| Some((item[key].as_str()?, item))).collect();
    named.filter(|named| named.len() == items.len())
}

fn child(path: &str, key: &str) -> String {
    let is_plain = key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    match (path, is_plain) {
        ("", _) => key.to_owned(),
        (path, true) => format!("{path}.{key}"),
        (path, false) => format!("{path}[{key}]"),
    }
}

/// Fields of Cluster API that hold secrets.
const SECRET: [&str; 4] = ["passwd", "token", "certificateKey", "tlsBootstrapToken"];

fn push(path: &str, from: Option<&Value>, to: Option<&Value>, out: &mut Vec<FieldChange>) {
    let is_secret = SECRET.contains(&path.rsplit('.').next().unwrap_or(path));
    let side = |value: Option<&Value>| {
        value.map(|value| {
            if is_secret {
                "(hidden)".into()
            } else {
                without_secrets(value)
            }
        })
    };
    out.push(FieldChange {
        path: path.to_owned(),
        from: side(from),
        to: side(to),
    });
}

fn without_secrets(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let shown = |(name, value): (&String, &Value)| {
                let is_secret = SECRET.contains(&name.as_str()) && !value.is_object();
                let value = if is_secret {
                    "(hidden)".into()
                } else {
                    without_secrets(value)
                };
                (name.clone(), value)
            };
            fields.iter().map(shown).collect::<Map<String, Value>>().into()
        }
        Value::Array(items) => items.iter().map(without_secrets).collect(),
        value => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(before: &Value, after: &Value) -> Vec<String> {
        let say = |value: Option<Value>| value.map_or("-".to_owned(), |value| value.to_string());
        let all = changes(before, after).into_iter();
        all.map(|one| format!("{} {} {}", one.path, say(one.from), say(one.to)))
            .collect()
    }

    #[test]
    fn secrets_are_not_shown() {
        let before =
            json!({"spec": {"users": [{"name": "a", "passwd": "x1"}], "discovery": {"token": "x2"}, "list": [1]}});
        let after = json!({"spec": {"users": [{"name": "a", "passwd": "x3"}, {"name": "b", "passwd": "x4"}],
            "discovery": {"token": "x5"}, "list": [1, {"token": "x6"}]}});
        let all = shown(&before, &after).join(" ");
        assert!(all.contains("(hidden)") && !all.contains("\"x"), "{all}");
    }

    #[test]
    fn fields_are_named_and_bookkeeping_is_left_out() {
        let before = json!({
            "kind": "Cluster", "metadata": {"uid": "u", "resourceVersion": "1", "labels": {"a.b/c": "x"}},
            "spec": {"variables": [{"name": "x", "value": 1}, {"name": "y", "value": 2}], "list": [1, 2]}, "status": {"a": 1},
        });
        let after = json!({
            "kind": "Cluster", "metadata": {"uid": "v", "annotations": {(keys::UPGRADE_STEP): "v1"}},
            "spec": {"variables": [{"name": "y", "value": 3}, {"name": "z", "value": {"a": true}}], "list": [1]},
        });
        assert_eq!(
            shown(&before, &after),
            [
                "metadata.labels[a.b/c] \"x\" -",
                "spec.list [1,2] [1]",
                "spec.variables[name=x].name \"x\" -",
                "spec.variables[name=x].value 1 -",
                "spec.variables[name=y].value 2 3",
                "spec.variables[name=z].name - \"z\"",
                "spec.variables[name=z].value.a - true",
            ]
        );
        assert!(changes(&before, &before).is_empty());
    }

    #[test]
    fn contents_of_secrets_are_hidden() {
        let secret = |data: &str| json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": data}});
        assert_eq!(shown(&secret("x"), &secret("y")), ["data \"(hidden)\" \"(hidden)\""]);
    }

    #[test]
    fn the_order_of_a_list_is_a_change() {
        let of = |names: [&str; 2]| json!({"spec": {"l": names.map(|name| json!({"name": name}))}});
        let shown = shown(&of(["a", "b"]), &of(["b", "a"]));
        assert_eq!(shown, ["spec.l[0].name \"a\" \"b\"", "spec.l[1].name \"b\" \"a\""]);
    }
}
