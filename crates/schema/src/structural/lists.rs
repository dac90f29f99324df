//! Checks of list types and map types.

use serde_json::{Map, Value};

use super::{flag, kind};
use crate::error::FieldError;

pub(super) fn lists(map: &Map<String, Value>, at: &str, errors: &mut Vec<FieldError>) {
    let text = |name: &str| map.get(name).and_then(Value::as_str);
    if let Some(map_type) = text("x-kubernetes-map-type") {
        if kind(map) != "object" {
            let words = "must be object if x-kubernetes-map-type is specified";
            errors.push(wrong_type(map, at, words));
        }
        if !matches!(map_type, "atomic" | "granular") {
            let allowed = ["atomic", "granular"].map(str::to_owned);
            let here = format!("{at}.x-kubernetes-map-type");
            errors.push(FieldError::not_supported(here, map_type.into(), &allowed));
        }
    }
    let list_type = text("x-kubernetes-list-type");
    if let Some(list_type) = list_type {
        if kind(map) != "array" {
            let words = "must be array if x-kubernetes-list-type is specified";
            errors.push(wrong_type(map, at, words));
        } else if list_type == "set" {
            set_items(map, at, errors);
        }
        if !matches!(list_type, "atomic" | "set" | "map") {
            let allowed = ["atomic", "set", "map"].map(str::to_owned);
            let here = format!("{at}.x-kubernetes-list-type");
            errors.push(FieldError::not_supported(here, list_type.into(), &allowed));
        }
    }
    let keys: Vec<&str> = map
        .get("x-kubernetes-list-map-keys")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if !keys.is_empty() && list_type != Some("map") {
        let path = format!("{at}.x-kubernetes-list-type");
        let words = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(match list_type {
            None => FieldError::required(path, words),
            Some(other) => FieldError::invalid(path, other.into(), words),
        });
    }
    if list_type == Some("map") {
        map_items(map, &keys, at, errors);
    }
    if let Some(list_type @ ("set" | "map")) = list_type
        && let Some(Value::Object(items)) = map.get("items")
    {
        if flag(items, "nullable") {
            errors.push(FieldError::forbidden(
                format!("{at}.items.nullable"),
                format!("cannot be nullable when x-kubernetes-list-type is {list_type}"),
            ));
        }
        if list_type == "map" {
            key_fields(items, &keys, at, errors);
        }
    }
}

fn wrong_type(map: &Map<String, Value>, at: &str, words: &str) -> FieldError {
    let path = format!("{at}.type");
    match kind(map) {
        "" => FieldError::required(path, words),
        other => FieldError::invalid(path, other.into(), words),
    }
}

fn set_items(map: &Map<String, Value>, at: &str, errors: &mut Vec<FieldError>) {
    let Some(Value::Object(items)) = map.get("items") else {
        return;
    };
    let text = |name: &str| items.get(name).and_then(Value::as_str);
    let words = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let (name, fine) = match kind(items) {
        "array" => {
            let name = "x-kubernetes-list-type";
            (name, text(name).is_none_or(|list_type| list_type == "atomic"))
        }
        "object" => {
            let name = "x-kubernetes-map-type";
            (name, text(name) == Some("atomic"))
        }
        _ => return,
    };
    if !fine {
        // The error always shows the list type.
        let shown = items.get("x-kubernetes-list-type").cloned().unwrap_or(Value::Null);
        errors.push(FieldError::invalid(format!("{at}.items.{name}"), shown, words));
    }
}

fn map_items(map: &Map<String, Value>, keys: &[&str], at: &str, errors: &mut Vec<FieldError>) {
    let here = format!("{at}.x-kubernetes-list-map-keys");
    if keys.is_empty() {
        let words = "must not be empty if x-kubernetes-list-type is map";
        errors.push(FieldError::required(here.clone(), words));
    }
    let Some(Value::Object(items)) = map.get("items") else {
        if !map.contains_key("items") {
            let words = "must have a schema if x-kubernetes-list-type is map";
            errors.push(FieldError::required(format!("{at}.items"), words));
        }
        return;
    };
    if kind(items) != "object" {
        let words = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(
            format!("{at}.items.type"),
            kind(items).into(),
            words,
        ));
        return;
    }
    for (index, key) in keys.iter().enumerate() {
        if let Some(Value::Object(property)) = items.get("properties").and_then(|properties| properties.get(*key)) {
            if matches!(kind(property), "array" | "object") {
                let words = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                let path = format!("{at}.items.properties[{key}].type");
                errors.push(FieldError::invalid(path, kind(items).into(), words));
            }
        } else {
            let words = "entries must all be names of item properties";
            errors.push(FieldError::invalid(here.clone(), keys.into(), words));
        }
        if keys[..index].contains(key) {
            let words = "must not contain duplicate entries";
            errors.push(FieldError::invalid(here.clone(), keys.into(), words));
        }
    }
}

/// Checks that key fields always have a value.
fn key_fields(items: &Map<String, Value>, keys: &[&str], at: &str, errors: &mut Vec<FieldError>) {
    let required = |name: &str| {
        items
            .get("required")
            .and_then(Value::as_array)
            .is_some_and(|names| names.iter().any(|n| n == name))
    };
    for key in keys {
        let Some(Value::Object(property)) = items.get("properties").and_then(|properties| properties.get(*key)) else {
            continue;
        };
        let at = format!("{at}.items.properties[{key}]");
        if property.get("default").is_none_or(Value::is_null) && !required(key) {
            let words =
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.push(FieldError::required(format!("{at}.default"), words));
        }
        if flag(property, "nullable") {
            let words = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(format!("{at}.nullable"), words));
        }
    }
}
