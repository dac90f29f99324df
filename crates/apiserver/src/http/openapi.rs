//! OpenAPI v3 documents, one per group and version: enough for `kubectl explain` and for clients that validate.

use std::collections::BTreeSet;
use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Response};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::crds::registry::Custom;
use crate::error::ApiError;
use crate::http::body::{self, ApiBody};
use crate::http::documents;
use crate::http::request::Query;
use crate::objects::resource::{Resource, SchemaSource};
use crate::state::Inner;
use windlass_builtin_kinds::references;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

fn group_path(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("api/{version}")
    } else {
        format!("apis/{group}/{version}")
    }
}

/// `/openapi/v3`: the paths of the documents.
pub(crate) async fn index(server: &Inner) -> Response<ApiBody> {
    let found = documents::get(server, "/openapi/v3", false, |registry| Some(paths(registry).into())).await;
    found.map_or_else(nothing, |document| document.response("text/plain; charset=utf-8"))
}

fn paths(registry: &Custom) -> String {
    let mut paths = Map::new();
    let versions: BTreeSet<(&str, &str)> = registry
        .everything()
        .map(|r| (r.group.as_str(), r.version.as_str()))
        .collect();
    for (group, version) in versions {
        let path = group_path(group, version);
        let hash = hash(registry, group, version);
        paths.insert(
            path.clone(),
            json!({"serverRelativeURL": format!("/openapi/v3/{path}?hash={hash}")}),
        );
    }
    json!({"paths": paths}).to_string()
}

/// A hash that changes with the document, without building the document.
fn hash(registry: &Custom, group: &str, version: &str) -> String {
    let mut hasher = Sha256::new();
    hasher.update(env!("CARGO_PKG_VERSION"));
    for resource in of_version(registry, group, version) {
        hasher.update(resource.plural.as_bytes());
        if let Some(raw) = &resource.raw_schema {
            hasher.update(raw.to_string().as_bytes());
        }
    }
    hasher.finalize().iter().fold(String::new(), |mut out, b| {
        use std::fmt::Write as _;
        let _ = write!(out, "{b:02X}");
        out
    })
}

fn of_version<'a>(registry: &'a Custom, group: &'a str, version: &'a str) -> impl Iterator<Item = &'a Arc<Resource>> {
    registry
        .everything()
        .filter(move |r| r.group == group && r.version == version)
}

/// A document.
pub(crate) async fn document(
    server: &Inner,
    path: &str,
    headers: &HeaderMap,
    query: Option<&str>,
) -> Result<Response<ApiBody>, ApiError> {
    let parts: Vec<&str> = path.trim_end_matches('/').split('/').collect();
    let (group, version) = match parts.as_slice() {
        ["api", version] => ("", *version),
        ["apis", group, version] => (*group, *version),
        _ => return Ok(nothing()),
    };
    let name = format!("/openapi/v3/{}", group_path(group, version));
    let build_it = |registry: &Custom| build(server, registry, group, version);
    let Some(document) = documents::get(server, &name, false, build_it).await else {
        return Ok(nothing());
    };
    let mut response = document.tagged("application/json", headers);
    let asked = Query::parse(query.unwrap_or(""));
    let Some(theirs) = asked.get("hash") else {
        return Ok(response);
    };
    let hash_it = |registry: &Custom| Some(hash(registry, group, version).into());
    let now = documents::get(server, &format!("{name} hash"), false, hash_it).await;
    let now = now.as_ref().map_or(&[][..], |hash| hash.bytes());
    if theirs.as_bytes() != now {
        // The hash is outdated: a client that caches documents by hash must not store this one under it.
        response = body::with_type(301, "application/json", Vec::new());
        let place = [b"/openapi/v3/", path.as_bytes(), b"?hash=", now].concat();
        let place = HeaderValue::from_bytes(&place).map_err(ApiError::internal)?;
        response.headers_mut().insert(http::header::LOCATION, place);
        return Ok(response);
    }
    let for_ever = HeaderValue::from_static("public, immutable");
    response.headers_mut().insert(http::header::CACHE_CONTROL, for_ever);
    Ok(response)
}

/// The document of a group and version, if there are resources in it.
fn build(server: &Inner, registry: &Custom, group: &str, version: &str) -> Option<Vec<u8>> {
    let resources: Vec<&Resource> = of_version(registry, group, version).map(AsRef::as_ref).collect();
    if resources.is_empty() {
        return None;
    }
    let (names, schemas) = schemas(&resources);
    let mut paths = Map::new();
    for (resource, name) in resources.iter().zip(&names) {
        add_paths(resource, name, &mut paths);
    }
    let document = json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": *server.kubernetes_version.read()},
        "paths": paths,
        "components": {"schemas": schemas},
    });
    serde_json::to_vec(&document).ok()
}

fn nothing() -> Response<ApiBody> {
    let mut response = Response::new(ApiBody::whole(Vec::new()));
    *response.status_mut() = http::StatusCode::NOT_FOUND;
    response
}

