//! Label selectors with the semantics of Kubernetes: all requirements must hold.
//!
//! - [`Selector::parse`] parses the typed form, and [`Selector::parse_text`] that of `kubectl -l`. An invalid selector is an
//!   error; one without requirements matches everything.
//! - [`owns`] is for controllers that adopt the objects of their selector: a selector without requirements matches nothing there,
//!   and neither does an invalid one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

mod text;

pub use text::to_text;

/// Labels of an object.
pub type Labels = BTreeMap<String, String>;

/// A valid selector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector(Vec<Term>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    key: String,
    operator: Operator,
    values: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

impl Operator {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "In" => Self::In,
            "NotIn" => Self::NotIn,
            "Exists" => Self::Exists,
            "DoesNotExist" => Self::DoesNotExist,
            _ => return None,
        })
    }

    /// Whether a requirement holds for the value of its label; `NotIn` also holds without the label.
    fn holds<'a>(self, value: Option<&str>, mut values: impl Iterator<Item = &'a String>) -> bool {
        match self {
            Self::In => value.is_some_and(|value| values.any(|one| one == value)),
            Self::NotIn => value.is_none_or(|value| values.all(|one| one != value)),
            Self::Exists => value.is_some(),
            Self::DoesNotExist => value.is_none(),
        }
    }
}

/// The error of a selector, and its field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectorError {
    /// The field: `matchExpressions[0].operator`.
    pub field: String,
    /// The invalid value.
    pub value: String,
    /// The expected value.
    pub expected: String,
}

impl fmt::Display for SelectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}: {}", self.field, self.value, self.expected)
    }
}

impl std::error::Error for SelectorError {}

impl Selector {
    /// Parses a selector; the error is the first one.
    pub fn parse(selector: &LabelSelector) -> Result<Self, SelectorError> {
        let mut terms = Vec::new();
        for (key, value) in selector.match_labels.iter().flatten() {
            check_key("matchLabels", key)?;
            check_value(&format!("matchLabels[{key}]"), value)?;
            terms.push(Term {
                key: key.clone(),
                operator: Operator::In,
                values: BTreeSet::from([value.clone()]),
            });
        }
        for (idx, term) in selector.match_expressions.iter().flatten().enumerate() {
            let field = |name: &str| format!("matchExpressions[{idx}].{name}");
            check_key(&field("key"), &term.key)?;
            let given = term.values.iter().flatten();
            for value in given.clone() {
                check_value(&field("values"), value)?;
            }
            let values: BTreeSet<String> = given.cloned().collect();
            let listed = !values.is_empty();
            let text = term.operator.as_str();
            let Some(operator) = Operator::parse(text) else {
                let expected = "expected In, NotIn, Exists or DoesNotExist";
                return Err(wrong(field("operator"), text, expected));
            };
            match (operator, listed) {
                (Operator::In | Operator::NotIn, false) => {
                    return Err(wrong(field("values"), "", format!("{text} needs at least one value")));
                }
                (Operator::Exists | Operator::DoesNotExist, true) => {
                    return Err(wrong(
                        field("values"),
                        &join(&values),
                        format!("{text} takes no values"),
                    ));
                }
                _ => {}
            }
            terms.push(Term {
                key: term.key.clone(),
                operator,
                values,
            });
        }
        Ok(Self(terms))
    }

    /// Whether an object with these labels matches.
    pub fn matches(&self, labels: Option<&Labels>) -> bool {
        self.matches_by(|key| labels.and_then(|labels| labels.get(key)).map(String::as_str))
    }

    /// Whether an object matches; `value` returns its labels by key.
    pub fn matches_by<'a>(&self, value: impl Fn(&str) -> Option<&'a str>) -> bool {
        let holds = |term: &Term| term.operator.holds(value(&term.key), term.values.iter());
        self.0.iter().all(holds)
    }

    /// Whether it matches everything.
    pub fn is_everything(&self) -> bool {
        self.0.is_empty()
    }
}

