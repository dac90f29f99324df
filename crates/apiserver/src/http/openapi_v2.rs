//! The OpenAPI v2 document of all kinds, which clients before Kubernetes 1.27 use to validate and to explain. They accept it only
//! in protobuf.

mod protobuf;

use http::HeaderMap;
use serde_json::{Map, Value, json};

use crate::crds::registry::Custom;
use crate::error::ApiError;
use crate::http::context::Answer;
use crate::http::documents;
use crate::http::openapi;
use crate::objects::resource::Resource;
use crate::state::Inner;

/// Clients ask with an `@` before the version, which is not valid in a media type.
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// `/openapi/v2`, in the encoding that the client accepts.
pub(crate) async fn answer(server: &Inner, headers: &HeaderMap) -> Answer {
    let protobuf = |registry: &Custom| Some(protobuf::encode(&document(server, registry)));
    let json = |registry: &Custom| serde_json::to_vec(&document(server, registry)).ok();
    let (found, media_type) = if wants_protobuf(headers) {
        let found = documents::get(server, "/openapi/v2 protobuf", false, protobuf).await;
        (found, PROTOBUF)
    } else {
        let found = documents::get(server, "/openapi/v2", false, json).await;
        (found, "application/json")
    };
    let document = found.ok_or_else(ApiError::no_page)?;
    Ok(document.tagged(media_type, headers))
}

fn wants_protobuf(headers: &HeaderMap) -> bool {
    headers
        .get_all(http::header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.starts_with("application/com.github.") && value.contains("+protobuf"))
}

fn document(server: &Inner, registry: &Custom) -> Value {
    let resources: Vec<&Resource> = registry.everything().map(AsRef::as_ref).collect();
    let (names, schemas) = openapi::schemas(&resources);
    let mut paths = Map::new();
    for (resource, name) in resources.iter().zip(&names) {
        add_paths(resource, name, &mut paths);
    }
    let definitions: Map<String, Value> = schemas.into_iter().map(|(name, s)| (name, convert(s))).collect();
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": *server.kubernetes_version.read()},
        "paths": paths,
        "definitions": definitions,
    })
}

fn add_paths(resource: &Resource, name: &str, paths: &mut Map<String, Value>) {
    let collection = openapi::collection_path(resource);
    let operation = |action: &str, parameters: &[&str]| {
        let parameters: Vec<Value> = parameters
            .iter()
            .map(|name| json!({"name": name, "in": "query", "type": "string", "uniqueItems": true}))
            .collect();
        json!({
            "parameters": parameters,
            "responses": {"200": {"description": "OK", "schema": {"$ref": format!("#/definitions/{name}")}}},
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": openapi::kind(resource),
        })
    };
    let write = &["dryRun", "fieldManager", "fieldValidation"];
    paths.insert(
        collection.clone(),
        json!({"get": operation("list", &[]), "post": operation("post", write), "delete": operation("deletecollection", &["dryRun"])}),
    );
    paths.insert(
        format!("{collection}/{{name}}"),
        json!({
            "get": operation("get", &[]), "put": operation("put", write), "patch": operation("patch", write),
            "delete": operation("delete", &["dryRun"]),
        }),
    );
}

/// The form of a schema in version 2. It has no alternatives: a value of several types has no type there, so that clients accept
/// any.
fn convert(schema: Value) -> Value {
    let Value::Object(mut map) = schema else {
        // `true` means any value.
        return json!({});
    };
    if let Some(Value::Array(all)) = map.remove("allOf")
        && let [only] = all.as_slice()
        && let Some(reference) = only.get("$ref")
    {
        map.insert("$ref".to_owned(), reference.clone());
    }
    // Numbers and quantities that may also be texts are texts in version 2.
    if let Some(Value::Array(forms)) = map.get("oneOf")
        && !map.contains_key("type")
        && forms
            .iter()
            .all(|f| f.as_object().is_some_and(|f| f.len() == 1 && f.contains_key("type")))
    {
        map.insert("type".to_owned(), "string".into());
    }
    let is_set = |key: &str| map.get(key).and_then(Value::as_bool) == Some(true);
    let is_any =
        is_set("x-kubernetes-int-or-string") || is_set("x-kubernetes-preserve-unknown-fields") || is_set("nullable");
    if is_any {
        for key in [
            "type",
            "format",
            "properties",
            "items",
            "additionalProperties",
            "required",
        ] {
            map.remove(key);
        }
    }
    for key in ["anyOf", "oneOf", "not", "nullable", "x-kubernetes-validations"] {
        map.remove(key);
    }
    if let Some(Value::String(reference)) = map.get_mut("$ref") {
        *reference = reference.replace("#/components/schemas/", "#/definitions/");
    }
    if let Some(Value::Object(properties)) = map.get_mut("properties") {
        for property in properties.values_mut() {
            *property = convert(property.take());
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = map.get_mut(key)
            && inner.is_object()
        {
            *inner = convert(inner.take());
        }
    }
    if map.get("type").and_then(Value::as_str) == Some("array") {
        map.entry("items").or_insert_with(|| json!({}));
    }
    Value::Object(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_version_2_does_not_know_becomes_anything() {
        let check = |schema: Value, expect: Value| assert_eq!(convert(schema), expect);
        check(
            json!({"description": "d", "allOf": [{"$ref": "#/components/schemas/a.B"}], "default": {}}),
            json!({"description": "d", "$ref": "#/definitions/a.B", "default": {}}),
        );
        check(
            json!({"anyOf": [{"type": "string"}], "x-kubernetes-int-or-string": true}),
            json!({"x-kubernetes-int-or-string": true}),
        );
        check(json!({"type": "string", "nullable": true}), json!({}));
        check(
            json!({"type": "object", "properties": {"a": {"type": "array"}}, "x-kubernetes-validations": []}),
            json!({"type": "object", "properties": {"a": {"type": "array", "items": {}}}}),
        );
        check(
            json!({"type": "object", "additionalProperties": {"oneOf": [], "type": "integer"}}),
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
        );
        check(
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {}}),
            json!({"x-kubernetes-preserve-unknown-fields": true}),
        );
    }
}
