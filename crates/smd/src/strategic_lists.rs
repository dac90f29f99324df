//! Lists in strategic merge patches.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};
use windlass_schema::Node;

use crate::error::PatchError;
use crate::strategic::{DIRECTIVE, Strategy, bad_type, fresh, merge_map, unknown_directive};
use crate::typed::go_text;

/// Merges a patch list into a list.
pub(crate) fn merge(
    node: Option<&Node>,
    target: Vec<Value>,
    patch: &[Value],
    strategy: &Strategy,
) -> Result<Vec<Value>, PatchError> {
    if matches!(strategy, Strategy::Replace) {
        return Ok(patch.to_vec());
    }
    if target.is_empty() && patch.is_empty() {
        return Ok(target);
    }
    let of_maps = same_types(&[&target, patch])?;
    if !of_maps {
        let mut merged = target.clone();
        let mut known: HashSet<&Value> = target.iter().collect();
        merged.extend(patch.iter().filter(|item| known.insert(item)).cloned());
        return arrange(merged, patch, &target, strategy);
    }
    let key = strategy.key();
    if key.is_empty() {
        return Err(PatchError::Unnamed("cannot merge lists without merge key".to_owned()));
    }
    let (mut merged, wanted) = directed(target, patch, key)?;
    let before = merged.clone();
    let mut places: HashMap<&Value, usize> = HashMap::new();
    for (place, item) in before.iter().enumerate() {
        if let Some(id) = item.get(key) {
            places.entry(id).or_insert(place);
        }
    }
    for item in &wanted {
        let Value::Object(fields) = item else { continue };
        let id = fields.get(key).ok_or_else(|| no_key(fields, key))?;
        let place = *places.entry(id).or_insert(merged.len());
        match merged.get_mut(place) {
            Some(Value::Object(there)) => merge_map(node, there, fields)?,
            _ => merged.push(item.clone()),
        }
    }
    arrange(merged, &wanted, &before, strategy)
}

/// Merges a patch list, if there is one, and sorts the result by the order directive.
pub(crate) fn merge_in_order(
    node: Option<&Node>,
    target: Vec<Value>,
    patch: Option<&[Value]>,
    order: &[Value],
    strategy: &Strategy,
) -> Result<Vec<Value>, PatchError> {
    if let Some(patch) = patch {
        check_order(patch, order, strategy.key())?;
    }
    let server = target.clone();
    let merged = match patch {
        None => target,
        Some(patch) if target.is_empty() => patch.iter().filter_map(fresh).collect(),
        Some(patch) => merge(node, target, patch, strategy)?,
    };
    if server.is_empty() && patch.is_none_or(<[Value]>::is_empty) {
        return Err(PatchError::Unnamed("no elements in any of the given slices".to_owned()));
    }
    arrange(merged, order, &server, strategy)
}

/// Whether the items of lists are objects; all must be of one type.
fn same_types(lists: &[&[Value]]) -> Result<bool, PatchError> {
    let sort = |value: &Value| match value {
        Value::Number(n) if n.is_f64() => 10,
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    };
    let mut first = None;
    for item in lists.iter().copied().flatten() {
        if item.is_array() && first.is_none() {
            return Err(PatchError::Unprocessable("lists of lists are not supported".to_owned()));
        }
        if *first.get_or_insert(sort(item)) != sort(item) {
            let all: Vec<Value> = lists.iter().map(|list| Value::Array(list.to_vec())).collect();
            return Err(PatchError::Unnamed(format!(
                "list element types are not identical: [{}]",
                go_text(&Value::Array(all))
            )));
        }
    }
    Ok(first == Some(5))
}

fn no_key(item: &Map<String, Value>, key: &str) -> PatchError {
    PatchError::Unnamed(format!(
        "map: {} does not contain declared merge key: {key}",
        go_text(&Value::Object(item.clone()))
    ))
}