/// Whether a controller with this selector owns an object with these labels. A selector without requirements matches nothing (an
/// object must not own everything), and neither does one with an unknown operator; keys and values are compared unchanged.
pub fn owns(selector: &LabelSelector, labels: Option<&Labels>) -> bool {
    let value = |key: &str| labels.and_then(|labels| labels.get(key)).map(String::as_str);
    let mut pairs = selector.match_labels.iter().flatten().peekable();
    let mut terms = selector.match_expressions.iter().flatten().peekable();
    if pairs.peek().is_none() && terms.peek().is_none() {
        return false;
    }
    pairs.all(|(key, one)| Operator::In.holds(value(key), std::iter::once(one)))
        && terms.all(|term| {
            let values = term.values.iter().flatten();
            Operator::parse(&term.operator).is_some_and(|operator| operator.holds(value(&term.key), values))
        })
}

fn wrong(field: impl Into<String>, value: &str, expected: impl Into<String>) -> SelectorError {
    SelectorError {
        field: field.into(),
        value: value.to_owned(),
        expected: expected.into(),
    }
}

fn join(values: &BTreeSet<String>) -> String {
    values.iter().map(String::as_str).collect::<Vec<_>>().join(",")
}

fn check_key(field: &str, key: &str) -> Result<(), SelectorError> {
    let (prefix, name) = key
        .split_once('/')
        .map_or((None, key), |(prefix, name)| (Some(prefix), name));
    if !is_word(name) || name.is_empty() {
        let expected = "expected the key of a label: up to 63 letters, digits, '-', '_' and '.', after a DNS name and '/' or alone";
        return Err(wrong(field, key, expected));
    }
    match prefix {
        Some(prefix) if !is_dns(prefix) => Err(wrong(field, key, "expected a DNS name before the '/'")),
        _ => Ok(()),
    }
}

fn check_value(field: &str, value: &str) -> Result<(), SelectorError> {
    if is_word(value) {
        return Ok(());
    }
    let expected =
        "expected the value of a label: up to 63 letters, digits, '-', '_' and '.', a letter or digit first and last";
    Err(wrong(field, value, expected))
}

/// Letters, digits, dashes, underscores and dots between letters or digits; may be empty.
fn is_word(text: &str) -> bool {
    let ends = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && ends(bytes.first())
        && ends(bytes.last())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
}

