//! What kube-apiserver demands of a schema when a CRD is created.

use serde_json::{Map, Value};

use crate::error::FieldError;
use crate::node::{Additional, Node};
use crate::parse::Dialect;
use crate::validation::validate_node;
use crate::{Kind, Path};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Keywords of JSON Schema that structural schemas may not use.
const FORBIDDEN: [&str; 5] = [
    "definitions",
    "dependencies",
    "deprecated",
    "patternProperties",
    "additionalItems",
];

/// Checks the JSON of a schema.
pub(crate) fn check(schema: &Value, dialect: Dialect, at: &str, errors: &mut Vec<FieldError>) {
    let Value::Object(map) = schema else { return };
    let start = errors.len();
    let level = if dialect == Dialect::Crd {
        Level::Root
    } else {
        Level::Field
    };
    invariants(map, level, at, errors);
    completeness(map, map, at, errors);
    if dialect == Dialect::Value {
        // Variables may ask for unique items: their values are small.
        errors.retain(|error| !error.path.ends_with(".uniqueItems"));
    }
    errors[start..].sort_by_cached_key(ToString::to_string);
    errors.dedup();
}

fn flag(map: &Map<String, Value>, name: &str) -> bool {
    map.get(name).and_then(Value::as_bool).unwrap_or(false)
}

fn kind(map: &Map<String, Value>) -> &str {
    map.get("type").and_then(Value::as_str).unwrap_or("")
}

fn invariants(map: &Map<String, Value>, level: Level, at: &str, errors: &mut Vec<FieldError>) {
    keywords(map, at, errors);
    let kind = kind(map);
    match map.get("items") {
        None if kind == "array" => errors.push(FieldError::required(format!("{at}.items"), "must be specified")),
        Some(Value::Object(items)) => invariants(items, Level::Item, &format!("{at}.items"), errors),
        Some(Value::Array(_)) => errors.push(FieldError::forbidden(
            format!("{at}.items"),
            "items must be a schema object and not an array",
        )),
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
    lists(map, at, errors);
}

fn keywords(map: &Map<String, Value>, at: &str, errors: &mut Vec<FieldError>) {
    for name in FORBIDDEN {
        if map.get(name).is_some_and(|v| !v.is_null() && *v != Value::Bool(false)) {
            errors.push(FieldError::forbidden(
                format!("{at}.{name}"),
                format!("{name} is not supported"),
            ));
        }
    }
    for name in ["id", "$ref"] {
        if map.contains_key(name) {
            errors.push(FieldError::forbidden(
                format!("{at}.{name}"),
                format!("{name} is not supported"),
            ));
        }
    }
    if flag(map, "uniqueItems") {
        errors.push(FieldError::forbidden(
            format!("{at}.uniqueItems"),
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ));
    }
}

fn additional_properties(map: &Map<String, Value>, level: Level, at: &str, errors: &mut Vec<FieldError>) {
    let Some(additional) = map.get("additionalProperties") else {
        return;
    };
    let here = format!("{at}.additionalProperties");
    if level == Level::Root {
        errors.push(FieldError::forbidden(here.clone(), "must not be used at the root"));
    }
    if map
        .get("properties")
        .and_then(Value::as_object)
        .is_some_and(|p| !p.is_empty())
    {
        errors.push(FieldError::forbidden(
            here.clone(),
            "additionalProperties and properties are mutual exclusive",
        ));
    }
    if flag(map, "x-kubernetes-embedded-resource") {
        errors.push(FieldError::forbidden(
            here.clone(),
            "must not be used if x-kubernetes-embedded-resource is set",
        ));
    }
    match additional {
        Value::Bool(false) => errors.push(FieldError::forbidden(
            here,
            "additionalProperties cannot be set to false",
        )),
        Value::Object(child) => invariants(child, Level::Field, &here, errors),
        _ => {}
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
    if level == Level::Root && flag(map, "nullable") {
        errors.push(FieldError::forbidden(
            format!("{at}.nullable"),
            "nullable cannot be true at the root",
        ));
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
    if map.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        let path = format!("{at}.x-kubernetes-preserve-unknown-fields");
        errors.push(FieldError::invalid(path, false.into(), "must be true or undefined"));
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

fn lists(map: &Map<String, Value>, at: &str, errors: &mut Vec<FieldError>) {
    let list_type = map.get("x-kubernetes-list-type").and_then(Value::as_str);
    let kind = kind(map);
    if let Some(list_type) = list_type {
        if kind != "array" {
            let path = format!("{at}.type");
            let detail = "must be array if x-kubernetes-list-type is specified";
            errors.push(if kind.is_empty() {
                FieldError::required(path, detail)
            } else {
                FieldError::invalid(path, kind.into(), detail)
            });
        }
        if list_type == "set" {
            set_items(map, at, errors);
        }
    }
    let map_type = map.get("x-kubernetes-map-type").and_then(Value::as_str);
    if map_type.is_some() && kind != "object" {
        let path = format!("{at}.type");
        let detail = "must be object if x-kubernetes-map-type is specified";
        errors.push(if kind.is_empty() {
            FieldError::required(path, detail)
        } else {
            FieldError::invalid(path, kind.into(), detail)
        });
    }
    let keys: Vec<&str> = map
        .get("x-kubernetes-list-map-keys")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let here = format!("{at}.x-kubernetes-list-map-keys");
    if list_type == Some("map") {
        if keys.is_empty() {
            errors.push(FieldError::required(
                here,
                "must not be empty if x-kubernetes-list-type is map",
            ));
        } else {
            map_items(map, &keys, at, errors);
        }
    } else if !keys.is_empty() {
        let path = format!("{at}.x-kubernetes-list-type");
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(match list_type {
            None => FieldError::required(path, detail),
            Some(other) => FieldError::invalid(path, other.into(), detail),
        });
    }
}

fn set_items(map: &Map<String, Value>, at: &str, errors: &mut Vec<FieldError>) {
    let Some(Value::Object(items)) = map.get("items") else {
        return;
    };
    if flag(items, "nullable") {
        errors.push(FieldError::forbidden(
            format!("{at}.items.nullable"),
            "cannot be nullable when x-kubernetes-list-type is set",
        ));
    }
    let here = |rest: &str| format!("{at}.items.{rest}");
    match kind(items) {
        "array"
            if items
                .get("x-kubernetes-list-type")
                .and_then(Value::as_str)
                .is_some_and(|t| t != "atomic") =>
        {
            errors.push(FieldError::invalid(
                here("x-kubernetes-list-type"),
                items["x-kubernetes-list-type"].clone(),
                "must be atomic as item of a list with x-kubernetes-list-type=set",
            ));
        }
        "object" if items.get("x-kubernetes-map-type").and_then(Value::as_str) != Some("atomic") => {
            errors.push(FieldError::invalid(
                here("x-kubernetes-map-type"),
                items.get("x-kubernetes-map-type").cloned().unwrap_or(Value::Null),
                "must be atomic as item of a list with x-kubernetes-list-type=set",
            ));
        }
        _ => {}
    }
}

fn map_items(map: &Map<String, Value>, keys: &[&str], at: &str, errors: &mut Vec<FieldError>) {
    let Some(Value::Object(items)) = map.get("items") else {
        return;
    };
    if kind(items) != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(
            format!("{at}.items.type"),
            kind(items).into(),
            detail,
        ));
    }
    if flag(items, "nullable") {
        errors.push(FieldError::forbidden(
            format!("{at}.items.nullable"),
            "cannot be nullable when x-kubernetes-list-type is map",
        ));
    }
    let empty = Map::new();
    let properties = items.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let required = |name: &str| {
        items
            .get("required")
            .and_then(Value::as_array)
            .is_some_and(|r| r.iter().any(|n| n == name))
    };
    let here = format!("{at}.x-kubernetes-list-map-keys");
    for (index, key) in keys.iter().enumerate() {
        if keys[..index].contains(key) {
            let detail = "must not contain duplicate entries";
            errors.push(FieldError::invalid(here.clone(), keys.into(), detail));
        }
        let Some(Value::Object(property)) = properties.get(*key) else {
            let detail = "entries must all be names of item properties";
            errors.push(FieldError::invalid(here.clone(), keys.into(), detail));
            continue;
        };
        let at = format!("{at}.items.properties[{key}]");
        if matches!(kind(property), "array" | "object") {
            let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
            errors.push(FieldError::invalid(format!("{at}.type"), kind(property).into(), detail));
        }
        if property.get("default").is_none_or(Value::is_null) && !required(key) {
            let detail =
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.push(FieldError::required(format!("{at}.default"), detail));
        }
        if flag(property, "nullable") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(format!("{at}.nullable"), detail));
        }
    }
}

