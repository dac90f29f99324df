//! What a list must say to be a set or a map.

use serde_json::{Map, Value};

use super::{flag, kind};
use crate::error::FieldError;

pub(super) fn lists(map: &Map<String, Value>, at: &str, errors: &mut Vec<FieldError>) {
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
