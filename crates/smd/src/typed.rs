//! Walks values along their schema: field sets, comparison, merge, removal.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::{Map, Value};
use windlass_schema::{Additional, ListType, MapType, Node as Shape, Schema, Type};

use crate::error::ApplyError;
use crate::field_set::{Elem, FieldSet, Node};

use self::lists::merge_lists;

mod check;
mod lists;
mod reconcile;

pub use self::check::{go_text, go_type};
pub(crate) use self::check::{problems, words};
pub(crate) use self::reconcile::reconcile;

/// The schema of metadata, which does not depend on the kind.
static METADATA: LazyLock<Option<Schema>> = LazyLock::new(|| {
    let string = serde_json::json!({"type": "string"});
    let map = serde_json::json!({"type": "object", "additionalProperties": {"type": "string"}});
    let meta = serde_json::json!({"type": "object", "properties": {
        "name": string, "generateName": string, "namespace": string, "uid": string, "resourceVersion": string,
        "selfLink": string, "creationTimestamp": string, "deletionTimestamp": string,
        "generation": {"type": "integer"}, "deletionGracePeriodSeconds": {"type": "integer"},
        "labels": map, "annotations": map,
        "finalizers": {"type": "array", "x-kubernetes-list-type": "set", "items": string},
        "ownerReferences": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"],
            "items": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
                "apiVersion": string, "kind": string, "name": string, "uid": {"type": "string", "default": ""},
                "controller": {"type": "boolean"}, "blockOwnerDeletion": {"type": "boolean"}}}
        },
        "managedFields": {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "object"}},
    }});
    Schema::open_api(&meta, &Value::Null).ok()
});

/// The schema of the values at one path.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    /// `None`: the type is derived from the value.
    shape: Option<&'a Shape>,
    /// Whether this is an API object, whose metadata has a known schema.
    resource: bool,
}

/// How a value is walked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Atom {
    Map,
    List,
    Scalar,
}

impl<'a> View<'a> {
    /// The view of a whole API object.
    pub(crate) fn root(schema: Option<&'a Schema>) -> Self {
        Self {
            shape: schema.map(Schema::root),
            resource: true,
        }
    }

    /// The schema, unless values may have any type.
    fn known(self) -> Option<&'a Shape> {
        self.shape.filter(|s| s.kind.is_some() || s.int_or_string)
    }

    fn atom(self, value: Option<&Value>) -> Atom {
        match self.known() {
            Some(shape) => match shape.kind {
                Some(Type::Object) => Atom::Map,
                Some(Type::Array) => Atom::List,
                _ => Atom::Scalar,
            },
            None => match value {
                Some(Value::Array(_)) => Atom::List,
                None | Some(Value::Object(_) | Value::Null) => Atom::Map,
                Some(_) => Atom::Scalar,
            },
        }
    }

    fn is_atomic_map(self) -> bool {
        self.known().is_some_and(|shape| shape.map_type == MapType::Atomic)
    }

    fn list_type(self) -> ListType {
        self.known().map_or(ListType::Atomic, |shape| shape.list_type)
    }

    /// The view of a field.
    pub(crate) fn field(self, name: &str) -> Self {
        if self.resource
            && name == "metadata"
            && let Some(schema) = METADATA.as_ref()
        {
            return Self {
                shape: Some(schema.root()),
                resource: false,
            };
        }
        let shape = self.shape.and_then(|shape| match shape.properties.get(name) {
            Some(field) => Some(field),
            None => match &shape.additional {
                Additional::Values(values) => Some(values.as_ref()),
                _ => None,
            },
        });
        Self {
            shape,
            resource: shape.is_some_and(|s| s.embedded_resource),
        }
    }

    /// Whether the schema names a field, rather than a map key.
    fn is_named(self, name: &str) -> bool {
        (self.resource && matches!(name, "apiVersion" | "kind" | "metadata"))
            || self.shape.is_some_and(|shape| shape.properties.contains_key(name))
    }

    fn item(self) -> Self {
        let shape = self.shape.and_then(|shape| shape.items.as_deref());
        Self {
            shape,
            resource: shape.is_some_and(|s| s.embedded_resource),
        }
    }

    /// The path element of a list item, or an error.
    fn elem(self, item: &Value) -> Result<Elem, String> {
        let Some(shape) = self.shape.filter(|s| s.list_type == ListType::Map) else {
            return match item {
                Value::Object(_) => Err("associative list without keys has an element that's a map type".to_owned()),
                Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
                Value::Null => Err("associative list without keys has an element that's an explicit null".to_owned()),
                scalar => Ok(Elem::value(scalar)),
            };
        };
        let fields = match item {
            Value::Object(fields) => fields,
            Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
            _ => return Err("associative list with keys may not have non-map elements".to_owned()),
        };
        let mut keys: Vec<(&str, &Value)> = Vec::with_capacity(shape.list_map_keys.len());
        for name in &shape.list_map_keys {
            let default = || shape.items.as_ref()?.properties.get(name)?.default.as_ref();
            if let Some(value) = fields.get(name).or_else(default) {
                keys.push((name, value));
            }
        }
        if keys.is_empty() {
            let names: Vec<_> = shape.list_map_keys.iter().map(|name| format!("{name:?}")).collect();
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
                names.join(" ")
            ));
        }
        keys.sort_unstable_by_key(|(name, _)| *name);
        Ok(Elem::keys(keys))
    }
}

