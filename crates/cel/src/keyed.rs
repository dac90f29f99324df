//! Lists whose order has no meaning: those of the list types `set` and `map`. They are equal in any order, and `+` unites sets and
//! merges maps by key. As in Kubernetes, the left operand decides.

use std::collections::HashMap;
use std::sync::Arc;

use cel::ExecutionError;
use cel::common::traits::{Adder, Container, Indexer, Iterable, Sizer, Zeroer};
use cel::common::types::{CelList, CelMap, CelMapKey, Type};
use cel::common::value::{Builtin, BuiltinRef, CowVal, Val};
use cel::objects::Key;

/// Such a list.
#[derive(Debug, Clone)]
pub(super) struct Keyed<'v> {
    items: CelList<'v>,
    /// The names of the fields that identify an item, as expressions see them. Empty for a set: there an item identifies itself.
    keys: Arc<[String]>,
}

/// What identifies an item: the values of its keys.
type Label = Vec<Option<Key>>;

impl<'v> Keyed<'v> {
    pub(super) fn new(items: Vec<Box<dyn Val + 'v>>, keys: Arc<[String]>) -> Self {
        let items = CelList::from(items);
        Self { items, keys }
    }

    /// The label of an item; `None` if a key is no scalar.
    fn label(&self, item: &dyn Val) -> Option<Label> {
        if self.keys.is_empty() {
            return Some(vec![Some(scalar(item)?)]);
        }
        let fields = item.downcast_ref::<CelMap<'_>>()?.inner();
        let label = self.keys.iter().map(|key| {
            let field = fields.get(&CelMapKey::from(key.as_str()));
            field.map_or(Some(None), |value| scalar(value.as_ref()).map(Some))
        });
        label.collect()
    }

    /// Finds items by what identifies them.
    fn index(&self) -> Index<'_, 'v> {
        let labels = self.items.inner().iter().enumerate();
        let labels = labels.filter_map(|(at, item)| Some((self.label(item.as_ref())?, at)));
        Index {
            list: self,
            labels: labels.collect(),
        }
    }
}

/// A value that can be hashed.
fn scalar(value: &dyn Val) -> Option<Key> {
    CelMapKey::try_from(value.clone_as_boxed()).ok().map(Key::from)
}

struct Index<'l, 'v> {
    list: &'l Keyed<'v>,
    labels: HashMap<Label, usize>,
}

impl Index<'_, '_> {
    /// The place of the item that is identified as this one is.
    fn find(&self, item: &dyn Val) -> Option<usize> {
        match self.list.label(item) {
            Some(label) => self.labels.get(&label).copied(),
            // Doubles and structures are compared one by one.
            None => self.list.items.inner().iter().position(|mine| mine.equals(item)),
        }
    }
}

