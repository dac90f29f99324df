//! Strategic merge patch, for built-in kinds.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Map, Value};
use windlass_schema::{ListType, Node, Schema};

use crate::builtin;
use crate::error::PatchError;
use crate::strategic_lists as lists;
use crate::typed::{go_text, go_type};

pub(crate) const DIRECTIVE: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
const ORDER: &str = "$setElementOrder";

/// Applies a strategic merge patch in place.
///
/// Merge keys come from the schema (`x-kubernetes-patch-*`, list types). Fields that it does not describe merge by the usual keys
/// of their name. If the patch fails, the target is half patched: work on a copy.
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

impl Strategy {
    /// The key of the items; empty for scalars.
    pub(crate) fn key(&self) -> &str {
        match self {
            Self::Keyed(key) => key,
            Self::Replace | Self::Scalars => "",
        }
    }
}

pub(crate) fn field<'a>(node: Option<&'a Node>, name: &str) -> Option<&'a Node> {
    node.and_then(|node| node.field(name))
}

fn strategy(node: Option<&Node>, name: &str, items: &[Value], beside: &Map<String, Value>) -> Strategy {
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
    match builtin::merge_key(name, items, |other| beside.contains_key(other)) {
        Some("") => Strategy::Scalars,
        Some(key) => Strategy::Keyed(key.to_owned()),
        None => Strategy::Replace,
    }
}

/// A patch value without a counterpart: without nulls and directives.
pub(crate) fn fresh(value: &Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => Some(Value::Object(
            map.iter()
                .filter(|(_, v)| !v.is_null())
                .filter_map(|(name, v)| Some((name.clone(), fresh(v)?)))
                .collect(),
        )),
        Value::Array(items) => Some(Value::Array(items.iter().filter_map(fresh).collect())),
        other => Some(other.clone()),
    }
}

/// The field name after a directive: `$setElementOrder/containers`.
fn behind<'n>(name: &'n str, directive: &str) -> Option<&'n str> {
    name.strip_prefix(directive)?.strip_prefix('/')
}

pub(crate) fn merge_map(
    node: Option<&Node>,
    target: &mut Map<String, Value>,
    patch: &Map<String, Value>,
) -> Result<(), PatchError> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        return directed(directive, target, patch);
    }
    if let Some(keys) = patch.get(RETAIN) {
        retain_keys(target, patch, keys)?;
    }
    let ordered = in_order(node, target, patch)?;
    for (name, value) in patch {
        if name == RETAIN || name.starts_with(ORDER) || ordered.contains(name.as_str()) {
            continue;
        }
        if name.starts_with(DELETE_FROM) {
            let list = behind(name, DELETE_FROM)
                .ok_or_else(|| PatchError::BadPatch("invalid patch format of primitive list".to_owned()))?;
            if value.is_null() {
                target.remove(list);
            } else if let (Some(Value::Array(items)), Value::Array(gone)) = (target.get_mut(list), value) {
                let gone: HashSet<&Value> = gone.iter().collect();
                items.retain(|item| !gone.contains(item));
            }
            continue;
        }
        merge_field(node, target, name, value)?;
    }
    Ok(())
}

fn directed(directive: &Value, target: &mut Map<String, Value>, patch: &Map<String, Value>) -> Result<(), PatchError> {
    match directive.as_str() {
        Some("replace") => {
            *target = patch
                .iter()
                .filter(|(name, _)| *name != DIRECTIVE)
                .map(|(n, v)| (n.clone(), v.clone()))
                .collect();
            Ok(())
        }
        Some("delete") => {
            target.clear();
            Ok(())
        }
        _ => Err(unknown_directive(directive, patch)),
    }
}

pub(crate) fn unknown_directive(directive: &Value, patch: &Map<String, Value>) -> PatchError {
    PatchError::Unnamed(format!(
        "unknown patch type: {} in map: {}",
        go_text(directive),
        go_text(&Value::Object(patch.clone()))
    ))
}

