//! Checks of schemas below `anyOf`, `allOf`, `oneOf` and `not`, and of what must also be specified outside of them.

use serde_json::{Map, Value};

use crate::error::FieldError;

pub(super) fn value_validation(
    map: &Map<String, Value>,
    skip_any: bool,
    skip_first_all: bool,
    at: &str,
    errors: &mut Vec<FieldError>,
) {
    for name in ["anyOf", "allOf", "oneOf"] {
        if name == "anyOf" && skip_any {
            continue;
        }
        for (index, branch) in map
            .get(name)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .enumerate()
        {
            if let Value::Object(branch) = branch {
                let skip = name == "allOf" && index == 0 && skip_first_all;
                nested(branch, skip, &format!("{at}.{name}[{index}]"), errors);
            }
        }
    }
    if let Some(Value::Object(not)) = map.get("not") {
        nested(not, false, &format!("{at}.not"), errors);
    }
}

/// Below a logical junctor, only value validation is allowed.
fn nested(map: &Map<String, Value>, skip_any: bool, at: &str, errors: &mut Vec<FieldError>) {
    value_validation(map, skip_any, false, at, errors);
    if let Some(Value::Object(items)) = map.get("items") {
        nested(items, false, &format!("{at}.items"), errors);
    }
    if let Some(Value::Object(properties)) = map.get("properties") {
        for (name, child) in properties {
            if let Value::Object(child) = child {
                nested(child, false, &format!("{at}.properties[{name}]"), errors);
            }
        }
        if properties.contains_key("metadata") {
            errors.push(FieldError::forbidden(
                format!("{at}.properties[metadata]"),
                "must not be specified in a nested context",
            ));
        }
    }
    let set = |name: &str| {
        map.get(name)
            .is_some_and(|v| !matches!(v, Value::Null | Value::Bool(false)) && v != "")
    };
    for (name, word) in [
        ("type", "empty"),
        ("additionalProperties", "undefined"),
        ("default", "undefined"),
        ("title", "empty"),
        ("description", "empty"),
        ("nullable", "false"),
        ("x-kubernetes-preserve-unknown-fields", "false"),
        ("x-kubernetes-embedded-resource", "false"),
        ("x-kubernetes-int-or-string", "false"),
        ("x-kubernetes-list-map-keys", "empty"),
        ("x-kubernetes-list-type", "undefined"),
        ("x-kubernetes-map-type", "undefined"),
        ("x-kubernetes-validations", "empty"),
    ] {
        if set(name) || (word == "undefined" && map.contains_key(name)) {
            errors.push(FieldError::forbidden(
                format!("{at}.{name}"),
                format!("must be {word} to be structural"),
            ));
        }
    }
}

/// Fields in the value validation of a root must also be described outside of it.
pub(super) fn completeness(junctors: &Map<String, Value>, at: &str, errors: &mut Vec<FieldError>) {
    for name in ["anyOf", "allOf", "oneOf"] {
        for (index, branch) in junctors
            .get(name)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .enumerate()
        {
            if let Value::Object(branch) = branch {
                described(branch, Some(junctors), at, &format!("{at}.{name}[{index}]"), errors);
            }
        }
    }
    if let Some(Value::Object(not)) = junctors.get("not") {
        described(not, Some(junctors), at, &format!("{at}.not"), errors);
    }
}

fn described(
    branch: &Map<String, Value>,
    outside: Option<&Map<String, Value>>,
    outside_at: &str,
    at: &str,
    errors: &mut Vec<FieldError>,
) {
    let because = |at: &str| format!("because it is defined in {at}");
    for name in ["anyOf", "allOf", "oneOf"] {
        for (index, inner) in branch
            .get(name)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .enumerate()
        {
            if let Value::Object(inner) = inner {
                described(inner, outside, outside_at, &format!("{at}.{name}[{index}]"), errors);
            }
        }
    }
    if let Some(Value::Object(not)) = branch.get("not") {
        described(not, outside, outside_at, &format!("{at}.not"), errors);
    }
    if let Some(Value::Object(items)) = branch.get("items") {
        let here = format!("{at}.items");
        let outer_at = format!("{outside_at}.items");
        match outside.and_then(|o| o.get("items")).and_then(Value::as_object) {
            Some(outer) => described(items, Some(outer), &outer_at, &here, errors),
            None => errors.push(FieldError::required(outer_at, because(&here))),
        }
    }
    for (name, child) in branch
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let here = format!("{at}.properties[{name}]");
        let outer_at = format!("{outside_at}.properties[{name}]");
        match outside
            .and_then(|o| o.get("properties"))
            .and_then(|p| p.get(name))
            .and_then(Value::as_object)
        {
            Some(outer) => {
                if let Value::Object(child) = child {
                    described(child, Some(outer), &outer_at, &here, errors);
                }
            }
            None => errors.push(FieldError::required(outer_at, because(&here))),
        }
    }
}
