//! Uniqueness of items in lists with set or map semantics.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::error::{FieldError, MOST_ERRORS};
use crate::node::{Additional, ListType, Node};
use crate::path::Path;

/// The items of the old value of a list with map semantics, by their keys.
#[derive(Debug)]
pub struct OldItems<'a> {
    node: &'a Node,
    below: &'a Node,
    items: &'a [Value],
    /// Empty if there are few items: those are compared one by one.
    places: HashMap<Vec<&'a Value>, &'a Value>,
}

/// So few items are compared with each other.
const FEW: usize = 16;

impl<'a> OldItems<'a> {
    /// `None` for any other list: its items do not correspond to items of the old value.
    pub fn of(node: &'a Node, old: &'a Value) -> Option<Self> {
        if node.list_type != ListType::Map {
            return None;
        }
        let (below, items) = (node.items.as_deref()?, old.as_array()?);
        let mut places = HashMap::new();
        if items.len() > FEW {
            for item in items {
                let keys = node.list_map_keys.iter().map(|name| item_key(below, item, name));
                places.entry(keys.collect()).or_insert(item);
            }
        }
        Some(Self {
            node,
            below,
            items,
            places,
        })
    }

    /// The old item that corresponds to an item.
    pub fn get(&self, item: &Value) -> Option<&'a Value> {
        let names = &self.node.list_map_keys;
        let below = self.below;
        if self.places.is_empty() {
            let is_same = |old: &Value, name: &String| item_key(below, old, name) == item_key(below, item, name);
            let mut items = self.items.iter();
            return items.find(|old| names.iter().all(|name| is_same(old, name)));
        }
        let keys: Vec<&Value> = names.iter().map(|name| item_key(below, item, name)).collect();
        self.places.get(&keys).copied()
    }
}

/// A key of an item; null if neither the item nor a default has it.
fn item_key<'v>(below: &'v Node, item: &'v Value, name: &str) -> &'v Value {
    let default = || below.properties.get(name).and_then(|p| p.default.as_ref());
    item.get(name).or_else(default).unwrap_or(&Value::Null)
}

/// Checks that items of sets and keys of list maps are unique, unless the old value had duplicates.
pub(crate) fn keyed(node: &Node, value: &Value, old: Option<&Value>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let mut found = Vec::new();
    keyed_lists(node, value, path, &mut found);
    let known = !found.is_empty()
        && old.is_some_and(|old| {
            let mut before = Vec::new();
            keyed_lists(node, old, path, &mut before);
            !before.is_empty()
        });
    if !known {
        errors.extend(found);
    }
}

/// Checks that items of sets and keys of list maps are unique.
fn keyed_lists(node: &Node, value: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if !node.has_keyed_lists || errors.len() >= MOST_ERRORS {
        return;
    }
    match value {
        Value::Array(items) => {
            match node.list_type {
                ListType::Atomic => {}
                ListType::Set => {
                    for index in second_ones(items.iter()) {
                        errors.push(FieldError::duplicate(
                            Path::Index(path, index).to_string(),
                            items[index].clone(),
                        ));
                    }
                }
                ListType::Map => keyed_items(node, items, path, errors),
            }
            if let Some(below) = &node.items {
                for (index, item) in items.iter().enumerate() {
                    keyed_lists(below, item, &Path::Index(path, index), errors);
                }
            }
        }
        Value::Object(map) => {
            for (name, child) in map {
                if let Some(below) = node.properties.get(name) {
                    keyed_lists(below, child, &Path::Field(path, name), errors);
                } else if let Additional::Values(below) = &node.additional {
                    keyed_lists(below, child, &Path::Key(path, name), errors);
                }
            }
        }
        _ => {}
    }
}

fn keyed_items(node: &Node, items: &[Value], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for (index, item) in items.iter().enumerate() {
        if !item.is_null() && !item.is_object() {
            let here = Path::Index(path, index).to_string();
            errors.push(FieldError::invalid(
                here,
                item.clone(),
                "must be an object for an array of list-type map",
            ));
            return;
        }
    }
    let keys: Vec<Value> = items
        .iter()
        .map(|item| {
            let named = node
                .list_map_keys
                .iter()
                .filter_map(|name| Some((name.clone(), item.get(name)?.clone())));
            Value::Object(named.collect())
        })
        .collect();
    for index in second_ones(keys.iter()) {
        errors.push(FieldError::duplicate(
            Path::Index(path, index).to_string(),
            keys[index].clone(),
        ));
    }
}

/// The indexes of second occurrences; further ones are not reported.
fn second_ones<'a>(items: impl Iterator<Item = &'a Value>) -> Vec<usize> {
    let mut seen: HashSet<&Value> = HashSet::new();
    let mut reported: HashSet<&Value> = HashSet::new();
    let mut found = Vec::new();
    for (index, item) in items.enumerate() {
        if found.len() >= MOST_ERRORS {
            break;
        }
        if !seen.insert(item) && reported.insert(item) {
            found.push(index);
        }
    }
    found
}