/// Carries out the directives among the items of a patch. Returns the rest of both lists.
fn directed(mut target: Vec<Value>, patch: &[Value], key: &str) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let mut wanted = Vec::with_capacity(patch.len());
    let mut replace = false;
    let mut gone: HashSet<&Value> = HashSet::new();
    for item in patch {
        let Value::Object(fields) = item else { continue };
        match fields.get(DIRECTIVE) {
            None => wanted.push(item.clone()),
            Some(directive) => match directive.as_str() {
                Some("delete") => {
                    let id = fields.get(key).ok_or_else(|| no_key(fields, key))?;
                    gone.insert(id);
                }
                Some("replace") => replace = true,
                Some("merge") => {
                    return Err(PatchError::Unnamed(
                        "merging lists cannot yet be specified in the patch".to_owned(),
                    ));
                }
                _ => return Err(unknown_directive(directive, fields)),
            },
        }
    }
    if replace {
        return Ok((wanted, Vec::new()));
    }
    if !gone.is_empty() {
        target.retain(|there| there.get(key).is_none_or(|id| !gone.contains(id)));
    }
    Ok((target, wanted))
}

/// Checks that the items of a patch have the order of the order directive.
fn check_order(patch: &[Value], order: &[Value], key: &str) -> Result<(), PatchError> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let id = |item: &Value| -> Result<Value, PatchError> {
        if key.is_empty() {
            return Ok(item.clone());
        }
        match item {
            Value::Object(fields) => fields.get(key).cloned().ok_or_else(|| no_key(fields, key)),
            other => Err(bad_type("map[string]interface {}", other)),
        }
    };
    let mut order_left = order.iter();
    for item in patch.iter().filter(|item| item.get(DIRECTIVE).is_none()) {
        let id_here = id(item)?;
        loop {
            let Some(next) = order_left.next() else {
                return Err(PatchError::Unnamed(format!(
                    "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
                    go_text(&Value::Array(patch.to_vec())),
                    go_text(&Value::Array(order.to_vec()))
                )));
            };
            if id(next)? == id_here {
                break;
            }
        }
    }
    Ok(())
}

/// The first index of each value.
fn places(list: &[Value]) -> HashMap<&Value, usize> {
    let mut out = HashMap::with_capacity(list.len());
    for (place, value) in list.iter().enumerate() {
        out.entry(value).or_insert(place);
    }
    out
}

/// Sorts the items in the order directive by it. The others keep their order, before the first item that they preceded.
fn arrange(
    items: Vec<Value>,
    order: &[Value],
    server: &[Value],
    strategy: &Strategy,
) -> Result<Vec<Value>, PatchError> {
    let key = strategy.key();
    let id = |item: &Value| -> Result<Value, PatchError> {
        match item {
            Value::Object(fields) if !key.is_empty() => fields.get(key).cloned().ok_or_else(|| no_key(fields, key)),
            other => Ok(other.clone()),
        }
    };
    let ids = |list: &[Value]| list.iter().map(id).collect::<Result<Vec<Value>, _>>();
    let (order, server) = (ids(order)?, ids(server)?);
    let (order, server) = (places(&order), places(&server));
    let mut ours = Vec::new();
    let mut theirs = Vec::new();
    let count = items.len();
    for item in items {
        let id = id(&item)?;
        match order.get(&id) {
            Some(at) => ours.push((*at, id, item)),
            None => theirs.push((server.get(&id).copied().unwrap_or(usize::MAX), id, item)),
        }
    }
    ours.sort_by_key(|(at, ..)| *at);
    theirs.sort_by_key(|(at, ..)| *at);
    let mut ours = ours.into_iter().peekable();
    let mut theirs = theirs.into_iter().peekable();
    let mut out = Vec::with_capacity(count);
    loop {
        let first = match (theirs.peek(), ours.peek()) {
            (None, None) => return Ok(out),
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some((_, l, _)), Some((_, r, _))) => {
                matches!((server.get(l), server.get(r)), (Some(l), Some(r)) if l < r)
            }
        };
        let next = if first { theirs.next() } else { ours.next() };
        out.extend(next.map(|(_, _, item)| item));
    }
}
