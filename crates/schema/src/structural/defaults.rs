//! Defaults are values of the schema they stand in.

use serde_json::Value;

use crate::error::FieldError;
use crate::node::{Additional, Node};
use crate::validation::validate_node;
use crate::{Kind, Path};

/// Checks that every default is a valid value of its own schema.
pub(crate) fn check_defaults(node: &Node, at: &str, errors: &mut Vec<FieldError>) {
    if !node.has_defaults && node.default.is_none() {
        return;
    }
    if let Some(default) = &node.default {
        let here = format!("{at}.default");
        if default.is_null() {
            if !node.nullable {
                errors.push(FieldError::invalid(here, Value::Null, "must not be null"));
            }
        } else {
            let start = errors.len();
            let mut found = Vec::new();
            validate_node(node, default, None, &Path::Root(&here), &mut found);
            errors.extend(found);
            if errors.len() == start {
                let mut unknown = Vec::new();
                crate::pruning::look(node, default, false, &Path::Root(&here), &mut unknown);
                if !unknown.is_empty() {
                    errors.push(FieldError::new(
                        here,
                        Kind::Invalid,
                        Some(default.clone()),
                        "must not have unknown fields",
                    ));
                }
            }
        }
    }
    for (name, child) in &node.properties {
        check_defaults(child, &format!("{at}.properties[{name}]"), errors);
    }
    if let Additional::Values(child) = &node.additional {
        check_defaults(child, &format!("{at}.additionalProperties"), errors);
    }
    if let Some(child) = &node.items {
        check_defaults(child, &format!("{at}.items"), errors);
    }
}
