//! Label and field selectors.

mod parse;

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_schema::FieldError;

use crate::metadata::{strings, text};
use crate::names::{check_labels, label_value_problems, qualified_name_problems};

/// A label selector: all of its requirements hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector(Vec<Requirement>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: String,
    op: Op,
    /// Sorted, as a selector may have many and is compared with many objects.
    values: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    In,
    NotIn,
    Exists,
    Absent,
    Greater,
    Less,
}

impl LabelSelector {
    /// Parses the text form.
    pub fn parse(text: &str) -> Result<Self, String> {
        parse::parse(text).map(Self)
    }

    /// Reads a `metav1.LabelSelector`; an empty one selects everything.
    pub fn from_object(value: &Value) -> Self {
        let mut out = Vec::new();
        let labels = value.get("matchLabels").and_then(Value::as_object);
        for (key, value) in labels.into_iter().flatten() {
            out.push(Requirement {
                key: key.clone(),
                op: Op::In,
                values: vec![value.as_str().unwrap_or("").to_owned()],
            });
        }
        let expressions = value.get("matchExpressions").and_then(Value::as_array);
        for e in expressions.into_iter().flatten() {
            let op = match crate::metadata::text(e, "operator") {
                "In" => Op::In,
                "NotIn" => Op::NotIn,
                "Exists" => Op::Exists,
                _ => Op::Absent,
            };
            out.push(Requirement {
                key: crate::metadata::text(e, "key").to_owned(),
                op,
                values: crate::metadata::strings(e.get("values"))
                    .into_iter()
                    .collect::<BTreeSet<_>>()
                    .into_iter()
                    .map(str::to_owned)
                    .collect(),
            });
        }
        Self(out)
    }

    /// Whether it matches everything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it matches labels, sorted by key.
    pub fn matches(&self, labels: &[(Box<str>, Box<str>)]) -> bool {
        self.0.iter().all(|r| {
            let have = labels
                .binary_search_by(|(k, _)| k.as_ref().cmp(&r.key))
                .ok()
                .map(|i| labels[i].1.as_ref());
            r.holds(have)
        })
    }

    /// Whether it matches the labels of a decoded object.
    pub fn matches_map(&self, labels: Option<&Value>) -> bool {
        self.0.iter().all(|r| {
            let have = labels.and_then(|l| l.get(&r.key)).and_then(Value::as_str);
            r.holds(have)
        })
    }
}

impl Requirement {
    fn new(key: &str, op: Op, values: BTreeSet<&str>) -> Self {
        Self {
            key: key.to_owned(),
            op,
            values: values.into_iter().map(str::to_owned).collect(),
        }
    }

    fn holds(&self, have: Option<&str>) -> bool {
        let number = |op: fn(&i64, &i64) -> bool| {
            let have = have.and_then(|h| h.parse::<i64>().ok());
            let want = self.values.first().and_then(|v| v.parse::<i64>().ok());
            have.zip(want).is_some_and(|(h, w)| op(&h, &w))
        };
        let is_listed = |have: &str| self.values.binary_search_by(|value| value.as_str().cmp(have)).is_ok();
        match self.op {
            Op::In => have.is_some_and(is_listed),
            Op::NotIn => !have.is_some_and(is_listed),
            Op::Exists => have.is_some(),
            Op::Absent => have.is_none(),
            Op::Greater => number(i64::gt),
            Op::Less => number(i64::lt),
        }
    }
}

/// A field selector: all of its terms hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSelector(pub Vec<FieldTerm>);

/// One term of a field selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldTerm {
    /// Label of the field.
    pub field: String,
    /// Equal or not equal.
    pub equal: bool,
    /// The value compared with.
    pub value: String,
}

