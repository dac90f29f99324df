//! The scale subresource.

use std::sync::Arc;

use http::Response;
use serde_json::{Value, json};

use crate::accept::View;
use crate::body::{self, ApiBody};
use crate::change::Mutation;
use crate::convert::served;
use crate::dispatch::Asked;
use crate::error::ApiError;
use crate::object::meta_value;
use crate::options::WriteOptions;
use crate::prepare::Part;
use crate::read;
use crate::resource::{Resource, ScalePaths};
use crate::selector::field_text;

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
    // As Kubernetes writes it: no replicas are wanted when nothing is said.
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

/// A selector as text; built-in kinds have it as an object.
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

/// Answers a request to the scale of an object.
pub(crate) async fn answer(
    asked: &Asked<'_>,
    resource: &Arc<Resource>,
    namespace: &str,
    name: &str,
) -> Result<Response<ApiBody>, ApiError> {
    let Some(paths) = &resource.scale else {
        return Err(ApiError::no_resource());
    };
    let record = read::find(asked.server, resource, namespace, name)?;
    let object = served(resource, &record)?;
    let current = of(&object, paths);
    let verb = asked.write_verb();
    let options = WriteOptions::parse(&asked.query, verb)?;
    let wanted = match asked.parts.method.as_str() {
        "GET" => return Ok(body::json(200, &current)),
        "PUT" => {
            let (scale, twice) = asked.object()?;
            Mutation::Replace(scale, twice)
        }
        "PATCH" => asked.patch(resource)?,
        other => return Err(ApiError::method_not_allowed(other)),
    };
    let mutation = Mutation::Scale(Box::new(wanted));
    let call = asked.call(resource, namespace, &options);
    let outcome = call.change(name, &mutation, Part::Scale).await?;
    let scale = of(&*outcome.object(resource)?, paths);
    if asked.view == View::Metadata {
        return Ok(body::json(200, &read::metadata_only(&scale)));
    }
    Ok(body::json(200, &scale))
}
