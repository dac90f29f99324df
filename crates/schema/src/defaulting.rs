//! Applies defaults.

use serde_json::Value;

use crate::node::{Node, Schema};

/// Applies defaults, in place.
///
/// A default applies only if the enclosing object exists, or is itself created by a default. A null that is not allowed is
/// replaced by the default, or dropped if there is none.
pub fn default(schema: &Schema, value: &mut Value) {
    fill(&schema.root, value, false);
}

/// [`default()`], but a null that is not allowed and has no default stays, for validation to find: server-side apply writes null
/// for emptied fields.
pub fn default_keeping_nulls(schema: &Schema, value: &mut Value) {
    fill(&schema.root, value, true);
}

/// Removes null values of fields that are neither nullable nor have a default, in place; [`default()`] includes this.
pub fn drop_nulls(schema: &Schema, value: &mut Value) {
    strip(&schema.root, value);
}

/// Whether a null is equivalent to an absent value here.
fn is_nothing(node: &Node, value: &Value) -> bool {
    value.is_null() && !node.nullable && node.default.is_none()
}

fn fill(node: &Node, value: &mut Value, keep_nulls: bool) {
    match value {
        Value::Object(map) => {
            map.retain(|name, child| match node.field(name) {
                None => true,
                Some(below) if !keep_nulls && is_nothing(below, child) => false,
                Some(below) => {
                    replace_null(below, child);
                    fill(below, child, keep_nulls);
                    true
                }
            });
            if node.has_defaults {
                for (name, below) in &node.properties {
                    if let Some(default) = &below.default
                        && !map.contains_key(name)
                    {
                        let mut child = default.clone();
                        fill(below, &mut child, keep_nulls);
                        map.insert(name.clone(), child);
                    }
                }
            }
        }
        Value::Array(items) => {
            if let Some(below) = &node.items {
                for item in items {
                    replace_null(below, item);
                    fill(below, item, keep_nulls);
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
    match value {
        Value::Object(map) => map.retain(|name, child| match node.field(name) {
            None => true,
            Some(below) if is_nothing(below, child) => false,
            Some(below) => {
                strip(below, child);
                true
            }
        }),
        Value::Array(items) => {
            if let Some(below) = &node.items {
                for item in items {
                    strip(below, item);
                }
            }
        }
        _ => {}
    }
}
