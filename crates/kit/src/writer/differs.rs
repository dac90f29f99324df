//! Would applying this change that? Decided without a schema: maps may hold more than is wanted, lists of named items are
//! compared by name, other lists item by item.

use serde_json::Value;

/// Keys by which items of associative lists are told apart, in the order they are tried.
const NAMES: [&str; 6] = ["type", "name", "uid", "key", "conditionType", "ip"];

/// True when `want` has something that `have` does not have so.
pub(super) fn differs(want: &Value, have: &Value) -> bool {
    match (want, have) {
        (Value::Object(want), Value::Object(have)) => want
            .iter()
            .any(|(key, want)| have.get(key).map_or(!is_empty(want), |have| differs(want, have))),
        (Value::Array(want), Value::Array(have)) => lists_differ(want, have),
        (want, have) => want != have,
    }
}

/// An empty map or list that is wanted, and one that is absent, come to the same.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Null => true,
        _ => false,
    }
}

fn lists_differ(want: &[Value], have: &[Value]) -> bool {
    if let Some(name) = name_of_items(want).filter(|_| !want.is_empty()) {
        return want.iter().any(|want| {
            have.iter()
                .find(|have| have.get(name) == want.get(name))
                .is_none_or(|have| differs(want, have))
        });
    }
    if want.iter().all(Value::is_string) && have.iter().all(Value::is_string) {
        // A set (finalizers) may hold more; of an atomic list nothing may be missing either. A removed item is found by the
        // memory of the last apply, not here.
        return want.iter().any(|want| !have.contains(want));
    }
    want.len() != have.len() || want.iter().zip(have).any(|(want, have)| differs(want, have))
}

/// The key by which all items can be told apart.
fn name_of_items(items: &[Value]) -> Option<&'static str> {
    NAMES.into_iter().find(|name| {
        let mut names: Vec<_> = items.iter().filter_map(|i| i.get(name)?.as_str()).collect();
        let all = names.len() == items.len();
        names.sort_unstable();
        names.dedup();
        all && names.len() == items.len()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(want: Value, have: Value, expect: bool) {
        assert_eq!(differs(&want, &have), expect, "{want} against {have}");
    }

    #[test]
    fn what_is_there_besides_does_not_count() {
        check(json!({"a": 1}), json!({"a": 1, "b": 2}), false);
        check(json!({"a": 1, "b": {}}), json!({"a": 1}), false);
        check(json!({"a": 2}), json!({"a": 1}), true);
        check(json!({"a": {"b": 1}}), json!({}), true);
    }

    #[test]
    fn named_items_are_compared_by_name() {
        let have = json!([{"type": "Ready", "status": "True", "x": 1}, {"type": "Paused", "status": "False"}]);
        check(json!([{"type": "Paused", "status": "False"}]), have.clone(), false);
        check(json!([{"type": "Paused", "status": "True"}]), have.clone(), true);
        check(json!([{"type": "Other", "status": "True"}]), have, true);
    }

    #[test]
    fn plain_lists() {
        check(json!(["a"]), json!(["a", "b"]), false);
        check(json!(["c"]), json!(["a", "b"]), true);
        check(json!([1, 2]), json!([1]), true);
        check(json!([{"x": 1}]), json!([{"x": 1, "defaulted": true}]), false);
    }
}
