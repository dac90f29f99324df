//! A part of an object together with its path, so that an error names the place that a rule has looked at.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Map, Value};
use windlass_schema::FieldError;

static NOTHING: Value = Value::Null;

/// A part of an object, which may be missing, and its path: `spec.files[2].path`.
///
/// The path is written only when an error needs it. The names in it come from the object and may be long, and a rule looks at many parts
/// below them.
#[derive(Clone, Debug)]
pub struct Field<'a> {
    step: Option<Arc<Step<'a>>>,
    value: &'a Value,
}

/// The last step of a path, and the steps before it.
#[derive(Debug)]
struct Step<'a> {
    before: Option<Arc<Self>>,
    to: To<'a>,
}

#[derive(Debug)]
enum To<'a> {
    /// A field, or names of fields with points between them.
    Field(Box<str>),
    /// An item of a list by its number.
    Item(usize),
    /// An item of a list by one of its fields.
    Keyed(&'a str),
}

impl<'a> Field<'a> {
    /// A whole object.
    pub fn of(object: &'a Value) -> Self {
        Self {
            step: None,
            value: object,
        }
    }

    /// A value at a path. For a value that is shown at another place than it stands.
    pub fn at(path: impl Into<String>, value: &'a Value) -> Self {
        Self::of(value).step(To::Field(path.into().into_boxed_str()), value)
    }

    /// The value one step below this one.
    fn step(&self, to: To<'a>, value: &'a Value) -> Self {
        let before = self.step.clone();
        Self {
            step: Some(Arc::new(Step { before, to })),
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
        self.step(To::Field(names.into()), value)
    }

    /// An entry of a map, whose name may have points: `metadata.annotations[a.b/c]` is written with points, as Kubernetes does.
    #[must_use]
    pub fn entry(&self, name: &str) -> Self {
        self.step(To::Field(name.into()), self.value.get(name).unwrap_or(&NOTHING))
    }

    /// The items of a list: `files[0]`.
    pub fn items(&self) -> impl Iterator<Item = Self> {
        let items = self.value.as_array().into_iter().flatten().enumerate();
        items.map(|(index, value)| self.step(To::Item(index), value))
    }

    /// The items of a list, named by one of their fields: `machineDeployments[md-0]`.
    pub fn keyed(&self, key: &'static str) -> impl Iterator<Item = Self> {
        let items = self.value.as_array().into_iter().flatten();
        items.map(move |value| self.step(To::Keyed(value[key].as_str().unwrap_or_default()), value))
    }

    /// The path.
    pub fn path(&self) -> String {
        let mut steps = Vec::new();
        let mut at = self.step.as_ref();
        while let Some(step) = at {
            steps.push(&step.to);
            at = step.before.as_ref();
        }
        let mut path = String::new();
        for to in steps.into_iter().rev() {
            // Writing to a text cannot fail.
            let _ = match to {
                To::Field(names) if path.is_empty() => write!(path, "{names}"),
                To::Field(names) => write!(path, ".{names}"),
                To::Item(index) => write!(path, "[{index}]"),
                To::Keyed(key) => write!(path, "[{key}]"),
            };
        }
        path
    }

    /// The path of a field below this one.
    pub fn path_of(&self, name: &str) -> String {
        self.child(name).path()
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
        FieldError::invalid(self.path(), self.value.clone(), detail)
    }

    /// The value is missing.
    pub fn required(&self, detail: impl Into<String>) -> FieldError {
        FieldError::required(self.path(), detail)
    }

    /// The field may not be set, removed or changed like this.
    pub fn forbidden(&self, detail: impl Into<String>) -> FieldError {
        FieldError::forbidden(self.path(), detail)
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
            assert_eq!((field.path().as_str(), field.value()), (path, value));
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
