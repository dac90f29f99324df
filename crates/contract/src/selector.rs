//! Label selectors with all of Kubernetes' meaning: every requirement holds, a selector without any chooses everything, and one
//! that is wrong chooses nothing because it is an error.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// Labels of an object.
pub type Labels = BTreeMap<String, String>;

/// A selector whose terms are known to be right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector(Vec<Term>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    key: String,
    must: Must,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Must {
    BeOneOf(BTreeSet<String>),
    NotBeOneOf(BTreeSet<String>),
    Exist,
    NotExist,
}

/// What is wrong with a selector, and in which field of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectorError {
    /// The field: `matchExpressions[0].operator`.
    pub field: String,
    /// What it says.
    pub value: String,
    /// What was expected.
    pub expected: String,
}

impl fmt::Display for SelectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}: {}", self.field, self.value, self.expected)
    }
}

impl std::error::Error for SelectorError {}

impl Selector {
    /// Reads a selector; tells the first thing that is wrong with it.
    pub fn parse(selector: &LabelSelector) -> Result<Self, SelectorError> {
        let mut terms = Vec::new();
        for (key, value) in selector.match_labels.iter().flatten() {
            check_key("matchLabels", key)?;
            check_value(&format!("matchLabels[{key}]"), value)?;
            let must = Must::BeOneOf(BTreeSet::from([value.clone()]));
            terms.push(Term { key: key.clone(), must });
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
            let operator = term.operator.as_str();
            let must = match (operator, listed) {
                ("In", true) => Must::BeOneOf(values),
                ("NotIn", true) => Must::NotBeOneOf(values),
                ("Exists", false) => Must::Exist,
                ("DoesNotExist", false) => Must::NotExist,
                ("In" | "NotIn", false) => {
                    return Err(wrong(
                        field("values"),
                        "",
                        format!("{operator} needs at least one value"),
                    ));
                }
                ("Exists" | "DoesNotExist", true) => {
                    return Err(wrong(
                        field("values"),
                        &join(&values),
                        format!("{operator} takes no values"),
                    ));
                }
                _ => {
                    let expected = "expected In, NotIn, Exists or DoesNotExist";
                    return Err(wrong(field("operator"), operator, expected));
                }
            };
            terms.push(Term {
                key: term.key.clone(),
                must,
            });
        }
        Ok(Self(terms))
    }

    /// Whether an object with these labels is chosen.
    pub fn matches(&self, labels: Option<&Labels>) -> bool {
        self.0.iter().all(|term| {
            let value = labels.and_then(|labels| labels.get(&term.key));
            match &term.must {
                Must::BeOneOf(values) => value.is_some_and(|value| values.contains(value)),
                Must::NotBeOneOf(values) => value.is_none_or(|value| !values.contains(value)),
                Must::Exist => value.is_some(),
                Must::NotExist => value.is_none(),
            }
        })
    }

    /// Whether everything is chosen.
    pub fn is_everything(&self) -> bool {
        self.0.is_empty()
    }
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
}