/// The two shapes in which int-or-string may repeat its types.
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

fn value_validation(
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

/// Below a logical junctor only value validation may stand.
fn nested(map: &Map<String, Value>, skip_any: bool, at: &str, errors: &mut Vec<FieldError>) {
    keywords(map, at, errors);
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

/// Whatever a value validation talks about must also be described outside of it.
fn completeness(junctors: &Map<String, Value>, outside: &Map<String, Value>, at: &str, errors: &mut Vec<FieldError>) {
    for name in ["anyOf", "allOf", "oneOf"] {
        for (index, branch) in junctors
            .get(name)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .enumerate()
        {
            if let Value::Object(branch) = branch {
                described(branch, Some(outside), at, &format!("{at}.{name}[{index}]"), errors);
            }
        }
    }
    if let Some(Value::Object(not)) = junctors.get("not") {
        described(not, Some(outside), at, &format!("{at}.not"), errors);
    }
    if let Some(Value::Object(items)) = junctors.get("items") {
        completeness(items, items, &format!("{at}.items"), errors);
    }
    if let Some(Value::Object(properties)) = junctors.get("properties") {
        for (name, child) in properties {
            if let Value::Object(child) = child {
                completeness(child, child, &format!("{at}.properties[{name}]"), errors);
            }
        }
    }
    if let Some(Value::Object(child)) = junctors.get("additionalProperties") {
        completeness(child, child, &format!("{at}.additionalProperties"), errors);
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

/// Checks that every default is a valid value of its own schema.
pub(crate) fn check_defaults(node: &Node, at: &str, errors: &mut Vec<FieldError>) {
    if !node.has_defaults && node.default.is_none() {
        return;
    }
    if let Some(default) = &node.default {
        let here = format!("{at}.default");
        if default.is_null() {
            if !node.nullable {
                errors.push(FieldError::invalid(here, Value::Null, "must not be null"));
            }
        } else {
            let start = errors.len();
            let mut found = Vec::new();
            validate_node(node, default, None, &Path::Root(&here), &mut found);
            errors.extend(found);
            if errors.len() == start {
                let mut unknown = Vec::new();
                crate::pruning::look(node, default, false, &Path::Root(&here), &mut unknown);
                if !unknown.is_empty() {
                    errors.push(FieldError::new(
                        here,
                        Kind::Invalid,
                        Some(default.clone()),
                        "must not have unknown fields",
                    ));
                }
            }
        }
    }
    for (name, child) in &node.properties {
        check_defaults(child, &format!("{at}.properties[{name}]"), errors);
    }
    if let Additional::Values(child) = &node.additional {
        check_defaults(child, &format!("{at}.additionalProperties"), errors);
    }
    if let Some(child) = &node.items {
        check_defaults(child, &format!("{at}.items"), errors);
    }
}