fn retain_keys(target: &mut Map<String, Value>, patch: &Map<String, Value>, keys: &Value) -> Result<(), PatchError> {
    let bad = || PatchError::BadPatch("invalid patch format of retainKeys".to_owned());
    let Value::Array(keys) = keys else {
        return Err(bad());
    };
    let keys: HashSet<&str> = keys.iter().filter_map(Value::as_str).collect();
    let kept = |name: &String| keys.contains(name.as_str());
    let counts = |name: &str, value: &Value| {
        !(value.is_null() || name == RETAIN || name.starts_with(DELETE_FROM) || name.starts_with(ORDER))
    };
    if patch.iter().any(|(name, value)| counts(name, value) && !kept(name)) {
        return Err(bad());
    }
    target.retain(|name, _| kept(name));
    Ok(())
}

/// Merges the lists with an order directive. Returns their names.
fn in_order<'p>(
    node: Option<&Node>,
    target: &mut Map<String, Value>,
    patch: &'p Map<String, Value>,
) -> Result<BTreeSet<&'p str>, PatchError> {
    let mut done = BTreeSet::new();
    for (name, order) in patch {
        if !name.starts_with(ORDER) {
            continue;
        }
        let Value::Array(order) = order else {
            return Err(bad_type("[]interface {}", order));
        };
        let list = behind(name, ORDER)
            .ok_or_else(|| PatchError::BadPatch("invalid patch format of setElementOrder list".to_owned()))?;
        let there = match target.get(list) {
            None => None,
            Some(Value::Array(items)) => Some(items.clone()),
            Some(other) => return Err(bad_type("[]interface {}", other)),
        };
        let given = match patch.get(list) {
            None => None,
            Some(Value::Array(items)) => Some(items.as_slice()),
            Some(other) => return Err(bad_type("[]interface {}", other)),
        };
        if there.is_none() && given.is_none() {
            continue;
        }
        let below = field(node, list);
        let sample = given
            .filter(|items| !items.is_empty())
            .or(there.as_deref())
            .unwrap_or_default();
        let strategy = strategy(below, list, sample, target);
        let items = below.and_then(|n| n.items.as_deref());
        let merged = lists::merge_in_order(items, there.unwrap_or_default(), given, order, &strategy)?;
        target.insert(list.to_owned(), Value::Array(merged));
        done.insert(list);
    }
    Ok(done)
}

/// The error for a value of the wrong type.
pub(crate) fn bad_type(expected: &str, actual: &Value) -> PatchError {
    let actual = if actual.is_null() {
        "%!s(<nil>)"
    } else {
        go_type(actual)
    };
    PatchError::Unnamed(format!("expected a {expected}, but received a {actual}"))
}

fn merge_field(
    node: Option<&Node>,
    target: &mut Map<String, Value>,
    name: &str,
    value: &Value,
) -> Result<(), PatchError> {
    if value.is_null() {
        target.remove(name);
        return Ok(());
    }
    let below = field(node, name);
    let strategy = match (target.get(name), value) {
        (Some(Value::Array(there)), Value::Array(items)) => {
            let items = if items.is_empty() { there } else { items };
            strategy(below, name, items, target)
        }
        _ => Strategy::Replace,
    };
    match (target.get_mut(name), value) {
        (Some(Value::Object(there)), Value::Object(fields)) => {
            let replaced = below
                .and_then(|n| n.patch.as_deref())
                .is_some_and(|hint| !hint.merge && !hint.retain_keys);
            if replaced {
                there.clone_from(fields);
                return Ok(());
            }
            merge_map(below, there, fields)
        }
        (Some(Value::Array(there)), Value::Array(items)) => {
            let before = std::mem::take(there);
            *there = lists::merge(below.and_then(|n| n.items.as_deref()), before, items, &strategy)?;
            Ok(())
        }
        _ => {
            match fresh(value) {
                Some(value) => target.insert(name.to_owned(), value),
                None => target.remove(name),
            };
            Ok(())
        }
    }
}
