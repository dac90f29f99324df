//! The scale subresource: reads, validates and sets the numbers of an object. Pure.

use serde_json::{Value, json};
use windlass_schema::{FieldError, FieldErrors};

use crate::objects::resource::ScalePaths;
use windlass_objects::metadata::meta_value;
use windlass_objects::selector::field_text;

/// The scale of an object.
pub(crate) fn of(object: &Value, paths: &ScalePaths) -> Value {
    let number = |path: &str| field_text(object, path).parse::<i64>().unwrap_or(0);
    let mut status = json!({"replicas": number(&paths.status)});
    if let Some(path) = &paths.selector {
        let selector = selector_text(object, path);
        if !selector.is_empty() {
            status["selector"] = selector.into();
        }
    }
    let mut metadata = json!({});
    for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = meta_value(object, key) {
            metadata[key] = value.clone();
        }
    }
    // Unset replicas are 0, as in Kubernetes.
    let wanted = number(&paths.spec);
    let spec = if wanted == 0 {
        json!({})
    } else {
        json!({"replicas": wanted})
    };
    json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status,
    })
}

/// Errors in the numbers of an object's scale; `with_spec` includes those of the spec.
pub(crate) fn errors(paths: &ScalePaths, with_spec: bool, object: &Value, out: &mut FieldErrors) {
    let mut numbers = vec![&paths.status];
    if with_spec {
        numbers.insert(0, &paths.spec);
    }
    for path in numbers {
        let wrong = match nested(object, path) {
            Err(words) => Some((0, words)),
            Ok(None) => None,
            Ok(Some(Value::Number(n))) if n.is_i64() || n.is_u64() => {
                let n = n.as_i64().unwrap_or(i64::MAX);
                if n < 0 {
                    Some((n, "should be a non-negative integer".to_owned()))
                } else {
                    (n > i32::MAX.into()).then(|| (n, format!("should be less than or equal to {}", i32::MAX)))
                }
            }
            Ok(Some(other)) => Some((0, accessor(path, other, "int64"))),
        };
        if let Some((shown, words)) = wrong {
            out.push(FieldError::invalid(format!(".{path}"), shown.into(), words));
        }
    }
    if let Some(path) = &paths.selector {
        let wrong = match nested(object, path) {
            Err(words) => Some(words),
            Ok(None | Some(Value::String(_))) => None,
            Ok(Some(other)) => Some(accessor(path, other, "string")),
        };
        if let Some(words) = wrong {
            out.push(FieldError::invalid(format!(".{path}"), "".into(), words));
        }
    }
}

/// Whether an object has no value at a dotted path.
pub(crate) fn is_unset(object: &Value, path: &str) -> bool {
    matches!(nested(object, path), Ok(None))
}

/// The value at a dotted path, if it exists; an error text if a value on the path is not an object.
fn nested<'a>(object: &'a Value, path: &str) -> Result<Option<&'a Value>, String> {
    let mut at = object;
    let parts: Vec<&str> = path.split('.').collect();
    for (i, part) in parts.iter().enumerate() {
        if at.is_null() {
            return Ok(None);
        }
        let Value::Object(map) = at else {
            let there = parts[..i].join(".");
            return Err(accessor(&there, at, "map[string]interface{}"));
        };
        match map.get(*part) {
            None => return Ok(None),
            Some(found) => at = found,
        }
    }
    Ok(Some(at))
}

/// The error for a value of the wrong type.
fn accessor(path: &str, value: &Value, wanted: &str) -> String {
    let shown = match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let is = windlass_smd::go_type(value);
    format!(".{path} accessor error: {shown} is of the type {is}, expected {wanted}")
}

/// Sets the value at a dotted path.
pub(crate) fn set_path(object: &mut Value, path: &str, value: Value) {
    let mut at = object;
    for part in path.split('.') {
        if !at.is_object() {
            *at = Value::Object(serde_json::Map::new());
        }
        let Some(map) = at.as_object_mut() else {
            return;
        };
        at = map.entry(part).or_insert(Value::Null);
    }
    *at = value;
}

/// A selector as text; built-in kinds have an object.
fn selector_text(object: &Value, path: &str) -> String {
    let found = object.pointer(&format!("/{}", path.replace('.', "/")));
    match found {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Object(map)) => {
            let labels = map.get("matchLabels").and_then(Value::as_object);
            let parts = labels
                .into_iter()
                .flatten()
                .map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or("")));
            parts.collect::<Vec<_>>().join(",")
        }
        _ => String::new(),
    }
}
