//! A part of an object together with its path, so that an error names the place that a rule has looked at.

use serde_json::{Map, Value};
use windlass_schema::FieldError;

static NOTHING: Value = Value::Null;

/// A part of an object, which may be missing, and its path: `spec.files[2].path`.
#[derive(Clone, Debug)]
pub struct Field<'a> {
    path: String,
    value: &'a Value,
}

impl<'a> Field<'a> {
    /// A whole object.
    pub fn of(object: &'a Value) -> Self {
        Self {
            path: String::new(),
            value: object,
        }
    }

    /// A value at a path. For a value that is shown at another place than it stands.
    pub fn at(path: impl Into<String>, value: &'a Value) -> Self {
        Self {
            path: path.into(),
            value,
        }
    }

    /// The field below this one, or the one at a path of names with points between them.
    #[must_use]
    pub fn child(&self, names: &str) -> Self {
        let mut value = self.value;
        for name in names.split('.') {
            value = value.get(name).unwrap_or(&NOTHING);
        }
        Self {
            path: self.path_of(names),
            value,
        }
    }

    /// An entry of a map, whose name may have points: `metadata.annotations[a.b/c]` is written with points, as Kubernetes does.
    #[must_use]
    pub fn entry(&self, name: &str) -> Self {
        Self {
            path: self.path_of(name),
            value: self.value.get(name).unwrap_or(&NOTHING),
        }
    }

    /// The items of a list: `files[0]`.
    pub fn items(&self) -> impl Iterator<Item = Self> {
        let items = self.value.as_array().into_iter().flatten().enumerate();
        items.map(|(index, value)| Self {
            path: format!("{}[{index}]", self.path),
            value,
        })
    }

    /// The items of a list, named by one of their fields: `machineDeployments[md-0]`.
    pub fn keyed(&self, key: &'static str) -> impl Iterator<Item = Self> {
        let items = self.value.as_array().into_iter().flatten();
        items.map(move |value| Self {
            path: format!("{}[{}]", self.path, value[key].as_str().unwrap_or_default()),
            value,
        })
    }

    /// The value at a path as errors have it: an item of a list is named by its number, or by its `name` or `class`. `null` if there is none.
    pub fn find(object: &'a Value, path: &str) -> &'a Value {
        let mut at = object;
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
                let numbered = key.parse::<usize>().ok().and_then(|number| at.get(number));
                let is_named = |item: &&Value| ["name", "class"].iter().any(|field| item[*field] == key);
                let named = at.as_array().and_then(|items| items.iter().find(is_named));
                at = named.or(numbered).unwrap_or(&NOTHING);
                rest = after;
            }
            rest = rest.strip_prefix('.').unwrap_or(rest);
        }
        at
    }

    /// The path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The path of a field below this one.
    pub fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    /// The value; `null` if the field is missing.
    pub fn value(&self) -> &'a Value {
        self.value
    }

    /// Whether the field is there, and more than an empty object or list: Go's types cannot tell those from a missing one.
    pub fn is_set(&self) -> bool {
        match self.value {
            Value::Null => false,
            Value::Object(map) => !map.is_empty(),
            Value::Array(list) => !list.is_empty(),
            _ => true,
        }
    }

    /// The text; empty if the field is missing.
    pub fn text(&self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    /// The number.
    pub fn number(&self) -> Option<i64> {
        self.value.as_i64()
    }

    /// Whether the field is `true`.
    pub fn is_true(&self) -> bool {
        self.value.as_bool() == Some(true)
    }

    /// The number of items.
    pub fn len(&self) -> usize {
        self.value.as_array().map_or(0, Vec::len)
    }

    /// Whether there is no item.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The fields of an object.
    pub fn map(&self) -> Option<&'a Map<String, Value>> {
        self.value.as_object()
    }

    /// The value breaks a rule.
    pub fn invalid(&self, detail: impl Into<String>) -> FieldError {
        FieldError::invalid(self.path.clone(), self.value.clone(), detail)
    }

    /// The value is missing.
    pub fn required(&self, detail: impl Into<String>) -> FieldError {
        FieldError::required(self.path.clone(), detail)
    }

    /// The field may not be set, removed or changed like this.
    pub fn forbidden(&self, detail: impl Into<String>) -> FieldError {
        FieldError::forbidden(self.path.clone(), detail)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_knows_its_path_whether_it_is_there_or_not() {
        let object = json!({"spec": {"sets": [{"name": "a", "size": 3}], "empty": {}}});
        let spec = Field::of(&object).child("spec");
        let check = |field: &Field<'_>, path: &str, value: &Value| {
            assert_eq!((field.path(), field.value()), (path, value));
        };
        check(&spec.child("a.b"), "spec.a.b", &Value::Null);
        let sets = spec.child("sets");
        check(
            &sets.items().next().unwrap().child("size"),
            "spec.sets[0].size",
            &json!(3),
        );
        check(
            &sets.keyed("name").next().unwrap().child("size"),
            "spec.sets[a].size",
            &json!(3),
        );
        assert!(!spec.child("empty").is_set() && !spec.child("none").is_set() && sets.is_set());
        assert_eq!((sets.len(), spec.len()), (1, 0));
        let named = json!({"a": [{"name": "x.y", "b": 1}, {"class": "z", "b": [2]}]});
        let find = |path: &str| Field::find(&named, path).clone();
        assert_eq!((find("a[x.y].b"), find("a[1].b[0]")), (json!(1), json!(2)));
        assert_eq!(
            (find("a[none].b"), find("a[x.y]b["), find("")),
            (Value::Null, Value::Null, named.clone())
        );
        assert_eq!(
            sets.items()
                .next()
                .unwrap()
                .child("size")
                .invalid("too small")
                .to_string(),
            "spec.sets[0].size: Invalid value: 3: too small"
        );
    }
}
