//! Drops or lists fields that are not in a schema.

use serde_json::Value;

use crate::node::{Additional, Node, Schema};
use crate::path::Path;
use crate::strict::StrictErrors;

/// Removes every field that the schema does not describe, in place.
///
/// Keeps apiVersion, kind and metadata of API objects (also embedded ones), and everything below
/// `x-kubernetes-preserve-unknown-fields` except what the schema describes and prunes itself.
pub fn prune(schema: &Schema, value: &mut Value) {
    walk(&schema.root, value, schema.resource);
}

/// The paths of the fields that [`prune`] would remove, in document order of sorted keys, as many as [`StrictErrors`] takes.
///
/// Strict field validation reports each as `unknown field "spec.foo"`.
pub fn unknown_fields(schema: &Schema, value: &Value) -> Vec<String> {
    let mut found = StrictErrors::default();
    look(&schema.root, value, schema.resource, &Path::Root(""), &mut found);
    found.into_vec()
}

fn is_resource_field(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

fn walk(node: &Node, value: &mut Value, resource: bool) {
    let resource = resource || node.embedded_resource;
    match value {
        Value::Object(map) => {
            if !node.preserve_unknown && matches!(node.additional, Additional::Unset) {
                map.retain(|name, _| node.properties.contains_key(name) || (resource && is_resource_field(name)));
            }
            for (name, child) in map.iter_mut() {
                if resource && is_resource_field(name) {
                    continue;
                }
                match node.field(name) {
                    Some(below) => walk(below, child, false),
                    // Any value is allowed, but no fields are described.
                    None if matches!(node.additional, Additional::Any) => empty(child),
                    None => {}
                }
            }
        }
        Value::Array(items) => {
            if let Some(below) = &node.items {
                for item in items {
                    walk(below, item, false);
                }
            }
        }
        _ => {}
    }
}

pub(crate) fn look(node: &Node, value: &Value, resource: bool, path: &Path<'_>, found: &mut StrictErrors) {
    if found.is_full() {
        return;
    }
    let resource = resource || node.embedded_resource;
    match value {
        Value::Object(map) => {
            for (name, child) in map {
                if resource && is_resource_field(name) {
                    continue;
                }
                let here = Path::Field(path, name);
                match node.field(name) {
                    Some(below) => look(below, child, false, &here, found),
                    None if matches!(node.additional, Additional::Any) => {
                        look_below_any(child, &here, found);
                    }
                    None if node.preserve_unknown => {}
                    None => found.push(&here),
                }
            }
        }
        Value::Array(items) => {
            if let Some(below) = &node.items {
                for (index, item) in items.iter().enumerate() {
                    look(below, item, false, &Path::Index(path, index), found);
                }
            }
        }
        _ => {}
    }
}

/// Removes all fields of all objects in a value without a description.
fn empty(value: &mut Value) {
    match value {
        Value::Object(map) => map.clear(),
        Value::Array(items) => items.iter_mut().for_each(empty),
        _ => {}
    }
}

fn look_below_any(value: &Value, path: &Path<'_>, found: &mut StrictErrors) {
    match value {
        Value::Object(map) => {
            for name in map.keys() {
                found.push(&Path::Field(path, name));
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                look_below_any(item, &Path::Index(path, index), found);
            }
        }
        _ => {}
    }
}
