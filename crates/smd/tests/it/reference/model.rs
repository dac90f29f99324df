//! The model: types, paths, and the owners after each write, computed without optimisation.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// The type of a value.
#[derive(Debug, Clone)]
pub(super) enum Ty {
    Number,
    AtomicList,
    AtomicMap,
    Set,
    Struct(BTreeMap<String, Self>),
    Map(Box<Self>),
    /// Items identified by `k`.
    Keyed(BTreeMap<String, Self>),
}

pub(super) type Path = Vec<String>;
pub(super) type Paths = BTreeSet<Path>;

impl Ty {
    pub(super) fn schema(&self) -> Value {
        let fields = |fields: &BTreeMap<String, Self>| -> Map<String, Value> {
            fields.iter().map(|(name, ty)| (name.clone(), ty.schema())).collect()
        };
        match self {
            Self::Number => json!({"type": "integer"}),
            Self::AtomicList => json!({"type": "array", "items": {"type": "integer"}}),
            Self::AtomicMap => {
                json!({"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "integer"}})
            }
            Self::Set => json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}}),
            Self::Struct(inner) => json!({"type": "object", "properties": fields(inner)}),
            Self::Map(inner) => json!({"type": "object", "additionalProperties": inner.schema()}),
            Self::Keyed(inner) => {
                let mut properties = fields(inner);
                properties.insert("k".to_owned(), json!({"type": "integer"}));
                json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                       "items": {"type": "object", "properties": properties}})
            }
        }
    }

    pub(super) fn values(&self) -> BoxedStrategy<Value> {
        let numbers = |most| prop::collection::btree_set(0..4i64, 0..most);
        let fields = |inner: &BTreeMap<String, Self>| -> BoxedStrategy<Map<String, Value>> {
            let each: Vec<_> = inner
                .iter()
                .map(|(name, ty)| (Just(name.clone()), prop::option::weighted(0.7, ty.values())))
                .collect();
            each.prop_map(|each| {
                each.into_iter()
                    .filter_map(|(name, value)| Some((name, value?)))
                    .collect()
            })
            .boxed()
        };
        match self {
            Self::Number => (0..3i64).prop_map(Value::from).boxed(),
            Self::AtomicList | Self::Set => numbers(3).prop_map(|n| json!(n)).boxed(),
            Self::AtomicMap => prop::collection::btree_map("[xy]", 0..2i64, 0..2)
                .prop_map(|m| json!(m))
                .boxed(),
            Self::Struct(inner) => fields(inner).prop_map(Value::Object).boxed(),
            Self::Map(inner) => prop::collection::btree_map("[pq]", inner.values(), 0..3)
                .prop_map(|m| json!(m))
                .boxed(),
            Self::Keyed(inner) => (numbers(3), prop::collection::vec(fields(inner), 3))
                .prop_map(|(keys, items)| {
                    let item = |(key, mut item): (i64, Map<String, Value>)| {
                        item.insert("k".to_owned(), key.into());
                        Value::Object(item)
                    };
                    keys.into_iter().zip(items).map(item).collect()
                })
                .boxed(),
        }
    }

    /// The children of a value: step, type, value, and whether the schema names the step.
    fn children<'v>(&'v self, value: &'v Value) -> Vec<(String, &'v Self, &'v Value, bool)> {
        let of_fields =
            |inner: &'v BTreeMap<String, Self>, value: &'v Value| -> Vec<(String, &'v Self, &'v Value, bool)> {
                let fields = value.as_object().into_iter().flatten();
                fields
                    .map(|(name, child)| {
                        (
                            format!("f:{name}"),
                            inner.get(name).unwrap_or(&Self::Number),
                            child,
                            true,
                        )
                    })
                    .collect()
            };
        match self {
            Self::Number | Self::AtomicList | Self::AtomicMap => Vec::new(),
            Self::Struct(inner) => of_fields(inner, value),
            Self::Map(inner) => {
                let fields = value.as_object().into_iter().flatten();
                fields
                    .map(|(name, child)| (format!("f:{name}"), &**inner, child, false))
                    .collect()
            }
            Self::Set => {
                let items = value.as_array().into_iter().flatten();
                items
                    .map(|item| (format!("v:{item}"), &Self::Number, item, false))
                    .collect()
            }
            Self::Keyed(_) => {
                let items = value.as_array().into_iter().flatten();
                items
                    .map(|item| (format!("k:{{\"k\":{}}}", item["k"]), self, item, false))
                    .collect()
            }
        }
    }

    /// The type of the children of an item of a keyed list.
    fn item(&self) -> Self {
        match self {
            Self::Keyed(inner) => Self::Struct(inner.clone()),
            _ => Self::Number,
        }
    }
}

