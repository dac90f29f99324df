//! What differs between two states of an object.
//!
//! Empty objects and texts count as missing: most of Go's types cannot tell them apart, so neither can the rules of Cluster API. Those
//! that can are listed ([`DISTINCT`]).

use serde_json::Value;

/// The fields with an object that may be empty and still has a meaning: pointers in the types of Cluster API v1.14. Each follows the
/// field that has it.
const DISTINCT: [(&str, &str); 7] = [
    ("backend", "docker"),
    ("backend", "inMemory"),
    ("inMemory", "apiServer"),
    ("inMemory", "etcd"),
    ("inMemory", "node"),
    ("inMemory", "vm"),
    ("joinConfiguration", "controlPlane"),
];

fn is_distinct(at: &[&str]) -> bool {
    match at {
        [.., of, name] => DISTINCT.contains(&(*of, *name)),
        _ => false,
    }
}

/// Calls `found` with the paths of all differences between two values, as lists of names. A list differs as a whole, and what is removed is
/// named once. A path is not copied: it can be long, and there can be many.
pub(crate) fn changes<'a>(old: &'a Value, new: &'a Value, mut found: impl FnMut(&[&'a str])) {
    compare(old, new, &mut Vec::new(), &mut found);
}

fn compare<'a>(old: &'a Value, new: &'a Value, at: &mut Vec<&'a str>, found: &mut impl FnMut(&[&'a str])) {
    match (old, new) {
        (Value::Object(before), Value::Object(after)) => {
            for (name, value) in after {
                at.push(name);
                compare(before.get(name).unwrap_or(&Value::Null), value, at, found);
                at.pop();
            }
            for (name, value) in before.iter().filter(|(name, _)| !after.contains_key(*name)) {
                at.push(name);
                compare(value, &Value::Null, at, found);
                at.pop();
            }
        }
        (Value::Null, Value::Object(map)) | (Value::Object(map), Value::Null) if map.is_empty() && is_distinct(at) => {
            found(at);
        }
        // What is added is named leaf by leaf.
        (Value::Null, Value::Object(after)) => {
            for (name, value) in after {
                at.push(name);
                compare(&Value::Null, value, at, found);
                at.pop();
            }
        }
        (Value::Object(before), Value::Null) if is_nothing(before, at.last().copied()) => {}
        (Value::String(text), Value::Null) | (Value::Null, Value::String(text)) if text.is_empty() => {}
        _ if old != new => found(at),
        _ => {}
    }
}

/// Whether the object of a field is empty.
fn is_nothing(map: &serde_json::Map<String, Value>, of: Option<&str>) -> bool {
    let is_distinct = |name: &str| of.is_some_and(|of| DISTINCT.contains(&(of, name)));
    map.iter().all(|(name, value)| match value {
        Value::Null => true,
        Value::Object(map) => !is_distinct(name) && is_nothing(map, Some(name)),
        _ => false,
    })
}

/// Whether a path is covered by one of these patterns: names with points between them. A `*` at the end covers everything below.
pub(crate) fn is_covered(path: &[&str], patterns: &[&str]) -> bool {
    patterns.iter().any(|pattern| {
        let mut names = path.iter();
        for part in pattern.split('.') {
            match (part, names.next()) {
                ("*", Some(_)) => return true,
                (part, Some(name)) if part == *name => {}
                _ => return false,
            }
        }
        names.next().is_none()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_are_named_as_deep_as_they_are() {
        let check = |old: Value, new: Value, expect: &[&str]| {
            let mut found = Vec::new();
            changes(&old, &new, |path| found.push(path.join(".")));
            assert_eq!(found, expect, "{old} {new}");
        };
        check(json!({"a": 1}), json!({"a": 1}), &[]);
        check(
            json!({"backend": {"docker": {}}}),
            json!({"backend": {"inMemory": {}}}),
            &["backend.inMemory", "backend.docker"],
        );
        check(json!({"joinConfiguration": {}}), json!({}), &[]);
        check(json!({"backend": {"docker": {}}}), json!({}), &["backend"]);
        check(
            json!({}),
            json!({"joinConfiguration": {"controlPlane": {}}}),
            &["joinConfiguration.controlPlane"],
        );
        check(json!({"a": {"b": 1}}), json!({"a": {"b": 2}}), &["a.b"]);
        check(json!({}), json!({"a": {"b": 1, "c": {"d": 2}}}), &["a.b", "a.c.d"]);
        check(json!({"a": {"b": 1, "c": 2}}), json!({}), &["a"]);
        check(json!({"a": {}}), json!({}), &[]);
        check(json!({}), json!({"a": {"b": {}}}), &[]);
        check(json!({"a": null}), json!({}), &[]);
        check(json!({"a": ""}), json!({}), &[]);
        check(json!({"a": ""}), json!({"a": "b"}), &["a"]);
        check(json!({"a": [1]}), json!({"a": [2]}), &["a"]);
        check(json!({"a": {"b": 1}}), json!({"a": 1}), &["a"]);
    }

    #[test]
    fn a_star_covers_what_is_below_it_and_not_what_it_stands_in() {
        let check = |path: &str, pattern: &str, expect: bool| {
            let path: Vec<&str> = path.split('.').collect();
            assert_eq!(is_covered(&path, &[pattern]), expect, "{path:?} {pattern}");
        };
        check("a.b", "a.*", true);
        check("a.b.c", "a.*", true);
        check("a", "a.*", false);
        check("a.b", "a.b", true);
        check("a.b.c", "a.b", false);
        check("a", "a.b", false);
    }
}
