//! Differences between an expected and a generated object.

use serde_json::Value;

use super::{lines, shown};

/// How an object is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// Fields that are not expected may be there. What is expected as null may not.
    Subset,
    /// Both are the same.
    Exact,
}

/// The differences, each as some lines.
pub(super) fn differences(expected: &Value, got: &Value, how: How, at: &str) -> Vec<String> {
    let mut out = Vec::new();
    compare(expected, Some(got), how, at, &mut out);
    out
}

fn compare(expected: &Value, got: Option<&Value>, how: How, at: &str, out: &mut Vec<String>) {
    match (expected, got) {
        (Value::Null, None) => {}
        (Value::Object(wanted), Some(Value::Object(have))) => {
            for (name, value) in wanted {
                compare(value, have.get(name), how, &field(at, name), out);
            }
            if how == How::Exact {
                let more = have.iter().filter(|(name, _)| !wanted.contains_key(*name));
                out.extend(more.map(|(name, value)| differs(&field(at, name), None, Some(value))));
            }
        }
        (Value::Array(wanted), Some(Value::Array(have))) if wanted.len() == have.len() => {
            for (index, (value, got)) in wanted.iter().zip(have).enumerate() {
                compare(value, Some(got), how, &format!("{at}[{index}]"), out);
            }
        }
        (expected, Some(got)) if expected == got => {}
        (Value::Null, got) => out.push(differs(at, None, got)),
        (expected, got) => out.push(differs(at, Some(expected), got)),
    }
}

fn field(at: &str, name: &str) -> String {
    match (at, name.contains(['.', '[', ']'])) {
        ("", _) => name.to_owned(),
        (at, true) => format!("{at}[{name}]"),
        (at, false) => format!("{at}.{name}"),
    }
}

/// A difference in words; what has several lines, as changed lines.
fn differs(at: &str, expected: Option<&Value>, got: Option<&Value>) -> String {
    let is_short = |value: Option<&Value>| match value {
        Some(Value::String(text)) => !text.contains('\n') && text.len() <= 200,
        Some(Value::Object(map)) => map.is_empty(),
        Some(Value::Array(list)) => list.is_empty(),
        _ => true,
    };
    let word = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), ToString::to_string);
    if is_short(expected) && is_short(got) {
        return format!("{at}: expected {}, got {}", word(expected), word(got));
    }
    let text = |value: Option<&Value>| match value {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => shown(value),
    };
    let head = format!("{at}: differs (- expected, + got)");
    let lines = lines::difference(&text(expected), &text(got)).into_iter();
    let lines = lines.map(|line| format!("\n  {line}"));
    std::iter::once(head).chain(lines).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_subset_ignores_what_it_does_not_name() {
        let got = json!({"a": 1, "b": {"c": [1, {"d": "x"}], "e.f": true}, "t": "one\ntwo\n"});
        let check = |expected: Value, expect: &[&str]| {
            assert_eq!(differences(&expected, &got, How::Subset, "spec"), expect, "{expected}");
        };
        check(json!({}), &[]);
        check(json!({"a": 1, "b": {"c": [1, {}]}}), &[]);
        check(json!({"a": 2}), &["spec.a: expected 2, got 1"]);
        check(json!({"z": "x"}), &["spec.z: expected \"x\", got nothing"]);
        check(json!({"z": null}), &[]);
        check(json!({"a": null}), &["spec.a: expected nothing, got 1"]);
        check(json!({"b": {"e.f": false}}), &["spec.b[e.f]: expected false, got true"]);
        check(
            json!({"b": {"c": [1]}}),
            &["spec.b.c: differs (- expected, + got)\n   - 1\n  +- d: x"],
        );
        check(
            json!({"t": "one\nthree\n"}),
            &["spec.t: differs (- expected, + got)\n   one\n  -three\n  +two"],
        );
    }

    #[test]
    fn an_exact_comparison_finds_more_fields() {
        let found = differences(&json!({"a": 1}), &json!({"a": 1, "b": 2}), How::Exact, "");
        assert_eq!(found, ["b: expected nothing, got 2"]);
    }
}