fn is_dns(text: &str) -> bool {
    let label = |part: &str| {
        let fits = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-';
        !part.is_empty() && part.bytes().all(|b| fits(&b)) && !part.starts_with('-') && !part.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(label)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement;

    use super::*;
    use serde_json::{Value, json};

    fn parse(selector: Value) -> Result<Selector, SelectorError> {
        Selector::parse(&serde_json::from_value(selector).unwrap())
    }

    fn labels(value: Value) -> Labels {
        serde_json::from_value(value).unwrap()
    }

    // AD-053: every operator, all of them together; AD-054: none chooses everything.
    #[test]
    fn requirements_all_have_to_hold() {
        let check = |selector: Value, have: Value, expect: bool| {
            let chosen = parse(selector.clone()).unwrap().matches(Some(&labels(have.clone())));
            assert_eq!(chosen, expect, "{selector} {have}");
        };
        check(json!({}), json!({}), true);
        check(
            json!({"matchLabels": {"cni": "calico"}}),
            json!({"cni": "calico", "x": "y"}),
            true,
        );
        check(
            json!({"matchLabels": {"cni": "calico"}}),
            json!({"cni": "other"}),
            false,
        );
        check(json!({"matchLabels": {"cni": ""}}), json!({"cni": ""}), true);
        let term = |operator: &str, values: Value| json!({"matchExpressions": [{"key": "cni", "operator": operator, "values": values}]});
        check(term("In", json!(["a", "b"])), json!({"cni": "b"}), true);
        check(term("In", json!(["a", "b"])), json!({}), false);
        check(term("NotIn", json!(["a"])), json!({"cni": "b"}), true);
        check(term("NotIn", json!(["a"])), json!({}), true);
        check(term("NotIn", json!(["a"])), json!({"cni": "a"}), false);
        check(term("Exists", json!(null)), json!({"cni": "a"}), true);
        check(term("Exists", json!([])), json!({}), false);
        check(term("DoesNotExist", json!([])), json!({}), true);
        check(term("DoesNotExist", json!([])), json!({"cni": ""}), false);
        let mut both = term("Exists", json!([]));
        both["matchLabels"] = json!({"env": "prod"});
        check(both.clone(), json!({"cni": "a", "env": "prod"}), true);
        check(both, json!({"env": "prod"}), false);
        assert!(parse(json!({})).unwrap().is_everything() && parse(json!({})).unwrap().matches(None));
    }

    // AD-053
    #[test]
    fn what_means_nothing_is_an_error_that_names_the_field() {
        let check = |selector: Value, expect: &str| assert_eq!(parse(selector).unwrap_err().field, expect);
        let term = |term: Value| json!({"matchExpressions": [term]});
        check(
            term(json!({"key": "a", "operator": "Near"})),
            "matchExpressions[0].operator",
        );
        check(
            term(json!({"key": "a", "operator": "In"})),
            "matchExpressions[0].values",
        );
        check(
            term(json!({"key": "a", "operator": "NotIn", "values": []})),
            "matchExpressions[0].values",
        );
        check(
            term(json!({"key": "a", "operator": "Exists", "values": ["b"]})),
            "matchExpressions[0].values",
        );
        check(
            term(json!({"key": "", "operator": "Exists"})),
            "matchExpressions[0].key",
        );
        check(
            term(json!({"key": "UP.io/a", "operator": "Exists"})),
            "matchExpressions[0].key",
        );
        check(
            term(json!({"key": "a", "operator": "In", "values": ["-"]})),
            "matchExpressions[0].values",
        );
        check(json!({"matchLabels": {"a b": "c"}}), "matchLabels");
        check(json!({"matchLabels": {"x.io/a": "c d"}}), "matchLabels[x.io/a]");
        let error = parse(term(json!({"key": "a", "operator": "Near"}))).unwrap_err();
        let text = "matchExpressions[0].operator: \"Near\": expected In, NotIn, Exists or DoesNotExist";
        assert_eq!(error.to_string(), text);
    }

    fn pairs(pairs: &[(&str, &str)]) -> Labels {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        pairs.iter().map(owned).collect()
    }

    fn term(operator: &str, values: Option<&[&str]>) -> LabelSelectorRequirement {
        LabelSelectorRequirement {
            key: "b".to_owned(),
            operator: operator.to_owned(),
            values: values.map(|values| values.iter().map(|value| (*value).to_owned()).collect()),
        }
    }

    #[test]
    fn an_owner_needs_every_requirement() {
        let selector = LabelSelector {
            match_labels: Some(pairs(&[("a", "1")])),
            match_expressions: Some(vec![term("NotIn", Some(&["2"]))]),
        };
        assert!(owns(&selector, Some(&pairs(&[("a", "1")]))));
        assert!(!owns(&selector, Some(&pairs(&[("a", "1"), ("b", "2")]))));
        assert!(!owns(&selector, None));
        assert_eq!(to_text(&selector), "a=1,b notin (2)");
    }

    /// The two policies differ: for ownership, a selector is not validated, and an empty one matches nothing.
    #[test]
    fn owners_take_selectors_as_they_are() {
        assert!(!owns(&LabelSelector::default(), Some(&pairs(&[("a", "1")]))));
        assert!(Selector::parse(&LabelSelector::default()).unwrap().is_everything());
        let check = |one: LabelSelectorRequirement, have: &[(&str, &str)], expect: bool| {
            let selector = LabelSelector {
                match_labels: None,
                match_expressions: Some(vec![one]),
            };
            assert_eq!(owns(&selector, Some(&pairs(have))), expect, "{selector:?} {have:?}");
            assert!(Selector::parse(&selector).is_err(), "{selector:?}");
        };
        check(term("Near", None), &[("b", "1")], false);
        check(term("In", None), &[("b", "1")], false);
        check(term("NotIn", None), &[("b", "1")], true);
        check(term("Exists", Some(&["2"])), &[("b", "1")], true);
        check(term("DoesNotExist", Some(&["2"])), &[], true);
        check(term("In", Some(&["no value"])), &[("b", "no value")], true);
    }
}
