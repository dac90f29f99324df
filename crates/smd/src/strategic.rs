//! Strategic merge patch, for built-in kinds.

use serde_json::{Map, Value};
use windlass_schema::{ListType, Node, Schema};

use crate::builtin;
use crate::error::PatchError;
use crate::strategic_lists as lists;

const DIRECTIVE: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
const ORDER: &str = "$setElementOrder/";

/// Applies a strategic merge patch in place.
///
/// Merge keys come from the schema (`x-kubernetes-patch-*`, list types); what it does not describe merges by the usual
/// keys of fields of that name. If it fails, the target is left half-patched: work on a copy.
pub fn strategic_merge_patch(schema: Option<&Schema>, target: &mut Value, patch: &Value) -> Result<(), PatchError> {
    let Value::Object(fields) = patch else {
        return Err(PatchError::BadPatch(
            "a strategic merge patch must be an object".to_owned(),
        ));
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    if let Value::Object(map) = target {
        merge_map(schema.map(Schema::root), map, fields)?;
    }
    Ok(())
}

/// How a list merges.
pub(crate) enum Strategy {
    Replace,
    /// Scalars: union.
    Scalars,
    /// Objects, by this key.
    Keyed(String),
}

pub(crate) fn field<'a>(node: Option<&'a Node>, name: &str) -> Option<&'a Node> {
    node.and_then(|node| node.field(name))
}

fn strategy(node: Option<&Node>, name: &str, items: &[Value], beside: impl Fn(&str) -> bool) -> Strategy {
    if let Some(hint) = node.and_then(|node| node.patch.as_deref()) {
        return match (&hint.merge_key, hint.merge) {
            (_, false) => Strategy::Replace,
            (Some(key), true) => Strategy::Keyed(key.clone()),
            (None, true) => Strategy::Scalars,
        };
    }
    if let Some(node) = node {
        return match (node.list_type, node.list_map_keys.first()) {
            (ListType::Set, _) if items.iter().all(|item| !item.is_object()) => Strategy::Scalars,
            (ListType::Map, Some(key)) => Strategy::Keyed(key.clone()),
            _ => Strategy::Replace,
        };
    }
    match builtin::merge_key(name, items, beside) {
        Some("") => Strategy::Scalars,
        Some(key) => Strategy::Keyed(key.to_owned()),
        None => Strategy::Replace,
    }
}

fn is_special(name: &str) -> bool {
    name == DIRECTIVE || name == RETAIN || name.starts_with(DELETE_FROM) || name.starts_with(ORDER)
}

/// Copies a patch value without the directives in it.
pub(crate) fn without_directives(value: &Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter()
                .filter(|(name, v)| !is_special(name) && !v.is_null())
                .map(|(name, v)| (name.clone(), without_directives(v)))
                .collect(),
        ),
        Value::Array(items) => Value::Array(
            items
                .iter()
                .filter(|item| item.get(DIRECTIVE).and_then(Value::as_str).is_none_or(|d| d == "merge"))
                .map(without_directives)
                .collect(),
        ),
        other => other.clone(),
    }
}

pub(crate) fn merge_map(
    node: Option<&Node>,
    target: &mut Map<String, Value>,
    patch: &Map<String, Value>,
) -> Result<(), PatchError> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        match directive.as_str() {
            Some("replace") => {
                *target = patch
                    .iter()
                    .filter(|(name, _)| *name != DIRECTIVE)
                    .map(|(n, v)| (n.clone(), v.clone()))
                    .collect();
                return Ok(());
            }
            Some("delete") => {
                target.clear();
                return Ok(());
            }
            Some("merge") => {}
            _ => {
                return Err(PatchError::BadPatch(format!("Unknown patch type found: {directive}")));
            }
        }
    }
    if let Some(keys) = patch.get(RETAIN) {
        retain_keys(target, patch, keys)?;
    }
    for (name, value) in patch {
        if let Some(list) = name.strip_prefix(DELETE_FROM) {
            let Value::Array(gone) = value else {
                return Err(PatchError::BadPatch(format!("{name} must be a list")));
            };
            if let Some(Value::Array(items)) = target.get_mut(list) {
                items.retain(|item| !gone.contains(item));
            }
        }
    }
    for (name, order) in patch {
        let Some(list) = name.strip_prefix(ORDER) else {
            continue;
        };
        let beside = |other: &str| target.contains_key(other);
        let Some(Value::Array(items)) = target.get(list) else {
            continue;
        };
        if patch.contains_key(list) {
            continue;
        }
        let strategy = strategy(field(node, list), list, items, beside);
        if let Some(Value::Array(items)) = target.get_mut(list) {
            lists::reorder(items, &[], order, &strategy)?;
        }
    }
    for (name, value) in patch {
        if is_special(name) {
            continue;
        }
        if value.is_null() {
            target.remove(name);
            continue;
        }
        merge_field(node, target, patch, name, value)?;
    }
    Ok(())
}

fn retain_keys(target: &mut Map<String, Value>, patch: &Map<String, Value>, keys: &Value) -> Result<(), PatchError> {
    let Value::Array(keys) = keys else {
        return Err(PatchError::BadPatch("$retainKeys must be a list".to_owned()));
    };
    let kept = |name: &String| keys.iter().any(|key| key == name);
    if let Some(stray) = patch
        .iter()
        .find(|(name, v)| !is_special(name) && !v.is_null() && !kept(name))
    {
        return Err(PatchError::BadPatch(format!(
            "{:?} is in the patch but not in $retainKeys",
            stray.0
        )));
    }
    target.retain(|name, _| kept(name));
    Ok(())
}

fn merge_field(
    node: Option<&Node>,
    target: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    name: &str,
    value: &Value,
) -> Result<(), PatchError> {
    let below = field(node, name);
    let strategy = match (target.get(name), value) {
        (Some(Value::Array(there)), Value::Array(items)) => {
            let items = if items.is_empty() { there } else { items };
            strategy(below, name, items, |other| target.contains_key(other))
        }
        _ => Strategy::Replace,
    };
    match (target.get_mut(name), value) {
        (Some(Value::Object(there)), Value::Object(fields)) => {
            let replaced = below
                .and_then(|n| n.patch.as_deref())
                .is_some_and(|hint| !hint.merge && !hint.retain_keys);
            if replaced {
                target.insert(name.to_owned(), without_directives(value));
                return Ok(());
            }
            merge_map(below, there, fields)
        }
        (Some(Value::Array(there)), Value::Array(items)) => {
            let order = patch.get(&format!("{ORDER}{name}"));
            lists::merge(below.and_then(|n| n.items.as_deref()), there, items, order, &strategy)
        }
        _ => {
            target.insert(name.to_owned(), without_directives(value));
            Ok(())
        }
    }
}
