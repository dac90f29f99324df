//! The OpenAPI document about the hooks, for extensions that are not written in Rust or Go.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::{Map, Value, json};
use windlass_api::core::{Cluster, Machine, MachineSet};
use windlass_api::crd::open_api_schema;
use windlass_api::schema::{generator, structural};

use crate::Message;
use crate::catalog::{CATALOG, DISCOVERED, Described, path};

pub(crate) fn cluster(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"$ref": "#/components/schemas/Cluster"})
}

pub(crate) fn machine(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"$ref": "#/components/schemas/Machine"})
}

pub(crate) fn machine_set(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"$ref": "#/components/schemas/MachineSet"})
}

/// The schema of a message. What an empty message has is what every message has.
pub(crate) fn schema<T: JsonSchema + Message + Serialize>() -> Value {
    let mut schema = generator().into_root_schema_for::<T>().to_value();
    structural(&mut schema);
    let empty = serde_json::to_value(T::default()).unwrap_or_default();
    require(&mut schema, &empty);
    schema
}

/// Marks the fields that are always written as required, and takes the defaults away: they are those of the decoder.
fn require(schema: &mut Value, empty: &Value) {
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    for (name, property) in properties.iter_mut() {
        if let Some(property) = property.as_object_mut() {
            property.remove("default");
        }
        require(property, &empty[name]);
    }
    let required: Vec<&String> = empty
        .as_object()
        .map(|fields| fields.keys().collect())
        .unwrap_or_default();
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
}

/// The document: one path per hook, and the schemas of all messages.
pub fn document() -> Value {
    let mut schemas = Map::new();
    let mut paths = Map::new();
    for (kind, schema) in [
        ("Cluster", open_api_schema::<Cluster>()),
        ("Machine", open_api_schema::<Machine>()),
        ("MachineSet", open_api_schema::<MachineSet>()),
    ] {
        schemas.insert(kind.to_owned(), schema);
    }
    for hook in CATALOG.iter().chain([&DISCOVERED]) {
        let [request, response] = (hook.schemas)();
        schemas.insert(format!("{}Request", hook.name), message(request));
        schemas.insert(format!("{}Response", hook.name), message(response));
        let is_single = std::ptr::eq(hook, &raw const DISCOVERED);
        let place = path(hook.name, if is_single { "" } else { "{name}" });
        paths.insert(place, json!({ "post": operation(hook, is_single) }));
    }
    json!({
        "openapi": "3.0.0",
        "info": {
            "title": "Cluster API - Runtime SDK",
            "description": "Extensions serve these paths over HTTPS, and Cluster API sends the requests.",
            "version": crate::VERSION,
        },
        "paths": paths,
        "components": { "schemas": schemas },
    })
}

/// Every message says its version and kind.
fn message(mut schema: Value) -> Value {
    let version = json!({"type": "string", "description": "The version of the hook."});
    let kind = json!({"type": "string", "description": "The kind of the message."});
    if let Some(node) = schema.as_object_mut() {
        let properties = node.entry("properties").or_insert_with(|| json!({}));
        properties["apiVersion"] = version;
        properties["kind"] = kind;
    }
    schema
}

fn operation(hook: &Described, is_single: bool) -> Value {
    let content = |what: &str| {
        let schema = format!("#/components/schemas/{}{what}", hook.name);
        json!({ "application/json": { "schema": { "$ref": schema } } })
    };
    let operation = format!("hooksRuntimeClusterV1alpha1{}", hook.name);
    let mut operation = json!({
        "operationId": operation,
        "tags": [hook.tag],
        "summary": hook.name,
        "description": hook.description,
        "requestBody": { "content": content("Request"), "required": true },
        "responses": { "200": { "description": "The answer.", "content": content("Response") } },
    });
    if !is_single {
        operation["parameters"] = json!([{
            "name": "name", "in": "path", "required": true, "schema": { "type": "string" },
            "description": "The name of the handler.",
        }]);
    }
    operation
}