/// Every path in a value, containers included, with whether the schema names its last step.
fn every(ty: &Ty, value: &Value, at: &Path, out: &mut BTreeMap<Path, (bool, Value)>) {
    for (step, below, child, named) in ty.children(value) {
        let mut path = at.clone();
        path.push(step);
        out.insert(path.clone(), (named, child.clone()));
        let below = if matches!(ty, Ty::Keyed(_)) {
            below.item()
        } else {
            below.clone()
        };
        every(&below, child, &path, out);
    }
}

fn all(ty: &Ty, value: &Value) -> BTreeMap<Path, (bool, Value)> {
    let mut out = BTreeMap::new();
    every(ty, value, &Vec::new(), &mut out);
    out
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

fn has_children(paths: &BTreeMap<Path, (bool, Value)>, path: &Path) -> bool {
    paths
        .keys()
        .any(|other| other.len() > path.len() && other.starts_with(path))
}

/// The paths that an applier of a value owns: leaves, items, map keys, and empty structs.
fn owned(ty: &Ty, value: &Value) -> Paths {
    let paths = all(ty, value);
    let counts = |path: &Path, named: bool, value: &Value| {
        let is_empty_list = value.as_array().is_some_and(Vec::is_empty);
        !named || (!has_children(&paths, path) && (!is_empty_list || is_leaf_type(ty, path)))
    };
    paths
        .iter()
        .filter(|(path, (named, value))| counts(path, *named, value))
        .map(|(path, _)| path.clone())
        .collect()
}

fn type_at(ty: &Ty, path: &[String]) -> Ty {
    let Some((first, rest)) = path.split_first() else {
        return ty.clone();
    };
    let below = match ty {
        Ty::Struct(inner) => inner.get(&first[2..]).cloned().unwrap_or(Ty::Number),
        Ty::Map(inner) => (**inner).clone(),
        Ty::Keyed(_) => ty.item(),
        _ => Ty::Number,
    };
    type_at(&below, rest)
}

fn is_leaf_type(ty: &Ty, path: &[String]) -> bool {
    matches!(type_at(ty, path), Ty::Number | Ty::AtomicList | Ty::AtomicMap)
}

/// A value with sets and keyed lists sorted, for comparison.
pub(super) fn sorted(ty: &Ty, value: &Value) -> Value {
    match (ty, value) {
        (Ty::Struct(inner), Value::Object(map)) => map
            .iter()
            .map(|(name, child)| {
                (
                    name.clone(),
                    inner.get(name).map_or(child.clone(), |ty| sorted(ty, child)),
                )
            })
            .collect(),
        (Ty::Map(inner), Value::Object(map)) => map.iter().map(|(name, v)| (name.clone(), sorted(inner, v))).collect(),
        (Ty::Keyed(_), Value::Array(items)) => {
            let mut items: Vec<Value> = items.iter().map(|item| sorted(&ty.item(), item)).collect();
            items.sort_by_key(|item| item["k"].as_i64());
            Value::Array(items)
        }
        (Ty::Set, Value::Array(items)) => {
            let mut items = items.clone();
            items.sort_by_key(Value::as_i64);
            Value::Array(items)
        }
        _ => value.clone(),
    }
}

fn merged(ty: &Ty, live: Option<&Value>, config: &Value) -> Value {
    let nothing = Value::Null;
    let live = live.unwrap_or(&nothing);
    let merge_maps = |type_of: &dyn Fn(&str) -> Ty| -> Value {
        let mut out = live.as_object().cloned().unwrap_or_default();
        for (name, child) in config.as_object().into_iter().flatten() {
            let value = merged(&type_of(name), out.get(name), child);
            out.insert(name.clone(), value);
        }
        Value::Object(out)
    };
    match ty {
        Ty::Number | Ty::AtomicList | Ty::AtomicMap => config.clone(),
        Ty::Struct(inner) => merge_maps(&|name| inner.get(name).cloned().unwrap_or(Ty::Number)),
        Ty::Map(inner) => merge_maps(&|_| (**inner).clone()),
        Ty::Set | Ty::Keyed(_) => {
            let same = |a: &Value, b: &Value| {
                if matches!(ty, Ty::Set) {
                    a == b
                } else {
                    a["k"] == b["k"]
                }
            };
            let mut out: Vec<Value> = live.as_array().cloned().unwrap_or_default();
            for item in config.as_array().into_iter().flatten() {
                match out.iter_mut().find(|there| same(there, item)) {
                    Some(there) => *there = merged(&ty.item(), Some(there), item),
                    None => out.push(merged(&ty.item(), None, item)),
                }
            }
            Value::Array(out)
        }
    }
}

/// A value without some paths; emptied containers become null.
fn without(ty: &Ty, value: &Value, gone: &Paths, at: &Path) -> Value {
    let touched = gone.iter().any(|path| path.len() > at.len() && path.starts_with(at));
    if !touched || !matches!(value, Value::Object(_) | Value::Array(_)) {
        return value.clone();
    }
    let mut object = Map::new();
    let mut list = Vec::new();
    for (step, below, child, _) in ty.children(value) {
        let mut path = at.clone();
        path.push(step.clone());
        if gone.contains(&path) {
            continue;
        }
        let below = if matches!(ty, Ty::Keyed(_)) {
            below.item()
        } else {
            below.clone()
        };
        let child = without(&below, child, gone, &path);
        match ty {
            Ty::Set | Ty::Keyed(_) => list.push(child),
            _ => {
                object.insert(step[2..].to_owned(), child);
            }
        }
    }
    match ty {
        Ty::Set | Ty::Keyed(_) if list.is_empty() => Value::Null,
        Ty::Set | Ty::Keyed(_) => Value::Array(list),
        _ if object.is_empty() => Value::Null,
        _ => Value::Object(object),
    }
}

/// A set with the named fields on the way to its members.
fn with_named(ty: &Ty, set: &Paths) -> Paths {
    let mut out = set.clone();
    for path in set {
        for length in 1..path.len() {
            let container = type_at(ty, &path[..length - 1]);
            let item_of_struct = matches!(container, Ty::Struct(_));
            if item_of_struct {
                out.insert(path[..length].to_vec());
            }
        }
    }
    out
}

#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    pub(super) value: Option<Value>,
    /// By manager, and whether it applies.
    pub(super) owners: BTreeMap<(String, bool), Paths>,
}

