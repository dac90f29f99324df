//! Variables of a case: `$name` or `${name}` in requests, replaced by values; and in answers, values replaced by names.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;

static NAME: LazyLock<Regex> = LazyLock::new(|| {
    #[expect(clippy::unwrap_used, reason = "a constant; the tests use it")]
    Regex::new(r"\$(?:([a-z][A-Za-z0-9_]*)|\{([a-z][A-Za-z0-9_]*)\})").unwrap()
});

/// The variables of a case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vars {
    values: BTreeMap<String, Value>,
    /// Values and the texts that replace them in answers, in the order of replacement.
    back: Vec<(String, String)>,
}

impl Vars {
    /// Sets a variable. `shown` replaces its value with `$name` in answers.
    pub(crate) fn set(&mut self, name: &str, value: Value, shown: bool) {
        if shown && let Some(text) = value.as_str().filter(|text| text.len() > 3) {
            self.back.push((text.to_owned(), format!("${name}")));
        }
        self.values.insert(name.to_owned(), value);
    }

    /// Replaces variables in a text; unknown names stay as they are (`$patch`).
    pub(crate) fn fill(&self, text: &str) -> String {
        NAME.replace_all(text, |found: &Captures<'_>| {
            let name = found.get(1).or(found.get(2)).map_or("", |name| name.as_str());
            match self.values.get(name) {
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
                None => found[0].to_owned(),
            }
        })
        .into_owned()
    }

    /// Replaces variables in an object, also in keys. A string that consists of a variable becomes its value.
    pub(crate) fn fill_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => {
                let whole = text.strip_prefix('$').and_then(|name| self.values.get(name));
                whole.cloned().unwrap_or_else(|| Value::String(self.fill(text)))
            }
            Value::Array(items) => items.iter().map(|item| self.fill_value(item)).collect(),
            Value::Object(map) => map.iter().map(|(k, v)| (self.fill(k), self.fill_value(v))).collect(),
            other => other.clone(),
        }
    }

    /// Replaces values with variables in a text of an answer.
    pub(crate) fn name(&self, text: &str) -> String {
        self.back.iter().fold(text.to_owned(), |text, (value, name)| {
            if value.bytes().all(|b| b.is_ascii_digit()) {
                name_number(&text, value, name)
            } else {
                text.replace(value, name)
            }
        })
    }
}

/// Replaces a number only if it is not part of a longer one.
fn name_number(text: &str, value: &str, name: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(value) {
        let (before, after) = (&rest[..at], &rest[at + value.len()..]);
        let inside = before.ends_with(|c: char| c.is_ascii_alphanumeric())
            || after.starts_with(|c: char| c.is_ascii_alphanumeric());
        out.push_str(before);
        out.push_str(if inside { value } else { name });
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn variables_are_filled_in_and_written_back() {
        let mut vars = Vars::default();
        vars.set("id", json!("abcdefgh"), true);
        vars.set("rv", json!("1234"), true);
        assert_eq!(
            vars.fill("/x/$id.example.com?v=${rv}&$patch"),
            "/x/abcdefgh.example.com?v=1234&$patch"
        );
        assert_eq!(vars.name("abcdefgh at 1234, not 12345"), "$id at $rv, not 12345");
        assert_eq!(vars.fill_value(&json!({"$id": ["$rv"]})), json!({"abcdefgh": ["1234"]}));
    }
}