fn is_empty_map(value: Option<&Value>) -> bool {
    value.and_then(Value::as_object).is_none_or(Map::is_empty)
}

fn is_empty_list(value: Option<&Value>) -> bool {
    value.and_then(Value::as_array).is_none_or(Vec::is_empty)
}

/// Equality in which 1 and 1.0 are the same.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => x == y || x.as_f64() == y.as_f64(),
        (Value::Array(x), Value::Array(y)) => x.len() == y.len() && x.iter().zip(y).all(|(a, b)| same(a, b)),
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len() && x.iter().all(|(name, a)| y.get(name).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

/// The set of all fields of a value.
pub(crate) fn field_set(view: View<'_>, value: &Value) -> FieldSet {
    collect(view, value).below
}

fn collect(view: View<'_>, value: &Value) -> Node {
    let mut node = Node::default();
    match view.atom(Some(value)) {
        Atom::Scalar => node.member = true,
        Atom::List if view.list_type() == ListType::Atomic => node.member = true,
        Atom::Map if view.is_atomic_map() => node.member = true,
        Atom::List => {
            for item in value.as_array().into_iter().flatten() {
                if let Ok(elem) = view.elem(item) {
                    match node.below.nodes.entry(elem) {
                        std::collections::btree_map::Entry::Vacant(free) => {
                            let below = collect(view.item(), item).below;
                            free.insert(Node { member: true, below });
                        }
                        // Of duplicate items, only the item itself is owned, without its fields.
                        std::collections::btree_map::Entry::Occupied(mut taken) => {
                            taken.get_mut().below = FieldSet::new();
                        }
                    }
                }
            }
        }
        Atom::Map => {
            for (name, child) in value.as_object().into_iter().flatten() {
                let mut below = collect(view.field(name), child);
                if child.is_null() || child.as_object().is_some_and(Map::is_empty) || !view.is_named(name) {
                    below.member = true;
                }
                if !below.is_empty() {
                    node.below.nodes.insert(Elem::field(name), below);
                }
            }
        }
    }
    node
}

/// The differences between two values.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    pub(crate) added: FieldSet,
    pub(crate) modified: FieldSet,
    pub(crate) removed: FieldSet,
}

#[derive(Default)]
struct Diff {
    added: Node,
    modified: Node,
    removed: Node,
}

impl Diff {
    fn attach(&mut self, elem: &Elem, below: Self) {
        for (ours, theirs) in [
            (&mut self.added, below.added),
            (&mut self.modified, below.modified),
            (&mut self.removed, below.removed),
        ] {
            if !theirs.is_empty() {
                let node = ours.below.nodes.entry(elem.clone()).or_default();
                node.member |= theirs.member;
                node.below.append(theirs.below);
            }
        }
    }
}

