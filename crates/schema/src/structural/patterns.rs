//! Checks that the patterns of a schema can be compiled.

use serde_json::{Map, Value};

use crate::error::FieldError;
use crate::patterns::Patterns;

/// Checks the patterns of a level and of all below it.
pub(super) fn check(map: &Map<String, Value>, at: &str, patterns: &Patterns, errors: &mut Vec<FieldError>) {
    level(map, false, at, patterns, errors);
}

/// `aside` is a level below a junctor: the values of maps are not looked at there, because they are not allowed.
fn level(map: &Map<String, Value>, aside: bool, at: &str, patterns: &Patterns, errors: &mut Vec<FieldError>) {
    if let Some(pattern) = map.get("pattern").and_then(Value::as_str).filter(|p| !p.is_empty())
        && let Err(why) = patterns.compile(pattern)
    {
        errors.push(FieldError::invalid(
            format!("{at}.pattern"),
            pattern.into(),
            why.detail(),
        ));
    }
    let mut below = |schema: &Value, aside: bool, part: &str| {
        if let Value::Object(map) = schema {
            level(map, aside, &format!("{at}.{part}"), patterns, errors);
        }
    };
    if let Some(items) = map.get("items") {
        below(items, aside, "items");
    }
    for (name, child) in map.get("properties").and_then(Value::as_object).into_iter().flatten() {
        below(child, aside, &format!("properties[{name}]"));
    }
    if let Some(values) = map.get("additionalProperties").filter(|_| !aside) {
        below(values, false, "additionalProperties");
    }
    for name in ["anyOf", "allOf", "oneOf"] {
        let branches = map.get(name).and_then(Value::as_array).into_iter().flatten();
        for (index, branch) in branches.enumerate() {
            below(branch, true, &format!("{name}[{index}]"));
        }
    }
    if let Some(not) = map.get("not") {
        below(not, true, "not");
    }
}