impl FieldSelector {
    /// Parses `metadata.name=a,status.phase!=b`; in `\\`, `\,` and `\=` the backslash is an escape.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut out = Vec::new();
        for term in split_terms(text).into_iter().filter(|t| !t.is_empty()) {
            let found = term.char_indices().find_map(|(i, _)| {
                let rest = &term[i..];
                let sign = ["!=", "==", "="].into_iter().find(|sign| rest.starts_with(sign))?;
                Some((&term[..i], sign, &rest[sign.len()..]))
            });
            let Some((field, sign, value)) = found else {
                return Err(format!("invalid selector: '{text}'; can't understand '{term}'"));
            };
            out.push(FieldTerm {
                field: field.to_owned(),
                equal: sign != "!=",
                value: unescape(value).map_err(|why| format!("invalid field selector: {why}"))?,
            });
        }
        Ok(Self(out))
    }

    /// The only value of the field that can match, if there is one.
    pub fn exact(&self, field: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|t| t.equal && t.field == field)
            .map(|t| t.value.as_str())
    }
}

/// Splits at commas without a backslash before them.
fn split_terms(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (i, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                out.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    out.push(&text[start..]);
    out
}

fn unescape(value: &str) -> Result<String, String> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(next @ ('\\' | ',' | '=')) => out.push(next),
                other => {
                    let other = other.map(String::from).unwrap_or_default();
                    return Err(format!("invalid escape sequence: \\{other}"));
                }
            },
            ',' | '=' => return Err(format!("unescaped character in value: {c}")),
            c => out.push(c),
        }
    }
    Ok(out)
}

/// The value at a dotted path, in the form that field selectors compare.
pub fn field_text(object: &Value, path: &str) -> String {
    let mut at = object;
    for part in path.trim_start_matches('.').split('.') {
        match at.get(part) {
            Some(next) => at = next,
            None => return String::new(),
        }
    }
    match at {
        Value::String(s) => s.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// The errors of an object's label selector.
pub fn errors(selector: &Value, at: &str, out: &mut impl Extend<FieldError>) {
    if let Some(labels) = selector.get("matchLabels") {
        check_labels(labels, &format!("{at}.matchLabels"), out);
    }
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    for (i, expression) in expressions.into_iter().flatten().enumerate() {
        let at = format!("{at}.matchExpressions[{i}]");
        let values = strings(expression.get("values"));
        out.extend(match text(expression, "operator") {
            "In" | "NotIn" if values.is_empty() => Some(FieldError::required(
                format!("{at}.values"),
                "must be specified when `operator` is 'In' or 'NotIn'",
            )),
            "Exists" | "DoesNotExist" if !values.is_empty() => Some(FieldError::forbidden(
                format!("{at}.values"),
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            )),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => None,
            other => Some(FieldError::invalid(
                format!("{at}.operator"),
                other.into(),
                "not a valid selector operator",
            )),
        });
        let key = text(expression, "key");
        let of_key = qualified_name_problems(key).into_iter();
        out.extend(of_key.map(|problem| FieldError::invalid(format!("{at}.key"), key.into(), problem)));
        for (i, value) in values.iter().enumerate() {
            let at = format!("{at}.values[{i}]");
            let of_value = label_value_problems(value).into_iter();
            out.extend(of_value.map(|problem| FieldError::invalid(at.as_str(), (*value).into(), problem)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(selector: &str, labels: &[(&str, &str)], want: bool) {
        let mut labels: Vec<(Box<str>, Box<str>)> = labels.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        labels.sort();
        let parsed = LabelSelector::parse(selector).unwrap();
        assert_eq!(parsed.matches(&labels), want, "{selector} {labels:?}");
    }

    #[test]
    fn labels_are_selected() {
        let l = [("a", "1"), ("x.io/b", "two")];
        check("", &l, true);
        check("a=1", &l, true);
        check("a==1,x.io/b!=three", &l, true);
        check("a!=1", &l, false);
        check("c!=1", &l, true);
        check("a in (1, 2)", &l, true);
        check("a notin (1,2)", &l, false);
        check("c notin (1)", &l, true);
        check("a,!c", &l, true);
        check("!a", &l, false);
        check("a>0", &l, true);
        check("a<1", &l, false);
        check("a in (1),x.io/b in (two,three)", &l, true);
    }

    #[test]
    fn broken_selectors_are_refused() {
        for bad in ["a b", "a in (", "-a=b", "a=b c", "a>x"] {
            assert!(LabelSelector::parse(bad).is_err(), "{bad}");
        }
        assert!(FieldSelector::parse("metadata.name").is_err());
    }
}
