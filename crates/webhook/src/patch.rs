//! The JSON patch from one object to another.

use serde_json::{Value, json};

/// The operations that make `new` of `old`. A list that differs is replaced as a whole.
pub(crate) fn patch(old: &Value, new: &Value) -> Vec<Value> {
    let mut out = Vec::new();
    add(old, new, "", &mut out);
    out
}

fn add(old: &Value, new: &Value, at: &str, out: &mut Vec<Value>) {
    if old == new {
        return;
    }
    let (Value::Object(before), Value::Object(after)) = (old, new) else {
        return out.push(json!({"op": "replace", "path": at, "value": new}));
    };
    let below = |name: &str| format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        out.push(json!({"op": "remove", "path": below(name)}));
    }
    for (name, value) in after {
        match before.get(name) {
            Some(old) => add(old, value, &below(name), out),
            None => out.push(json!({"op": "add", "path": below(name), "value": value})),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_written() {
        let check = |old: Value, new: Value, expect: Value| assert_eq!(json!(patch(&old, &new)), expect);
        check(json!({"a": 1}), json!({"a": 1}), json!([]));
        check(
            json!({"a": {"b/c": 1, "d": 2}, "l": [1]}),
            json!({"a": {"b/c": 2, "e~": 3}, "l": [1, 2]}),
            json!([
                {"op": "remove", "path": "/a/d"}, {"op": "replace", "path": "/a/b~1c", "value": 2},
                {"op": "add", "path": "/a/e~0", "value": 3}, {"op": "replace", "path": "/l", "value": [1, 2]},
            ]),
        );
        check(
            json!(null),
            json!({}),
            json!([{"op": "replace", "path": "", "value": {}}]),
        );
    }
}
