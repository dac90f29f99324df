//! A slow, obvious model of ownership: sets of whole paths, objects without order. Random schemas, objects and managers must come out the
//! same in the model and in the crate.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use windlass_schema::Schema;
use windlass_smd::{Apply, ApplyError, ManagedFields, Scope, Update, Versions, apply, update};

use crate::vectors::without_empty;

/// The type of a value.
#[derive(Debug, Clone)]
enum Ty {
    Number,
    AtomicList,
    AtomicMap,
    Set,
    Struct(BTreeMap<String, Self>),
    Map(Box<Self>),
    /// Items told apart by `k`.
    Keyed(BTreeMap<String, Self>),
}

type Path = Vec<String>;
type Paths = BTreeSet<Path>;

impl Ty {
    fn schema(&self) -> Value {
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

    fn values(&self) -> BoxedStrategy<Value> {
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

/// Every path there is in a value, containers included, with whether the schema names its last step.
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

/// What an applier of a value owns: leaves, items, keys of maps; of structs only those that are empty.
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

/// Sets and keyed lists without order, so that values can be compared.
fn sorted(ty: &Ty, value: &Value) -> Value {
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

/// A value without some paths; what becomes empty by that is null.
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
struct Model {
    value: Option<Value>,
    owners: BTreeMap<(String, bool), Paths>,
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

    fn update(&mut self, ty: &Ty, manager: &str, new: &Value) {
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
    fn apply(&mut self, ty: &Ty, manager: &str, config: &Value, force: bool) -> Result<(), Paths> {
        let me = (manager.to_owned(), true);
        let nothing = json!({});
        let live = self.value.clone().unwrap_or(nothing);
        let mine = owned(ty, config);
        let mut others = self.owners.clone();
        if others.is_empty() && self.value.is_some() {
            // Nobody is known to own what is there: a manager of its own does.
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

fn set_of(fields: &Value, at: &Path, out: &mut Paths) {
    for (step, below) in fields.as_object().into_iter().flatten() {
        if step == "." {
            continue;
        }
        let mut path = at.clone();
        path.push(step.clone());
        if below
            .as_object()
            .is_some_and(|map| map.is_empty() || map.contains_key("."))
        {
            out.insert(path.clone());
        }
        set_of(below, &path, out);
    }
}

/// Who owns what, as the crate has it.
fn owners(object: &Value) -> BTreeMap<(String, bool), Paths> {
    let managers = ManagedFields::of(object).expect("managers");
    let sets = managers.entries.iter().map(|entry| {
        let mut paths = Paths::new();
        set_of(&entry.fields.to_value(), &Vec::new(), &mut paths);
        (
            (entry.manager.clone(), entry.operation == windlass_smd::Operation::Apply),
            paths,
        )
    });
    sets.collect()
}

#[derive(Debug, Clone)]
struct Step {
    manager: &'static str,
    applies: bool,
    force: bool,
    value: Value,
}

fn types() -> impl Strategy<Value = Ty> {
    let leaf = prop_oneof![
        3 => Just(Ty::Number),
        1 => Just(Ty::AtomicList),
        1 => Just(Ty::AtomicMap),
        1 => Just(Ty::Set),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let fields = prop::collection::btree_map("[abc]", inner.clone(), 1..3);
        prop_oneof![
            3 => fields.clone().prop_map(Ty::Struct),
            2 => inner.prop_map(|ty| Ty::Map(Box::new(ty))),
            3 => fields.prop_map(Ty::Keyed),
        ]
    })
}

fn histories() -> impl Strategy<Value = (Ty, Vec<Step>)> {
    prop::collection::btree_map("[stuv]", types(), 1..4).prop_flat_map(|fields| {
        let ty = Ty::Struct(fields);
        let step = (
            prop::sample::select(vec!["a", "b", "c"]),
            prop::bool::weighted(0.75),
            any::<bool>(),
            ty.values(),
        )
            .prop_map(|(manager, applies, force, value)| Step {
                manager,
                applies,
                force,
                value,
            });
        (Just(ty), prop::collection::vec(step, 1..7))
    })
}

fn request<'a>(schema: &'a Schema, live: Option<&'a Value>, object: &'a Value, step: &Step) -> Apply<'a> {
    Apply {
        schema: Some(schema),
        versions: Versions::ALIKE,
        live,
        applied: object,
        manager: step.manager,
        api_version: "v1",
        subresource: "",
        scope: Scope::ALL,
        force: step.force,
        now: jiff::Timestamp::UNIX_EPOCH,
    }
}

fn plain(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(map) = object.as_object_mut() {
        map.remove("metadata");
    }
    object
}

fn with_metadata(value: &Value) -> Value {
    let mut object = value.clone();
    object["metadata"] = json!({});
    object
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        std::env::var("SMD_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(150)
    ))]

    #[test]
    fn the_model_and_the_crate_agree((ty, steps) in histories()) {
        let schema = Schema::open_api(&ty.schema(), &Value::Null).expect("schema");
        let mut model = Model::default();
        let mut live: Option<Value> = None;
        for step in &steps {
            let mut object = with_metadata(&step.value);
            if step.applies {
                let ours = apply(&request(&schema, live.as_ref(), &object, step));
                let theirs = model.apply(&ty, step.manager, &step.value, step.force);
                match (ours, theirs) {
                    (Ok(applied), Ok(())) => live = Some(applied.object),
                    (Err(ApplyError::Conflicts(found)), Err(expected)) => {
                        let found: BTreeSet<String> = found.0.into_iter().map(|conflict| conflict.path).collect();
                        prop_assert_eq!(found.len(), expected.len());
                    }
                    (ours, theirs) => prop_assert!(false, "{:?} but the model says {:?}", ours, theirs),
                }
            } else {
                update(
                    &Update {
                        schema: Some(&schema),
                        versions: Versions::ALIKE,
                        live: live.as_ref(),
                        manager: step.manager,
                        api_version: "v1",
                        subresource: "",
                        scope: Scope::ALL,
                        now: jiff::Timestamp::UNIX_EPOCH,
                    },
                    &mut object,
                );
                live = Some(object);
                model.update(&ty, step.manager, &step.value);
            }
            if let Some(live) = &live {
                let value = model.value.clone().unwrap_or_default();
                prop_assert_eq!(sorted(&ty, &plain(live)), sorted(&ty, &value), "after {:?}", step);
                prop_assert_eq!(owners(live), model.owners.clone(), "after {:?}", step);
            }
        }
    }

    #[test]
    fn a_forced_apply_leaves_no_conflict_and_nothing_to_apply((ty, steps) in histories()) {
        let schema = Schema::open_api(&ty.schema(), &Value::Null).expect("schema");
        let mut live: Option<Value> = None;
        for step in &steps {
            // What is empty is null once it has been emptied, and empty again when it is applied again.
            let object = with_metadata(&without_empty(&step.value));
            let forced = Step { force: true, ..step.clone() };
            let applied = apply(&request(&schema, live.as_ref(), &object, &forced)).expect("forced");
            let gentle = Step { force: false, ..step.clone() };
            let again = apply(&request(&schema, Some(&applied.object), &object, &gentle)).expect("no conflict");
            prop_assert!(!again.changed);
            prop_assert_eq!(&again.object, &applied.object);
            live = Some(applied.object);
        }
    }

    #[test]
    fn who_wrote_something_may_apply_it((ty, steps) in histories()) {
        let schema = Schema::open_api(&ty.schema(), &Value::Null).expect("schema");
        for step in &steps {
            let mut live = with_metadata(&step.value);
            let request_of_update = Update {
                schema: Some(&schema), versions: Versions::ALIKE, live: None, manager: step.manager, api_version: "v1",
                subresource: "", scope: Scope::ALL, now: jiff::Timestamp::UNIX_EPOCH,
            };
            update(&request_of_update, &mut live);
            let object = with_metadata(&step.value);
            let gentle = Step { force: false, ..step.clone() };
            let applied = apply(&request(&schema, Some(&live), &object, &gentle)).expect("no conflict");
            prop_assert_eq!(plain(&applied.object), plain(&live));
        }
    }
}
