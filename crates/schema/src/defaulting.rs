//! Filling in defaults.

use serde_json::Value;

use crate::node::{Additional, Node, Schema};

/// Fills in defaults, in place, and replaces null by the default where null is not allowed.
///
/// A default applies only where the object around it exists, or is itself created by a default.
pub fn default(schema: &Schema, value: &mut Value) {
    fill(&schema.root, value);
}

/// Removes nulls of fields that are not nullable and have a default (so that [`default()`] then sets them).
pub fn drop_nulls(schema: &Schema, value: &mut Value) {
    strip(&schema.root, value);
}

fn fill(node: &Node, value: &mut Value) {
    if !node.has_defaults {
        return;
    }
    match value {
        Value::Object(map) => {
            for (name, below) in &node.properties {
                match map.get_mut(name) {
                    Some(child) => {
                        if child.is_null()
                            && !below.nullable
                            && let Some(default) = &below.default
                        {
                            *child = default.clone();
                        }
                        fill(below, child);
                    }
                    None => {
                        if let Some(default) = &below.default {
                            let mut child = default.clone();
                            fill(below, &mut child);
                            map.insert(name.clone(), child);
                        }
                    }
                }
            }
            if let Additional::Values(below) = &node.additional {
                for (name, child) in map.iter_mut() {
                    if !node.properties.contains_key(name) {
                        replace_null(below, child);
                        fill(below, child);
                    }
                }
            }
        }
        Value::Array(items) => {
            if let Some(below) = &node.items {
                for item in items {
                    replace_null(below, item);
                    fill(below, item);
                }
            }
        }
        _ => {}
    }
}

fn replace_null(node: &Node, value: &mut Value) {
    if value.is_null()
        && !node.nullable
        && let Some(default) = &node.default
    {
        *value = default.clone();
    }
}

fn strip(node: &Node, value: &mut Value) {
    if !node.has_defaults {
        return;
    }
    match value {
        Value::Object(map) => {
            map.retain(|name, child| {
                !(child.is_null()
                    && node
                        .field(name)
                        .is_some_and(|below| !below.nullable && below.default.is_some()))
            });
            for (name, child) in map.iter_mut() {
                if let Some(below) = node.field(name) {
                    strip(below, child);
                }
            }
        }
        Value::Array(items) => {
            if let Some(below) = &node.items {
                items.iter_mut().for_each(|item| strip(below, item));
            }
        }
        _ => {}
    }
}
