//! Errors of an update that there were before, about what has not changed.
//!
//! Paths and lists are as long as the sender of an object likes. So each list is walked once, and each path is compared once.

use std::collections::HashMap;

use serde_json::Value;
use windlass_schema::{FieldError, is_full};

static NOTHING: Value = Value::Null;

/// Drops the errors in `errors` that are also in `before`, about values that are the same in both objects. Where not all errors are known,
/// those about a specification that has not changed are dropped: an object can lose its finalizers, however wrong it is.
pub(crate) fn drop_known(errors: &mut Vec<FieldError>, before: &[FieldError], old: &Value, new: &Value) {
    if is_full(errors) || is_full(before) {
        if old["spec"] == new["spec"] {
            errors.retain(|error| !error.path.starts_with("spec"));
        }
        return;
    }
    let mut known: HashMap<&str, Vec<&FieldError>> = HashMap::new();
    for error in before {
        known.entry(&error.path).or_default().push(error);
    }
    let (mut old, mut new) = (Finder::of(old), Finder::of(new));
    let mut unchanged: HashMap<&str, bool> = HashMap::new();
    errors.retain(|error| {
        let Some((path, known)) = known.get_key_value(error.path.as_str()) else {
            return true;
        };
        !known.contains(&error)
            || !*unchanged
                .entry(path)
                .or_insert_with(|| old.find(path) == new.find(path))
    });
}

/// Finds the values at the paths of errors.
struct Finder<'a> {
    object: &'a Value,
    /// The items of lists by their names.
    named: HashMap<*const Value, HashMap<&'a str, &'a Value>>,
}

impl<'a> Finder<'a> {
    fn of(object: &'a Value) -> Self {
        Self {
            object,
            named: HashMap::new(),
        }
    }

    /// The value at a path as errors have it: an item of a list is named by its number, or by its `name` or `class`. `null` if there is none.
    fn find(&mut self, path: &str) -> &'a Value {
        let mut at = self.object;
        let mut rest = path;
        while !rest.is_empty() {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            at = at.get(name).unwrap_or(&NOTHING);
            rest = after;
            // A key may have points.
            if let Some(inner) = rest.strip_prefix('[') {
                let Some((key, after)) = inner.split_once(']') else {
                    return &NOTHING;
                };
                at = self.item(at, key).unwrap_or(&NOTHING);
                rest = after;
            }
            rest = rest.strip_prefix('.').unwrap_or(rest);
        }
        at
    }

    fn item(&mut self, list: &'a Value, key: &str) -> Option<&'a Value> {
        let numbered = || list.get(key.parse::<usize>().ok()?);
        let Some(items) = list.as_array() else {
            return numbered();
        };
        let named = self.named.entry(list).or_insert_with(|| {
            let mut named = HashMap::new();
            for item in items {
                let names = ["name", "class"].into_iter().filter_map(|field| item[field].as_str());
                for name in names {
                    named.entry(name).or_insert(item);
                }
            }
            named
        });
        named.get(key).copied().or_else(numbered)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// More errors than are counted must not keep an object from ending.
    #[test]
    fn an_object_with_countless_errors_can_be_changed_outside_of_its_specification() {
        let error = |number: usize| FieldError::invalid(format!("spec.items[{number}]"), Value::Null, "wrong");
        let many: Vec<FieldError> = (0..=windlass_schema::MOST_ERRORS).map(error).collect();
        let object =
            |spec: i32, finalizers: Value| json!({"metadata": {"finalizers": finalizers}, "spec": {"a": spec}});
        let left = |old: &Value, new: &Value| {
            let mut errors = many.clone();
            errors.push(FieldError::forbidden("metadata.annotations", "new"));
            drop_known(&mut errors, &many, old, new);
            errors.len()
        };
        let held = object(1, json!(["a/b"]));
        assert_eq!(left(&held, &object(1, Value::Null)), 1);
        assert_eq!(left(&held, &object(2, json!(["a/b"]))), many.len() + 1);
    }

    #[test]
    fn a_value_is_found_by_number_and_by_name() {
        let object = json!({"a": [{"name": "x.y", "b": 1}, {"class": "z", "b": [2]}, {"name": "z", "b": 3}]});
        let mut finder = Finder::of(&object);
        let mut find = |path: &str| finder.find(path).clone();
        assert_eq!((find("a[x.y].b"), find("a[1].b[0]")), (json!(1), json!(2)));
        assert_eq!(find("a[z].b"), json!([2]));
        assert_eq!(
            (find("a[none].b"), find("a[x.y]b["), find("")),
            (Value::Null, Value::Null, object.clone())
        );
    }
}