impl Model {
    /// Added or modified, and removed.
    fn changes(ty: &Ty, old: &Value, new: &Value) -> (Paths, Paths) {
        let (before, after) = (all(ty, old), all(ty, new));
        let mut taken: Paths = after
            .keys()
            .filter(|path| !before.contains_key(*path))
            .cloned()
            .collect();
        for (path, (_, value)) in &after {
            let Some((_, was)) = before.get(path) else { continue };
            let leaf = is_leaf_type(ty, path) || (is_empty(value) && is_empty(was));
            if leaf && value != was {
                taken.insert(path.clone());
            }
        }
        let removed = before
            .keys()
            .filter(|path| !after.contains_key(*path))
            .cloned()
            .collect();
        (taken, removed)
    }

    fn lose(&mut self, taken: &Paths, removed: &Paths) {
        for set in self.owners.values_mut() {
            set.retain(|path| !taken.contains(path) && !removed.contains(path));
        }
        self.owners.retain(|_, set| !set.is_empty());
    }

    pub(super) fn update(&mut self, ty: &Ty, manager: &str, new: &Value) {
        let nothing = json!({});
        let (taken, removed) = Self::changes(ty, self.value.as_ref().unwrap_or(&nothing), new);
        self.lose(&taken, &removed);
        if !taken.is_empty() {
            self.owners
                .entry((manager.to_owned(), false))
                .or_default()
                .extend(taken);
        }
        self.value = Some(new.clone());
    }

    /// The conflicts, if there are any.
    pub(super) fn apply(&mut self, ty: &Ty, manager: &str, config: &Value, force: bool) -> Result<(), Paths> {
        let me = (manager.to_owned(), true);
        let nothing = json!({});
        let live = self.value.clone().unwrap_or(nothing);
        let mine = owned(ty, config);
        let mut others = self.owners.clone();
        if others.is_empty() && self.value.is_some() {
            // The existing fields have no known owner: a separate manager gets them.
            let (everything, _) = Self::changes(ty, &json!({}), &live);
            others.insert(("before-first-apply".to_owned(), false), everything);
            others.retain(|_, set| !set.is_empty());
        }
        let last = others.remove(&me);
        let mut new = merged(ty, Some(&live), config);
        if let Some(last) = &last {
            let mut managed = mine.clone();
            managed.extend(others.values().flatten().cloned());
            let (last, managed) = (with_named(ty, last), with_named(ty, &managed));
            let paths = |value: &Value| with_named(ty, &owned(ty, value));
            let everything = paths(&new);
            let pruned = paths(&without(ty, &new, &last, &Vec::new()));
            let gone: Paths = everything
                .iter()
                .filter(|path| !pruned.contains(*path) && !managed.contains(*path))
                .cloned()
                .collect();
            let pruned = paths(&without(ty, &new, &gone, &Vec::new()));
            let gone: Paths = everything
                .iter()
                .filter(|path| !pruned.contains(*path) && last.contains(*path))
                .cloned()
                .collect();
            new = without(ty, &new, &gone, &Vec::new());
            if new.is_null() {
                new = json!({});
            }
        }
        let (taken, removed) = Self::changes(ty, &live, &new);
        let in_the_way: Paths = others
            .values()
            .flatten()
            .filter(|path| taken.contains(*path))
            .cloned()
            .collect();
        if !force && !in_the_way.is_empty() {
            return Err(in_the_way);
        }
        self.owners = others;
        self.lose(&taken, &removed);
        if !mine.is_empty() {
            self.owners.insert(me, mine);
        }
        self.value = Some(new);
        Ok(())
    }
}