/// Compares two values of one type.
pub(crate) fn compare(view: View<'_>, old: &Value, new: &Value) -> Comparison {
    let mut diff = Diff::default();
    differ(view, Some(old), Some(new), &mut diff);
    Comparison {
        added: diff.added.below,
        modified: diff.modified.below,
        removed: diff.removed.below,
    }
}

fn differ(view: View<'_>, old: Option<&Value>, new: Option<&Value>, out: &mut Diff) {
    if let (Some(old), Some(new)) = (old, new)
        && old == new
    {
        return;
    }
    let (before, after) = (view.atom(old), view.atom(new));
    let in_leaf = if new.is_none() {
        step(view, before, old, new, out)
    } else if old.is_none() || before == after {
        step(view, after, old, new, out)
    } else {
        step(view, before, old, new, out);
        step(view, after, old, new, out)
    };
    if !in_leaf {
        out.added.member |= old.is_none();
        out.removed.member |= new.is_none();
    }
}

/// Compares one level. Returns true if it was compared as one value.
fn step(view: View<'_>, atom: Atom, old: Option<&Value>, new: Option<&Value>, out: &mut Diff) -> bool {
    let leaf = match atom {
        Atom::Scalar => true,
        Atom::Map => view.is_atomic_map() || (is_empty_map(old) && is_empty_map(new)),
        Atom::List => view.list_type() == ListType::Atomic || (is_empty_list(old) && is_empty_list(new)),
    };
    if leaf {
        match (old, new) {
            (None, _) => out.added.member = true,
            (_, None) => out.removed.member = true,
            (Some(old), Some(new)) => out.modified.member |= !same(old, new),
        }
        return true;
    }
    match atom {
        Atom::Map => {
            let (old, new) = (old.and_then(Value::as_object), new.and_then(Value::as_object));
            for (name, before) in old.into_iter().flatten() {
                let after = new.and_then(|new| new.get(name));
                if after != Some(before) {
                    descend(view.field(name), || Elem::field(name), Some(before), after, out);
                }
            }
            for (name, after) in new.into_iter().flatten() {
                if old.is_none_or(|old| !old.contains_key(name)) {
                    descend(view.field(name), || Elem::field(name), None, Some(after), out);
                }
            }
        }
        _ => differ_lists(view, old, new, out),
    }
    false
}

fn descend(view: View<'_>, elem: impl FnOnce() -> Elem, old: Option<&Value>, new: Option<&Value>, out: &mut Diff) {
    let mut below = Diff::default();
    differ(view, old, new, &mut below);
    if !(below.added.is_empty() && below.modified.is_empty() && below.removed.is_empty()) {
        out.attach(&elem(), below);
    }
}

/// The items of a list by element, and the elements in order of first appearance.
type Groups<'a> = (Vec<Elem>, HashMap<Elem, Vec<&'a Value>>);

fn group<'a>(view: View<'_>, list: Option<&'a Value>) -> Groups<'a> {
    let mut order = Vec::new();
    let mut items: HashMap<Elem, Vec<&Value>> = HashMap::new();
    for item in list.and_then(Value::as_array).into_iter().flatten() {
        if let Ok(elem) = view.elem(item) {
            let places = items.entry(elem.clone()).or_default();
            if places.is_empty() {
                order.push(elem);
            }
            places.push(item);
        }
    }
    (order, items)
}

fn differ_lists(view: View<'_>, old: Option<&Value>, new: Option<&Value>, out: &mut Diff) {
    let (mut order, before) = group(view, old);
    let (new_order, after) = group(view, new);
    order.extend(new_order.into_iter().filter(|elem| !before.contains_key(elem)));
    let none = Vec::new();
    for elem in order {
        let (l, r) = (before.get(&elem).unwrap_or(&none), after.get(&elem).unwrap_or(&none));
        let member = |node: &mut Node| node.below.nodes.entry(elem.clone()).or_default().member = true;
        match (l.len(), r.len()) {
            (0 | 1, 0 | 1) => descend(
                view.item(),
                || elem.clone(),
                l.first().copied(),
                r.first().copied(),
                out,
            ),
            (2.., 2..) => {
                if l.len() != r.len() || !l.iter().zip(r).all(|(a, b)| same(a, b)) {
                    member(&mut out.modified);
                }
            }
            (2.., _) => {
                if let Some(only) = r.first() {
                    descend(view.item(), || elem.clone(), None, Some(only), out);
                }
                member(&mut out.removed);
            }
            (_, _) => {
                if let Some(only) = l.first() {
                    descend(view.item(), || elem.clone(), Some(only), None, out);
                }
                member(&mut out.added);
            }
        }
    }
}

