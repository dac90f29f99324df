//! The change that an apply would make, as far as it can be told without the API server.
//!
//! Fields that are not in the intent belong to other field managers, or this controller has set them before and the apply removes
//! them. Only the API server can tell. So this comparison gives notes and decides nothing that cannot be undone: whether the spec of
//! a template changes is decided by a [`Trial`](crate::trial::Trial).

use serde_json::{Map, Value};

/// The effect of an apply on an object, the gravest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// Nothing, except that fields may be removed.
    None,
    /// Labels, annotations or owner references only.
    Metadata,
    /// Something in the spec.
    Spec,
}

/// Compares an object with what this controller would apply to it.
pub fn compare(current: &Value, intent: &Value) -> Change {
    if differs(&current["spec"], &intent["spec"]) {
        return Change::Spec;
    }
    compare_metadata(current, intent)
}

/// [`compare`] for an object whose spec is known to stay as it is.
pub fn compare_metadata(current: &Value, intent: &Value) -> Change {
    if metadata_differs(&current["metadata"], &intent["metadata"]) {
        Change::Metadata
    } else {
        Change::None
    }
}

/// Only the three parts that an intent has; an owner reference counts by uid.
fn metadata_differs(have: &Value, want: &Value) -> bool {
    let maps = ["labels", "annotations"].iter().any(|part| {
        want.get(part)
            .is_some_and(|want| differs(have.get(part).unwrap_or(&Value::Null), want))
    });
    let missing = owners(want).any(|want| !owners(have).any(|have| !differs(have, want)));
    maps || missing
}

fn owners(metadata: &Value) -> impl Iterator<Item = &Value> {
    let owners = metadata.get("ownerReferences").and_then(Value::as_array);
    owners.into_iter().flatten()
}

fn differs(have: &Value, want: &Value) -> bool {
    match (have, want) {
        (Value::Null, Value::Object(want)) => !want.is_empty(),
        (Value::Object(have), Value::Object(want)) => want.iter().any(|(key, want)| match have.get(key) {
            Some(have) => differs(have, want),
            // The API server does not store what is null.
            None => !want.is_null(),
        }),
        (Value::Array(have), Value::Array(want)) if have.len() == want.len() => {
            have.iter().zip(want).any(|(have, want)| differs(have, want))
        }
        // A list that other field managers add to: all desired items are in it, in the same order.
        (Value::Array(have), Value::Array(want)) if have.len() > want.len() => {
            let mut rest = have.iter();
            !want.iter().all(|want| rest.any(|have| !differs(have, want)))
        }
        (Value::Number(a), Value::Number(b)) if a.as_f64() == b.as_f64() => false,
        (have, want) => have != want,
    }
}

/// The first path at which two values differ, such as `spec.files[1].path`; `None` when they are equal.
pub fn first_difference(path: &str, one: &Value, other: &Value) -> Option<String> {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let keys = one.keys().chain(other.keys().filter(|key| !one.contains_key(*key)));
            let mut found = keys.filter_map(|key| {
                let side = |map: &Map<String, Value>| map.get(key).cloned().unwrap_or_default();
                first_difference(&format!("{path}.{key}"), &side(one), &side(other))
            });
            found.next()
        }
        (Value::Array(one), Value::Array(other)) => {
            let mut pairs = one.iter().zip(other).enumerate();
            let found =
                pairs.find_map(|(index, (one, other))| first_difference(&format!("{path}[{index}]"), one, other));
            found.or_else(|| (one.len() != other.len()).then(|| path.to_owned()))
        }
        (one, other) => (one != other).then(|| path.to_owned()),
    }
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value, reason = "cases read best as literals")]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(current: Value, intent: Value, expect: Change) {
        assert_eq!(compare(&current, &intent), expect, "{current} <- {intent}");
    }

    #[test]
    fn tells_nothing_metadata_and_spec_apart() {
        let spec = |v: Value| json!({"metadata": {"labels": {"a": "b", "x": "y"}}, "spec": v});
        let want = |v: Value| json!({"metadata": {"labels": {"a": "b"}}, "spec": v});
        check(spec(json!({"a": 1})), want(json!({"a": 1})), Change::None);
        check(spec(json!({"a": 1})), want(json!({"a": 2})), Change::Spec);
        check(spec(json!({"a": 1})), want(json!({"a": 1, "b": 1})), Change::Spec);
        check(spec(json!({"a": 1, "d": 2})), want(json!({"a": 1})), Change::None);
        check(spec(json!({"l": [1, 2]})), want(json!({"l": [1, 3]})), Change::Spec);
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

    #[test]
    fn names_the_first_difference() {
        let check = |one: Value, other: Value, expect: Option<&str>| {
            assert_eq!(first_difference("spec", &one, &other).as_deref(), expect);
        };
        check(json!({"a": [{"b": 1}]}), json!({"a": [{"b": 1}]}), None);
        check(json!({"a": [{"b": 1}]}), json!({"a": [{"b": 2}]}), Some("spec.a[0].b"));
        check(json!({"a": [1, 2]}), json!({"a": [1]}), Some("spec.a"));
        check(json!({"a": 1}), json!({}), Some("spec.a"));
        check(json!({}), json!({"a": 1}), Some("spec.a"));
    }
}
