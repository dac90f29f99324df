//! Builds JSON objects without empty fields, as Go does.

use serde_json::{Map, Value};

/// A JSON object under construction. Methods named after types omit empty fields.
#[derive(Default)]
pub(crate) struct Object(Map<String, Value>);

impl Object {
    pub(crate) fn value(mut self, key: &str, value: Value) -> Self {
        self.0.insert(key.to_owned(), value);
        self
    }

    pub(crate) fn some(self, key: &str, value: Option<Value>) -> Self {
        match value {
            Some(value) => self.value(key, value),
            None => self,
        }
    }

    pub(crate) fn text(self, key: &str, text: Option<&str>) -> Self {
        match text {
            Some(text) if !text.is_empty() => self.value(key, text.into()),
            _ => self,
        }
    }

    pub(crate) fn flag(self, key: &str, flag: Option<bool>) -> Self {
        if flag == Some(true) {
            self.value(key, true.into())
        } else {
            self
        }
    }

    pub(crate) fn number(self, key: &str, number: Option<i32>) -> Self {
        match number {
            Some(number) if number != 0 => self.value(key, number.into()),
            _ => self,
        }
    }

    pub(crate) fn texts(self, key: &str, texts: &[String]) -> Self {
        if texts.is_empty() {
            self
        } else {
            self.value(key, texts.into())
        }
    }

    pub(crate) fn list(self, key: &str, items: Vec<Value>) -> Self {
        if items.is_empty() {
            self
        } else {
            self.value(key, items.into())
        }
    }

    pub(crate) fn build(self) -> Value {
        Value::Object(self.0)
    }
}