/// The schemas of resources with all that they refer to, and the schema name of each resource.
pub(crate) fn schemas(resources: &[&Resource]) -> (Vec<String>, Map<String, Value>) {
    let mut schemas = Map::new();
    let names = resources
        .iter()
        .map(|resource| add_schemas(resource, &mut schemas))
        .collect();
    add_referenced(&mut schemas);
    (names, schemas)
}

fn gvk(resource: &Resource, kind: &str) -> Value {
    json!([{"group": resource.group, "version": resource.version, "kind": kind}])
}

/// The name of a custom kind's schema: the group's parts reversed, as Kubernetes does.
fn type_name(resource: &Resource) -> String {
    match &resource.schema {
        SchemaSource::BuiltIn(kind, _) => kind.type_name(),
        SchemaSource::Custom(_) => {
            let mut parts: Vec<&str> = resource.group.split('.').collect();
            parts.reverse();
            format!("{}.{}.{}", parts.join("."), resource.version, resource.kind)
        }
    }
}

fn add_schemas(resource: &Resource, schemas: &mut Map<String, Value>) -> String {
    let name = type_name(resource);
    let mut schema = match &resource.raw_schema {
        Some(raw) => custom_schema(raw),
        None => windlass_builtin_kinds::definition(&name).unwrap_or_else(|| json!({"type": "object"})),
    };
    schema["x-kubernetes-group-version-kind"] = gvk(resource, &resource.kind);
    schemas.insert(name.clone(), schema);
    schemas.insert(
        format!("{name}List"),
        json!({
            "type": "object", "description": format!("{} is a list of {}", resource.list_kind, resource.kind),
            "required": ["items"],
            "properties": {
                "apiVersion": {"type": "string"}, "kind": {"type": "string"},
                "metadata": reference(&format!("{META}ListMeta")),
                "items": {"type": "array", "items": reference(&name)},
            },
            "x-kubernetes-group-version-kind": gvk(resource, &resource.list_kind),
        }),
    );
    name
}

fn reference(name: &str) -> Value {
    json!({"allOf": [{"$ref": format!("#/components/schemas/{name}")}], "default": {}})
}

/// The schema of a definition with the fields of every object.
fn custom_schema(raw: &Value) -> Value {
    let mut schema = raw.clone();
    if !schema["properties"].is_object() {
        schema["properties"] = json!({});
    }
    let words = [
        (
            "apiVersion",
            "APIVersion defines the versioned schema of this representation of an object.",
        ),
        (
            "kind",
            "Kind is a string value representing the REST resource this object represents.",
        ),
    ];
    for (key, description) in words {
        if schema["properties"].get(key).is_none() {
            schema["properties"][key] = json!({"type": "string", "description": description});
        }
    }
    schema["properties"]["metadata"] = json!({
        "description": "Standard object's metadata.",
        "allOf": [{"$ref": format!("#/components/schemas/{META}ObjectMeta")}],
    });
    schema
}

fn add_referenced(schemas: &mut Map<String, Value>) {
    let mut queue: Vec<String> = Vec::new();
    for schema in schemas.values() {
        references(schema, &mut queue);
    }
    while let Some(name) = queue.pop() {
        if schemas.contains_key(&name) {
            continue;
        }
        let schema = windlass_builtin_kinds::definition(&name).unwrap_or_else(|| json!({"type": "object"}));
        references(&schema, &mut queue);
        schemas.insert(name, schema);
    }
}

/// The kind of a resource's operations.
pub(crate) fn kind(resource: &Resource) -> Value {
    json!({"group": resource.group, "version": resource.version, "kind": resource.kind})
}

/// The path of a resource's collection, with the namespace as a parameter.
pub(crate) fn collection_path(resource: &Resource) -> String {
    let base = group_path(&resource.group, &resource.version);
    let namespace = if resource.namespaced {
        "namespaces/{namespace}/"
    } else {
        ""
    };
    format!("/{base}/{namespace}{}", resource.plural)
}

fn add_paths(resource: &Resource, name: &str, paths: &mut Map<String, Value>) {
    let collection = collection_path(resource);
    let kind = kind(resource);
    let operation = |action: &str| {
        json!({
            "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": {"$ref": format!("#/components/schemas/{name}")}}}}},
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": kind,
        })
    };
    let with_validation = |action: &str| {
        let mut op = operation(action);
        op["parameters"] = json!([
            {"name": "dryRun", "in": "query", "schema": {"type": "string", "uniqueItems": true}},
            {"name": "fieldManager", "in": "query", "schema": {"type": "string", "uniqueItems": true}},
            {"name": "fieldValidation", "in": "query", "schema": {"type": "string", "uniqueItems": true}},
        ]);
        op
    };
    paths.insert(
        collection.clone(),
        json!({"get": operation("list"), "post": with_validation("post"), "delete": operation("deletecollection")}),
    );
    paths.insert(
        format!("{collection}/{{name}}"),
        json!({"get": operation("get"), "put": with_validation("put"), "patch": with_validation("patch"), "delete": operation("delete")}),
    );
}
