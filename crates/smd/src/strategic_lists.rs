//! Lists in strategic merge patches.

use serde_json::Value;
use windlass_schema::Node;

use crate::error::PatchError;
use crate::strategic::{Strategy, merge_map, without_directives};

/// Merges a patch list into a list.
pub(crate) fn merge(
    node: Option<&Node>,
    target: &mut Vec<Value>,
    patch: &[Value],
    order: Option<&Value>,
    strategy: &Strategy,
) -> Result<(), PatchError> {
    match strategy {
        Strategy::Replace => {
            *target = patch.iter().map(without_directives).collect();
            return Ok(());
        }
        Strategy::Scalars => {
            let before = target.clone();
            for item in patch {
                if !target.contains(item) {
                    target.push(item.clone());
                }
            }
            let default = Value::Array(patch.to_vec());
            return arrange(target, &before, order.unwrap_or(&default), strategy, patch);
        }
        Strategy::Keyed(_) => {}
    }
    let Strategy::Keyed(key) = strategy else {
        return Ok(());
    };
    if patch
        .iter()
        .any(|item| item.get("$patch").and_then(Value::as_str) == Some("replace"))
    {
        *target = patch
            .iter()
            .filter(|item| item.get("$patch").and_then(Value::as_str) != Some("replace"))
            .map(without_directives)
            .collect();
        return Ok(());
    }
    let before = target.clone();
    let mut wanted = Vec::with_capacity(patch.len());
    for item in patch {
        let Some(id) = item.get(key.as_str()) else {
            return Err(PatchError::BadPatch(format!(
                "map: {item} does not contain declared merge key: {key}"
            )));
        };
        match item.get("$patch").and_then(Value::as_str) {
            Some("delete") => target.retain(|there| there.get(key.as_str()) != Some(id)),
            None | Some("merge") => wanted.push(item),
            Some(other) => {
                return Err(PatchError::BadPatch(format!("Unknown patch type found: {other}")));
            }
        }
    }
    for item in &wanted {
        let there = target
            .iter_mut()
            .find(|there| there.get(key.as_str()) == item.get(key.as_str()));
        match (there, item) {
            (Some(Value::Object(there)), Value::Object(fields)) => merge_map(node, there, fields)?,
            _ => target.push(without_directives(item)),
        }
    }
    let default = Value::Array(wanted.iter().map(|item| (*item).clone()).collect());
    let wanted: Vec<Value> = wanted.into_iter().cloned().collect();
    arrange(target, &before, order.unwrap_or(&default), strategy, &wanted)
}

/// Sorts a list that a patch only reorders.
pub(crate) fn reorder(
    items: &mut Vec<Value>,
    patch: &[Value],
    order: &Value,
    strategy: &Strategy,
) -> Result<(), PatchError> {
    let before = items.clone();
    let named = order.as_array().map_or(patch, Vec::as_slice);
    arrange(items, &before, order, strategy, named)
}

/// Items of the patch stand in the order asked for; those that only the server has keep their order and are put before
/// the first patch item that they preceded.
fn arrange(
    items: &mut Vec<Value>,
    server: &[Value],
    order: &Value,
    strategy: &Strategy,
    patch: &[Value],
) -> Result<(), PatchError> {
    let Value::Array(order) = order else {
        return Err(PatchError::BadPatch("$setElementOrder must be a list".to_owned()));
    };
    let id = |item: &Value| -> Value {
        match strategy {
            Strategy::Keyed(key) => item.get(key.as_str()).cloned().unwrap_or(Value::Null),
            _ => item.clone(),
        }
    };
    let ids = |list: &[Value]| -> Vec<Value> { list.iter().map(id).collect() };
    let (order, server, patch) = (ids(order), ids(server), ids(patch));
    let (mut ours, theirs): (Vec<Value>, Vec<Value>) = items
        .drain(..)
        .partition(|item| order.contains(&id(item)) || patch.contains(&id(item)));
    let place = |list: &[Value], item: &Value| list.iter().position(|i| *i == id(item));
    ours.sort_by_key(|item| place(&order, item).unwrap_or(usize::MAX));
    let mut ours = ours.into_iter().peekable();
    let mut theirs = theirs.into_iter().peekable();
    loop {
        let first = match (theirs.peek(), ours.peek()) {
            (None, None) => return Ok(()),
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(l), Some(r)) => {
                matches!((place(&server, l), place(&server, r)), (Some(l), Some(r)) if l < r)
            }
        };
        items.extend(if first { theirs.next() } else { ours.next() });
    }
}
