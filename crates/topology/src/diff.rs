//! The change that an apply would make, decided locally.
//!
//! Fields that are not in the intent belong to others, unless this controller has set them before according to
//! `managedFields`: then the apply removes them. Caches do not keep `managedFields`. Without them an object with more
//! fields than the intent is [`Change::Unsure`].

use serde_json::{Map, Value};

use crate::keys;

/// The effect of an apply on an object, the gravest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// Nothing.
    None,
    /// Perhaps remove fields; only `managedFields` can tell.
    Unsure,
    /// Labels, annotations or owner references only.
    Metadata,
    /// Something in the spec.
    Spec,
}

/// Compares an object with what this controller would apply to it.
pub fn compare(current: &Value, intent: &Value) -> Change {
    let owned = owned_fields(current);
    let mut change = Change::None;
    for (field, grave) in [("metadata", Change::Metadata), ("spec", Change::Spec)] {
        let empty = Value::Object(Map::new());
        let want = intent.get(field).unwrap_or(&empty);
        let have = current.get(field).unwrap_or(&empty);
        let found = if field == "metadata" {
            metadata(have, want)
        } else {
            value(have, want)
        };
        let removed = owned
            .and_then(|o| o.get(format!("f:{field}")))
            .is_some_and(|set| removes(set, want));
        change = change.max(match (found, owned.is_some(), removed) {
            (Found::Differs, _, _) | (_, _, true) => grave,
            (Found::More, false, _) if field == "spec" => Change::Unsure,
            (Found::More | Found::Same, _, false) => Change::None,
        });
    }
    change
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Found {
    Same,
    /// All of the intent is there, and more.
    More,
    Differs,
}

/// Only the three parts that an intent has; an owner reference counts by uid.
fn metadata(have: &Value, want: &Value) -> Found {
    let mut found = Found::Same;
    for part in ["labels", "annotations"] {
        if let Some(want) = want.get(part) {
            found = found.max(value(have.get(part).unwrap_or(&Value::Null), want));
        }
    }
    let owners = |v: &Value| {
        v.get("ownerReferences")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let have = owners(have);
    let missing = owners(want)
        .iter()
        .any(|want| !have.iter().any(|have| value(have, want) != Found::Differs));
    if missing { Found::Differs } else { found }
}

fn value(have: &Value, want: &Value) -> Found {
    match (have, want) {
        (Value::Object(have), Value::Object(want)) => {
            let mut found = if have.len() > want.len() {
                Found::More
            } else {
                Found::Same
            };
            for (key, want) in want {
                let one = match have.get(key) {
                    Some(have) => value(have, want),
                    // The API server does not store what is empty or null everywhere.
                    None if want.is_null() => Found::Same,
                    None => Found::Differs,
                };
                found = found.max(one);
            }
            found
        }
        (Value::Array(have), Value::Array(want)) if have.len() == want.len() => have
            .iter()
            .zip(want)
            .map(|(have, want)| value(have, want))
            .max()
            .unwrap_or(Found::Same),
        // A list that others add to: everything wanted is in it, in the same order.
        (Value::Array(have), Value::Array(want)) if have.len() > want.len() => {
            let mut rest = have.iter();
            let all = want
                .iter()
                .all(|want| rest.any(|have| value(have, want) != Found::Differs));
            if all { Found::More } else { Found::Differs }
        }
        (Value::Number(a), Value::Number(b)) if a.as_f64() == b.as_f64() => Found::Same,
        (have, want) if have == want => Found::Same,
        _ => Found::Differs,
    }
}

/// The last applied fields of this controller, as the API server stores them.
fn owned_fields(current: &Value) -> Option<&Value> {
    let entries = current.pointer("/metadata/managedFields")?.as_array()?;
    let ours = entries.iter().find(|entry| {
        entry["manager"] == keys::FIELD_MANAGER
            && entry["operation"] == "Apply"
            && entry.get("subresource").is_none_or(|s| s == "")
    });
    // No entry: nothing was applied, so nothing can be removed.
    Some(ours.map_or(&Value::Null, |entry| &entry["fieldsV1"]))
}

/// Whether a set of owned fields has one that the intent lacks.
fn removes(set: &Value, want: &Value) -> bool {
    let Some(set) = set.as_object() else { return false };
    set.iter().any(|(key, below)| {
        let item = if key == "." {
            return false;
        } else if let Some(field) = key.strip_prefix("f:") {
            want.get(field)
        } else if let Some(by) = key.strip_prefix("k:") {
            let by: Value = serde_json::from_str(by).unwrap_or_default();
            items(want).find(|item| value(item, &by) != Found::Differs)
        } else if let Some(text) = key.strip_prefix("v:") {
            let wanted: Value = serde_json::from_str(text).unwrap_or_default();
            items(want).find(|item| **item == wanted)
        } else {
            return false;
        };
        match item {
            None => true,
            Some(item) => removes(below, item),
        }
    })
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value, reason = "cases read best as literals")]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(current: Value, intent: Value, expect: Change) {
        assert_eq!(compare(&current, &intent), expect, "{current} <- {intent}");
    }

    // TO-266, TO-291, TO-293, TO-298
    #[test]
    fn tells_nothing_metadata_and_spec_apart() {
        let spec = |v: Value| json!({"metadata": {"labels": {"a": "b", "x": "y"}}, "spec": v});
        let want = |v: Value| json!({"metadata": {"labels": {"a": "b"}}, "spec": v});
        check(spec(json!({"a": 1})), want(json!({"a": 1})), Change::None);
        check(spec(json!({"a": 1})), want(json!({"a": 2})), Change::Spec);
        check(spec(json!({"a": 1})), want(json!({"a": 1, "b": 1})), Change::Spec);
        check(spec(json!({"a": 1, "d": 2})), want(json!({"a": 1})), Change::Unsure);
        check(spec(json!({"l": [1, 2]})), want(json!({"l": [1, 3]})), Change::Spec);
        check(
            spec(json!({"l": [{"n": 1, "d": 0}]})),
            want(json!({"l": [{"n": 1}]})),
            Change::Unsure,
        );
        check(
            json!({"metadata": {"labels": {"a": "b"}}, "spec": {}}),
            json!({"metadata": {"labels": {"a": "c"}}, "spec": {}}),
            Change::Metadata,
        );
        check(
            json!({"metadata": {}, "spec": {}}),
            json!({"metadata": {"ownerReferences": [{"uid": "u"}]}, "spec": {}}),
            Change::Metadata,
        );
    }

    // TO-293: a field that was applied before and is no longer wanted goes.
    #[test]
    fn managed_fields_decide_what_is_removed() {
        let current = |owned: Value| {
            json!({
                "metadata": {"managedFields": [
                    {"manager": "capi-topology", "operation": "Apply", "fieldsV1": owned},
                ]},
                "spec": {"a": 1, "d": 2, "l": [{"name": "x", "v": 1}, {"name": "y", "v": 1}]},
            })
        };
        let want = json!({"spec": {"a": 1, "l": [{"name": "x", "v": 1}]}});
        let item = |n: &str| format!("k:{{\"name\":\"{n}\"}}");
        let only_ours = json!({"f:spec": {"f:a": {}, "f:l": {item("x"): {".": {}, "f:name": {}, "f:v": {}}}}});
        check(current(only_ours), want.clone(), Change::None);
        check(
            current(json!({"f:spec": {"f:a": {}, "f:d": {}}})),
            want.clone(),
            Change::Spec,
        );
        check(
            current(json!({"f:spec": {"f:l": {item("y"): {".": {}}}}})),
            want,
            Change::Spec,
        );
    }
}