/// Merges an applied configuration into a live value, in place.
pub(crate) fn merge(view: View<'_>, live: &mut Value, applied: &Value) -> Result<(), ApplyError> {
    match view.atom(Some(applied)) {
        Atom::Map if !view.is_atomic_map() => {
            let Value::Object(fields) = applied else {
                // An explicit null does not clear fields of other managers.
                if is_empty_map(Some(live)) {
                    *live = applied.clone();
                }
                return Ok(());
            };
            if !live.is_object() {
                *live = Value::Object(Map::new());
            }
            if let Value::Object(target) = live {
                for (name, child) in fields {
                    let below = view.field(name);
                    let outcome = if let Some(there) = target.get_mut(name) {
                        merge(below, there, child)
                    } else {
                        let mut fresh = Value::Null;
                        let outcome = merge(below, &mut fresh, child);
                        target.insert(name.clone(), fresh);
                        outcome
                    };
                    outcome.map_err(|e| at(&Elem::field(name), e))?;
                }
            }
            Ok(())
        }
        Atom::List if view.list_type() != ListType::Atomic => {
            let Value::Array(items) = applied else {
                if is_empty_list(Some(live)) {
                    *live = applied.clone();
                }
                return Ok(());
            };
            let before = match live {
                Value::Array(list) => std::mem::take(list),
                _ => Vec::new(),
            };
            *live = Value::Array(merge_lists(view, before, items)?);
            Ok(())
        }
        _ => {
            *live = applied.clone();
            Ok(())
        }
    }
}

fn at(elem: &Elem, error: ApplyError) -> ApplyError {
    match error {
        ApplyError::Invalid(text) if text.starts_with(['.', '[']) => ApplyError::Invalid(format!("{elem}{text}")),
        ApplyError::Invalid(text) => ApplyError::Invalid(format!("{elem}: {text}")),
        other => other,
    }
}

/// Removes the fields of a set with everything below them, in place. A map or list that loses its last element becomes null, so
/// that it stays in the field set.
pub(crate) fn remove(view: View<'_>, value: &mut Value, set: &FieldSet) {
    let emptied = match value {
        Value::Object(map) if !view.is_atomic_map() => {
            map.retain(|name, child| match set.nodes.get(&Elem::field(name)) {
                None => true,
                Some(node) if node.member => false,
                Some(node) => {
                    remove(view.field(name), child, &node.below);
                    true
                }
            });
            map.is_empty()
        }
        Value::Array(items) if view.list_type() != ListType::Atomic => {
            items.retain_mut(
                |item| match view.elem(item).ok().and_then(|elem| set.nodes.get(&elem)) {
                    None => true,
                    Some(node) if node.member => false,
                    Some(node) => {
                        remove(view.item(), item, &node.below);
                        true
                    }
                },
            );
            items.is_empty()
        }
        _ => false,
    };
    if emptied {
        *value = Value::Null;
    }
}

/// The set with the named fields on the paths of its members.
pub(crate) fn with_named(view: View<'_>, set: &FieldSet) -> FieldSet {
    let mut out = FieldSet::new();
    for (elem, node) in &set.nodes {
        let (named, below) = match elem.name() {
            Some(name) => (view.is_named(name), view.field(name)),
            None if elem.is_key() => (false, view.item()),
            None => (
                false,
                View {
                    shape: None,
                    resource: false,
                },
            ),
        };
        let member = node.member || (named && !node.below.is_empty());
        out.nodes.insert(
            elem.clone(),
            Node {
                member,
                below: with_named(below, &node.below),
            },
        );
    }
    out
}
