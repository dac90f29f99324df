//! Removes values from an answer that differ by chance: uids, versions, times, tokens, generated names.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use jiff::Timestamp;
use regex::{Captures, Regex};
use serde_json::{Map, Value, json};

use crate::case::Step;
use crate::path;
use crate::vars::Vars;

/// An answer of a server.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, Vec<String>>,
    pub(crate) body: Body,
}

/// A body.
#[derive(Debug)]
pub(crate) enum Body {
    Json(Value),
    Text(String),
    Binary,
    Events(Vec<Value>),
}

impl Body {
    pub(crate) fn of(bytes: &[u8], headers: &BTreeMap<String, Vec<String>>) -> Self {
        let mut types = headers.get("content-type").into_iter().flatten();
        // The content is compared, not its line breaks.
        if types.any(|media| media.starts_with("application/yaml"))
            && let Ok(text) = std::str::from_utf8(bytes)
            && let Ok(value) = serde_saphyr::from_str(text)
        {
            return Self::Json(value);
        }
        if let Ok(value) = serde_json::from_slice(bytes) {
            return Self::Json(value);
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Binary,
        }
    }

    /// The body as JSON, to look values up.
    pub(crate) fn json(&self) -> Option<Value> {
        match self {
            Self::Json(value) => Some(value.clone()),
            Self::Events(events) => Some(Value::Array(events.clone())),
            Self::Text(_) | Self::Binary => None,
        }
    }
}

static UID: LazyLock<Regex> = LazyLock::new(|| {
    #[expect(clippy::unwrap_used, reason = "a constant; the tests use it")]
    Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").unwrap()
});

/// The whole object in an error about a patch, whose fields are in the order of Go's types.
static QUOTED_OBJECT: LazyLock<Regex> = LazyLock::new(|| {
    #[expect(clippy::unwrap_used, reason = "a constant; the tests use it")]
    Regex::new(r#"Invalid value: "\{\\"(?:[^"\\]|\\.)*\}": "#).unwrap()
});

/// Parts of messages with the current revision of the store or the version of an object.
static NOW: LazyLock<Regex> = LazyLock::new(|| {
    #[expect(clippy::unwrap_used, reason = "a constant; the tests use it")]
    Regex::new(r"(version: \d+, current: |ResourceVersion in record \()(?:\d+|\$rv)").unwrap()
});

/// The placeholders of generated names so far in a case.
#[derive(Debug, Default)]
pub(crate) struct Normal {
    uids: HashMap<String, usize>,
    versions: HashMap<String, usize>,
}

/// An age in the form of tables: `5s`, `3m15s`, `2y325d`.
static AGE: LazyLock<Regex> = LazyLock::new(|| {
    #[expect(clippy::unwrap_used, reason = "a constant; the tests use it")]
    Regex::new("^(?:[0-9]+[ydhms]){1,2}$").unwrap()
});

/// Removes an age from a cell: ages differ between runs, even if the case sets the time.
fn forget_age(cell: &mut Value) {
    if cell.as_str().is_some_and(|text| AGE.is_match(text)) {
        *cell = json!("AGE");
    }
}

impl Normal {
    /// The part of an answer that is compared.
    pub(crate) fn answer(&mut self, answer: Answer, step: &Step, vars: &Vars) -> Value {
        let mut out = Map::new();
        out.insert("status".to_owned(), json!(answer.status));
        let headers: Map<String, Value> = answer
            .headers
            .into_iter()
            .map(|(name, values)| (name, values.into_iter().map(|value| self.text(&value, vars)).collect()))
            .collect();
        out.insert("headers".to_owned(), Value::Object(headers));
        let body = match answer.body {
            Body::Json(value) => self.part(value, step, vars),
            Body::Text(text) => self.text(&text, vars),
            Body::Binary => json!("bytes that are no text"),
            Body::Events(events) => {
                let events = events.into_iter().map(|event| self.part(event, step, vars)).collect();
                out.insert("events".to_owned(), events);
                return Value::Object(out);
            }
        };
        out.insert("body".to_owned(), body);
        Value::Object(out)
    }

    fn part(&mut self, mut value: Value, step: &Step, vars: &Vars) -> Value {
        for at in &step.hide {
            path::remove(&mut value, &vars.fill(at));
        }
        let value = match &step.show {
            None => value,
            Some(paths) => {
                let shown = |at: &String| {
                    (
                        at.clone(),
                        path::select(&value, &vars.fill(at)).unwrap_or(json!("absent")),
                    )
                };
                paths.iter().map(shown).collect()
            }
        };
        self.value(value, "", false, vars)
    }

    fn value(&mut self, value: Value, key: &str, of_list: bool, vars: &Vars) -> Value {
        match value {
            Value::String(text) if key == "resourceVersion" && !text.is_empty() && text != "0" => {
                if of_list {
                    return json!("RV");
                }
                json!(self.version(text))
            }
            Value::String(text) if key == "continue" && !text.is_empty() => json!("CONTINUE"),
            Value::String(text) => self.text(&text, vars),
            Value::Array(mut items) => {
                if key == "managedFields" {
                    sort_managers(&mut items);
                }
                if key == "resourceRules" || key == "nonResourceRules" {
                    // The server reads the bindings behind these in random order.
                    items.sort_by_cached_key(Value::to_string);
                }
                if key == "cells" {
                    items.iter_mut().for_each(forget_age);
                }
                items
                    .into_iter()
                    .map(|item| self.value(item, "", false, vars))
                    .collect()
            }
            Value::Object(map) => {
                // The metadata of lists and bookmarks has the revision of the store, which other cases change, too.
                let lists = map.contains_key("items")
                    || map
                        .get("kind")
                        .and_then(Value::as_str)
                        .is_some_and(|kind| kind.ends_with("List"))
                    || map.contains_key("rows")
                    || map.get("type") == Some(&json!("BOOKMARK"));
                let inner = |key: &str| {
                    (lists && (key == "metadata" || key == "object"))
                        || (of_list && key == "metadata")
                        || (of_list && key == "resourceVersion")
                };
                map.into_iter()
                    .map(|(key, value)| {
                        let of_list = inner(&key);
                        let value = self.value(value, key.rsplit('.').next().unwrap_or(&key), of_list, vars);
                        (self.plain(&key, vars), value)
                    })
                    .collect()
            }
            other => other,
        }
    }

    fn version(&mut self, text: String) -> String {
        let next = self.versions.len() + 1;
        format!("rv-{}", self.versions.entry(text).or_insert(next))
    }

    fn text(&mut self, text: &str, vars: &Vars) -> Value {
        if is_about_now(text) {
            return json!("TIME");
        }
        json!(self.plain(text, vars))
    }

    /// A text without generated names and uids.
    fn plain(&mut self, text: &str, vars: &Vars) -> String {
        let text = vars.name(text);
        let text = QUOTED_OBJECT.replace_all(&text, "Invalid value: OBJECT: ");
        let text = NOW.replace_all(&text, "${1}RV");
        let name = |found: &Captures<'_>| {
            let next = self.uids.len() + 1;
            format!("uid-{}", self.uids.entry(found[0].to_owned()).or_insert(next))
        };
        UID.replace_all(&text, name).into_owned()
    }
}