impl Val for Keyed<'_> {
    fn get_type(&self) -> &Type {
        self.items.get_type()
    }

    fn cel_type() -> &'static Type {
        CelList::cel_type()
    }

    fn as_adder<'b, 'w>(&'b self) -> Option<&'b (dyn Adder + 'w)>
    where
        Self: 'w,
    {
        Some(self)
    }

    fn as_container(&self) -> Option<&dyn Container> {
        self.items.as_container()
    }

    fn as_indexer<'b, 'w>(&'b self) -> Option<&'b (dyn Indexer + 'w)>
    where
        Self: 'w,
    {
        self.items.as_indexer()
    }

    fn into_indexer<'w>(self: Box<Self>) -> Option<Box<dyn Indexer + 'w>>
    where
        Self: 'w,
    {
        Box::new(self.items).into_indexer()
    }

    fn as_iterable<'b, 'w>(&'b self) -> Option<&'b (dyn Iterable + 'w)>
    where
        Self: 'w,
    {
        self.items.as_iterable()
    }

    fn as_sizer(&self) -> Option<&dyn Sizer> {
        self.items.as_sizer()
    }

    fn as_zeroer(&self) -> Option<&dyn Zeroer> {
        self.items.as_zeroer()
    }

    fn equals(&self, other: &dyn Val) -> bool {
        let Some(other) = other.downcast_ref::<CelList<'_>>() else {
            return false;
        };
        let (mine, index) = (self.items.inner(), self.index());
        let has = |item: &dyn Val| index.find(item).is_some_and(|at| mine[at].equals(item));
        mine.len() == other.inner().len() && other.inner().iter().all(|item| has(item.as_ref()))
    }

    fn clone_as_boxed<'w>(&self) -> Box<dyn Val + 'w>
    where
        Self: 'w,
    {
        Box::new(self.clone())
    }

    fn as_builtin<'b, 'w>(&'b self) -> BuiltinRef<'b, 'w>
    where
        Self: 'w,
    {
        BuiltinRef::List(&self.items)
    }

    fn into_builtin<'w>(self: Box<Self>) -> Option<Builtin<'w>>
    where
        Self: 'w,
    {
        Some(Builtin::List(self.items))
    }
}

impl Adder for Keyed<'_> {
    fn add<'b, 'w>(&'b self, other: &(dyn Val + 'w)) -> Result<CowVal<'b, 'w>, ExecutionError>
    where
        Self: 'w,
    {
        let unsupported = || ExecutionError::no_such_overload("_+_", Vec::new());
        let mut others = other.as_iterable().ok_or_else(unsupported)?.iter();
        let index = self.index();
        let mut items: Vec<Box<dyn Val + 'w>> = self.items.inner().iter().map(|item| item.clone_as_boxed()).collect();
        while let Some(item) = others.next() {
            match index.find(item) {
                Some(at) => items[at] = item.clone_as_boxed(),
                None => items.push(item.clone_as_boxed()),
            }
        }
        Ok(CowVal::owned(Keyed::new(items, Arc::clone(&self.keys))))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::Validator;

    /// Checks a rule about the change of a set of numbers, a set of texts and a map.
    fn check(rule: &str, holds: bool) {
        let item = json!({"type": "object", "required": ["a"], "properties": {
            "a": {"type": "string", "maxLength": 9}, "b-c": {"type": "integer", "default": 0}, "v": {"type": "integer"},
        }});
        let map = json!({
            "type": "array", "maxItems": 9, "items": item,
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b-c"],
        });
        let set = |of: &str| {
            json!({
                "type": "array", "maxItems": 9, "x-kubernetes-list-type": "set",
                "items": if of == "string" { json!({"type": of, "maxLength": 9}) } else { json!({"type": of}) },
            })
        };
        let atomic = json!({"type": "array", "maxItems": 9, "items": {"type": "integer"}});
        let schema = json!({"type": "object", "properties": {"spec": {
            "type": "object", "x-kubernetes-validations": [{"rule": rule, "message": "no"}],
            "properties": {"ints": set("integer"), "doubles": set("number"), "texts": set("string"), "map": map, "atomic": atomic},
        }}});
        let object = json!({"spec": {
            "ints": [1, 2], "doubles": [1.5, 2.5], "texts": ["x", "y"], "atomic": [1, 2],
            "map": [{"a": "x", "b-c": 1, "v": 1}, {"a": "x", "v": 2}],
        }});
        let old = json!({"spec": {
            "ints": [2, 1], "doubles": [2.5, 1.5], "texts": ["y", "z"], "atomic": [2, 1],
            "map": [{"a": "x", "v": 2}, {"a": "x", "b-c": 1, "v": 1}],
        }});
        let errors = Validator::crd(&schema).unwrap().validate(&object, Some(&old));
        let shown: Vec<String> = errors.iter().map(|error| error.detail.clone()).collect();
        assert_eq!(shown.join("; "), if holds { "" } else { "no" }, "{rule}");
    }

    #[test]
    fn the_order_of_sets_and_maps_has_no_meaning() {
        check("self.ints == oldSelf.ints && self.doubles == oldSelf.doubles", true);
        check("self.ints == [2, 1] && [2, 1] != self.ints", true);
        check("self.atomic == oldSelf.atomic", false);
        check("self.texts == oldSelf.texts", false);
        check("self.ints == [1] || self.ints == [1, 2, 3]", false);
        check("self.map == oldSelf.map", true);
        check("[self] == [oldSelf] || self.texts != oldSelf.texts", true);
        check("self.ints[0] == 1 && self.ints.size() == 2 && 2 in self.ints", true);
        check("self.ints.map(i, i * 2) == [2, 4] && self.ints.max() == 2", true);
    }

    #[test]
    fn sets_are_united_and_maps_are_merged() {
        check("(self.ints + oldSelf.ints).size() == 2", true);
        check("(self.atomic + oldSelf.atomic).size() == 4", true);
        check("self.doubles + [2.5, 3.5] == [3.5, 2.5, 1.5]", true);
        check("self.texts + oldSelf.texts == ['z', 'y', 'x']", true);
        check(
            "(self.map + oldSelf.map).size() == 2 && (self.map + oldSelf.map)[0].v == 1",
            true,
        );
        check("(self.map + self.map.filter(i, i.v == 2)) == oldSelf.map", true);
    }
}
