//! Label and field selectors.

use serde_json::Value;

use crate::error::ApiError;
use crate::names::{label_value_problems, qualified_name_problems};

/// A label selector: all of its requirements hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector(Vec<Requirement>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: String,
    op: Op,
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
    /// Parses `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1`.
    pub(crate) fn parse(text: &str) -> Result<Self, ApiError> {
        let mut out = Vec::new();
        for part in split(text) {
            out.push(
                requirement(part.trim())
                    .map_err(|why| ApiError::bad_request(format!("unable to parse requirement: {why}")))?,
            );
        }
        Ok(Self(out))
    }

    /// Reads a `metav1.LabelSelector`; an empty one selects everything.
    pub(crate) fn from_object(value: &Value) -> Self {
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
            let op = match crate::object::text(e, "operator") {
                "In" => Op::In,
                "NotIn" => Op::NotIn,
                "Exists" => Op::Exists,
                _ => Op::Absent,
            };
            out.push(Requirement {
                key: crate::object::text(e, "key").to_owned(),
                op,
                values: crate::object::strings(e.get("values"))
                    .into_iter()
                    .map(str::to_owned)
                    .collect(),
            });
        }
        Self(out)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether labels, sorted by key, are selected.
    pub(crate) fn matches(&self, labels: &[(Box<str>, Box<str>)]) -> bool {
        self.0.iter().all(|r| {
            let have = labels
                .binary_search_by(|(k, _)| k.as_ref().cmp(&r.key))
                .ok()
                .map(|i| labels[i].1.as_ref());
            r.holds(have)
        })
    }

    /// Whether the labels of a decoded object are selected.
    pub(crate) fn matches_map(&self, labels: Option<&Value>) -> bool {
        self.0.iter().all(|r| {
            let have = labels.and_then(|l| l.get(&r.key)).and_then(Value::as_str);
            r.holds(have)
        })
    }
}

impl Requirement {
    fn holds(&self, have: Option<&str>) -> bool {
        let number = |op: fn(&i64, &i64) -> bool| {
            let have = have.and_then(|h| h.parse::<i64>().ok());
            let want = self.values.first().and_then(|v| v.parse::<i64>().ok());
            have.zip(want).is_some_and(|(h, w)| op(&h, &w))
        };
        match self.op {
            Op::In => have.is_some_and(|h| self.values.iter().any(|v| v == h)),
            Op::NotIn => have.is_none_or(|h| self.values.iter().all(|v| v != h)),
            Op::Exists => have.is_some(),
            Op::Absent => have.is_none(),
            Op::Greater => number(i64::gt),
            Op::Less => number(i64::lt),
        }
    }
}

/// Splits at commas outside of parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let (mut depth, mut start) = (0_i32, 0);
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                out.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    if !text.trim().is_empty() {
        out.push(&text[start..]);
    }
    out
}

fn requirement(text: &str) -> Result<Requirement, String> {
    let make = |key: &str, op: Op, values: Vec<&str>| {
        let key = key.trim();
        if let Some(problem) = qualified_name_problems(key).first() {
            return Err(format!("key: Invalid value: \"{key}\": {problem}"));
        }
        if !matches!(op, Op::Greater | Op::Less) {
            for value in &values {
                if let Some(problem) = label_value_problems(value).first() {
                    return Err(format!("values[0][{key}]: Invalid value: \"{value}\": {problem}"));
                }
            }
        } else if values.iter().any(|v| v.parse::<i64>().is_err()) {
            return Err(format!(
                "values[0][{key}]: Invalid value: {values:?}: for 'Gt', 'Lt' operators, the value must be an integer"
            ));
        }
        Ok(Requirement {
            key: key.to_owned(),
            op,
            values: values.into_iter().map(str::to_owned).collect(),
        })
    };
    if let Some(key) = text.strip_prefix('!') {
        return make(key, Op::Absent, vec![]);
    }
    if let Some((left, rest)) = text.split_once('(') {
        let mut words = left.split_whitespace();
        let (key, op) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let op = match op {
            "in" => Op::In,
            "notin" => Op::NotIn,
            other => return Err(format!("found '{other}', expected: in, notin, =, ==, !=, gt, lt")),
        };
        let Some(values) = rest.trim_end().strip_suffix(')') else {
            return Err("found '', expected: ',' or ')'".to_owned());
        };
        return make(key, op, values.split(',').map(str::trim).collect());
    }
    for (sign, op) in [
        ("!=", Op::NotIn),
        ("==", Op::In),
        ("=", Op::In),
        (">", Op::Greater),
        ("<", Op::Less),
    ] {
        if let Some((key, value)) = text.split_once(sign) {
            return make(key, op, vec![value.trim()]);
        }
    }
    if text.contains(char::is_whitespace) {
        let extra = text.split_whitespace().nth(1).unwrap_or("");
        return Err(format!("found '{extra}', expected: in, notin, =, ==, !=, gt, lt"));
    }
    make(text, Op::Exists, vec![])
}

/// A field selector: all of its terms hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldSelector(pub(crate) Vec<FieldTerm>);

/// One term of a field selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldTerm {
    pub(crate) field: String,
    pub(crate) equal: bool,
    pub(crate) value: String,
}

impl FieldSelector {
    /// Parses `metadata.name=a,status.phase!=b`.
    pub(crate) fn parse(text: &str) -> Result<Self, ApiError> {
        let mut out = Vec::new();
        for part in text.split(',').filter(|p| !p.is_empty()) {
            let (field, equal, value) = if let Some((f, v)) = part.split_once("!=") {
                (f, false, v)
            } else if let Some((f, v)) = part.split_once("==") {
                (f, true, v)
            } else if let Some((f, v)) = part.split_once('=') {
                (f, true, v)
            } else {
                return Err(ApiError::bad_request(format!(
                    "invalid selector: '{text}'; can't understand '{part}'"
                )));
            };
            out.push(FieldTerm {
                field: field.trim().to_owned(),
                equal,
                value: value.replace("\\,", ",").replace("\\=", "="),
            });
        }
        Ok(Self(out))
    }

    /// The one name that can match, if the selector says so.
    pub(crate) fn exact(&self, field: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|t| t.equal && t.field == field)
            .map(|t| t.value.as_str())
    }
}

/// The value at a dotted path as a field selector compares it.
pub(crate) fn field_text(object: &Value, path: &str) -> String {
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
