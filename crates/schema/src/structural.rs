//! The checks of kube-apiserver for schemas of new CRDs.

mod defaults;
mod junctors;
mod lists;
mod open_api;
mod patterns;
mod unsupported;

use serde_json::{Map, Value};

pub(crate) use self::defaults::check_defaults;
pub(crate) use self::open_api::{Told, Visit};
pub(crate) use self::unsupported::unsupported;

use self::junctors::{completeness, value_validation};
use crate::error::FieldError;
use crate::parse::Dialect;
use crate::patterns::Patterns;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Checks that the JSON of a schema is structural.
pub(crate) fn check(schema: &Value, dialect: Dialect, at: &str, compiled: &Patterns, errors: &mut Vec<FieldError>) {
    let Value::Object(map) = schema else { return };
    let start = errors.len();
    let level = if dialect == Dialect::Crd {
        Level::Root
    } else {
        Level::Field
    };
    invariants(map, level, at, errors);
    patterns::check(map, at, compiled, errors);
    completeness(map, at, errors);
    errors[start..].sort_by_cached_key(ToString::to_string);
}

fn flag(map: &Map<String, Value>, name: &str) -> bool {
    map.get(name).and_then(Value::as_bool).unwrap_or(false)
}

fn kind(map: &Map<String, Value>) -> &str {
    map.get("type").and_then(Value::as_str).unwrap_or("")
}

fn invariants(map: &Map<String, Value>, level: Level, at: &str, errors: &mut Vec<FieldError>) {
    let kind = kind(map);
    match map.get("items") {
        None if kind == "array" => errors.push(FieldError::required(format!("{at}.items"), "must be specified")),
        Some(Value::Object(items)) => invariants(items, Level::Item, &format!("{at}.items"), errors),
        _ => {}
    }
    if let Some(Value::Object(properties)) = map.get("properties") {
        for (name, child) in properties {
            if let Value::Object(child) = child {
                invariants(child, Level::Field, &format!("{at}.properties[{name}]"), errors);
            }
        }
    }
    additional_properties(map, level, at, errors);
    let (skip_any, skip_first_all) = int_or_string_patterns(map);
    value_validation(map, skip_any, skip_first_all, at, errors);
    types(map, level, at, errors);
    resource_fields(map, level, at, errors);
}

fn additional_properties(map: &Map<String, Value>, level: Level, at: &str, errors: &mut Vec<FieldError>) {
    let Some(additional) = map.get("additionalProperties") else {
        return;
    };
    let here = format!("{at}.additionalProperties");
    if level == Level::Root {
        errors.push(FieldError::forbidden(here.clone(), "must not be used at the root"));
    }
    if flag(map, "x-kubernetes-embedded-resource") {
        errors.push(FieldError::forbidden(
            here.clone(),
            "must not be used if x-kubernetes-embedded-resource is set",
        ));
    }
    if let Value::Object(child) = additional {
        invariants(child, Level::Field, &here, errors);
    }
}

fn types(map: &Map<String, Value>, level: Level, at: &str, errors: &mut Vec<FieldError>) {
    let kind = kind(map);
    let here = format!("{at}.type");
    let embedded = flag(map, "x-kubernetes-embedded-resource");
    let int_or_string = flag(map, "x-kubernetes-int-or-string");
    let preserve = flag(map, "x-kubernetes-preserve-unknown-fields");
    if embedded && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(if kind.is_empty() {
            FieldError::required(here.clone(), detail)
        } else {
            FieldError::invalid(here.clone(), kind.into(), detail)
        });
    } else if kind.is_empty() && !int_or_string && !preserve {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(here.clone(), detail));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid(
            here.clone(),
            kind.into(),
            "must be object at the root",
        ));
    }
    if int_or_string && preserve {
        let path = format!("{at}.x-kubernetes-preserve-unknown-fields");
        errors.push(FieldError::invalid(
            path,
            true.into(),
            "must be false if x-kubernetes-int-or-string is true",
        ));
    }
    if int_or_string && embedded {
        let path = format!("{at}.x-kubernetes-embedded-resource");
        errors.push(FieldError::invalid(
            path,
            true.into(),
            "must be false if x-kubernetes-int-or-string is true",
        ));
    }
}

fn resource_fields(map: &Map<String, Value>, level: Level, at: &str, errors: &mut Vec<FieldError>) {
    let embedded = flag(map, "x-kubernetes-embedded-resource");
    let properties = map.get("properties").and_then(Value::as_object);
    if embedded && !flag(map, "x-kubernetes-preserve-unknown-fields") && properties.is_none_or(Map::is_empty) {
        errors.push(FieldError::required(
            format!("{at}.properties"),
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
        ));
    }
    let Some(properties) = properties else { return };
    if !(embedded || level == Level::Root) {
        return;
    }
    for (name, want) in [("kind", "string"), ("apiVersion", "string"), ("metadata", "object")] {
        let Some(Value::Object(child)) = properties.get(name) else {
            continue;
        };
        if kind(child) != want {
            let path = format!("{at}.properties[{name}].type");
            errors.push(FieldError::invalid(path, kind(child).into(), format!("must be {want}")));
        }
    }
    if level == Level::Root
        && let Some(Value::Object(metadata)) = properties.get("metadata")
    {
        let known = |name: &String| matches!(name.as_str(), "name" | "generateName");
        let fields_ok = metadata
            .get("properties")
            .and_then(Value::as_object)
            .is_none_or(|p| p.keys().all(known));
        let rest_ok = metadata
            .keys()
            .all(|k| matches!(k.as_str(), "type" | "properties" | "description" | "default"));
        if !fields_ok || !rest_ok {
            errors.push(FieldError::forbidden(
                format!("{at}.properties[metadata]"),
                "must not specify anything other than name and generateName, but metadata is implicitly specified",
            ));
        }
    }
}

/// The two forms in which int-or-string may repeat its types.
fn int_or_string_patterns(map: &Map<String, Value>) -> (bool, bool) {
    let is_pattern = |map: &Map<String, Value>| {
        let Some([a, b]) = map.get("anyOf").and_then(Value::as_array).map(Vec::as_slice) else {
            return false;
        };
        *a == serde_json::json!({"type": "integer"}) && *b == serde_json::json!({"type": "string"})
    };
    let first = map
        .get("allOf")
        .and_then(Value::as_array)
        .and_then(|all| all.first())
        .and_then(Value::as_object);
    (is_pattern(map), first.is_some_and(is_pattern))
}
