//! API objects within objects (`x-kubernetes-embedded-resource`).

use serde_json::{Map, Value};

use crate::node::{Additional, Node, Schema};
use crate::path::Path;

/// Calls `then` for every embedded API object within the value, with its path.
pub fn each_embedded(schema: &Schema, value: &Value, then: &mut dyn FnMut(&Path<'_>, &Map<String, Value>)) {
    if schema.root.has_embedded {
        walk(&schema.root, value, &Path::Root(""), then);
    }
}

/// [`each_embedded`] with mutable objects.
pub fn each_embedded_mut(schema: &Schema, value: &mut Value, then: &mut dyn FnMut(&mut Map<String, Value>)) {
    if schema.root.has_embedded {
        walk_mut(&schema.root, value, then);
    }
}

fn walk(node: &Node, value: &Value, path: &Path<'_>, then: &mut dyn FnMut(&Path<'_>, &Map<String, Value>)) {
    match value {
        Value::Object(map) => {
            if node.embedded_resource {
                then(path, map);
            }
            for (name, child) in map {
                if let Some(below) = node.properties.get(name) {
                    walk(below, child, &Path::Field(path, name), then);
                } else if let Additional::Values(below) = &node.additional {
                    walk(below, child, &Path::Key(path, name), then);
                }
            }
        }
        Value::Array(items) => {
            if let Some(below) = &node.items {
                for (index, item) in items.iter().enumerate() {
                    walk(below, item, &Path::Index(path, index), then);
                }
            }
        }
        _ => {}
    }
}

fn walk_mut(node: &Node, value: &mut Value, then: &mut dyn FnMut(&mut Map<String, Value>)) {
    match value {
        Value::Object(map) => {
            if node.embedded_resource {
                then(map);
            }
            for (name, child) in map.iter_mut() {
                if let Some(below) = node.field(name) {
                    walk_mut(below, child, then);
                }
            }
        }
        Value::Array(items) => {
            if let Some(below) = &node.items {
                for item in items.iter_mut() {
                    walk_mut(below, item, then);
                }
            }
        }
        _ => {}
    }
}