/// Sorts managers by operation and name: they are listed by the second of their last change, so that their order depends on chance.
fn sort_managers(entries: &mut [Value]) {
    entries.sort_by_cached_key(|entry| {
        ["operation", "manager", "apiVersion", "subresource"]
            .map(|field| entry.get(field).and_then(Value::as_str).unwrap_or_default().to_owned())
    });
}

/// Whether a time is about now; others were set by the case.
fn is_about_now(text: &str) -> bool {
    let looks_like = text.len() >= 20 && text.ends_with('Z') && text.as_bytes().get(10) == Some(&b'T');
    looks_like
        && text
            .parse::<Timestamp>()
            .is_ok_and(|time| time.duration_until(Timestamp::now()).as_secs().abs() < 86_400)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(body: Value) -> Value {
        let answer = Answer {
            status: 200,
            headers: BTreeMap::new(),
            body: Body::Json(body),
        };
        Normal::default().answer(answer, &Step::default(), &Vars::default())["body"].clone()
    }

    #[test]
    fn managers_are_sorted_and_patched_objects_left_out_of_messages() {
        let entry = |manager: &str, operation: &str| json!({"manager": manager, "operation": operation});
        assert_eq!(
            normal(json!({"managedFields": [entry("b", "Apply"), entry("a", "Update"), entry("a", "Apply")]})),
            json!({"managedFields": [entry("a", "Apply"), entry("b", "Apply"), entry("a", "Update")]})
        );
        assert_eq!(
            normal(json!(
                r#"patch: Invalid value: "{\"a\":\"2\",\"b\":{}}": strict decoding error: unknown field \"b\""#
            )),
            json!(r#"patch: Invalid value: OBJECT: strict decoding error: unknown field \"b\""#)
        );
    }

    #[test]
    fn rules_of_a_review_are_sorted() {
        let rules =
            |paths: [&str; 2]| json!({"nonResourceRules": paths.map(|path| json!({"nonResourceURLs": [path]}))});
        assert_eq!(normal(rules(["/version", "/api"])), rules(["/api", "/version"]));
    }

    #[test]
    fn ages_are_left_out_of_tables_whatever_they_are() {
        let rows = |cells: Value| json!({"rows": [{"cells": cells}]});
        assert_eq!(
            normal(rows(json!([
                "a", "0s", "3m15s", "2y325d", 5, "5", "s", "1s2m3h", "v1s"
            ]))),
            rows(json!(["a", "AGE", "AGE", "AGE", 5, "5", "s", "1s2m3h", "v1s"]))
        );
    }

    #[test]
    fn what_differs_by_chance_gets_a_name_by_first_appearance() {
        let uid = "01234567-89ab-cdef-0123-456789abcdef";
        let object = json!({"metadata": {"uid": uid, "resourceVersion": "77", "creationTimestamp": Timestamp::now().to_string()}});
        let list = json!({"metadata": {"resourceVersion": "80", "continue": "abc"}, "items": [object, object]});
        let named = json!({"metadata": {"uid": "uid-1", "resourceVersion": "rv-1", "creationTimestamp": "TIME"}});
        assert_eq!(
            normal(list),
            json!({"metadata": {"resourceVersion": "RV", "continue": "CONTINUE"}, "items": [named, named]})
        );
        assert_eq!(
            normal(json!({"at": "2001-01-01T00:00:00Z"})),
            json!({"at": "2001-01-01T00:00:00Z"})
        );
    }
}
