//! Label selectors.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

/// Whether `labels` are selected. A selector without terms selects nothing here: an object must not own everything.
pub(crate) fn matches(selector: &LabelSelector, labels: Option<&BTreeMap<String, String>>) -> bool {
    let empty = BTreeMap::new();
    let labels = labels.unwrap_or(&empty);
    let pairs = selector.match_labels.iter().flatten();
    let terms = selector.match_expressions.iter().flatten();
    if pairs.clone().next().is_none() && terms.clone().next().is_none() {
        return false;
    }
    pairs.clone().all(|(key, value)| labels.get(key) == Some(value)) && terms.clone().all(|term| holds(term, labels))
}

fn holds(term: &LabelSelectorRequirement, labels: &BTreeMap<String, String>) -> bool {
    let value = labels.get(&term.key);
    let listed = value.is_some_and(|value| term.values.iter().flatten().any(|one| one == value));
    match term.operator.as_str() {
        "In" => listed,
        "NotIn" => !listed,
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        _ => false,
    }
}

/// The selector in the notation of `kubectl -l`, terms sorted by key.
pub(crate) fn to_text(selector: &LabelSelector) -> String {
    let mut terms: Vec<(String, String)> = Vec::new();
    for (key, value) in selector.match_labels.iter().flatten() {
        terms.push((key.clone(), format!("{key}={value}")));
    }
    for term in selector.match_expressions.iter().flatten() {
        let key = &term.key;
        let mut values = term.values.clone().unwrap_or_default();
        values.sort();
        let values = values.join(",");
        let text = match term.operator.as_str() {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.clone(),
            _ => format!("!{key}"),
        };
        terms.push((key.clone(), text));
    }
    terms.sort();
    terms.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn all_terms_have_to_hold() {
        let selector = LabelSelector {
            match_labels: Some(labels(&[("a", "1")])),
            match_expressions: Some(vec![LabelSelectorRequirement {
                key: "b".to_owned(),
                operator: "NotIn".to_owned(),
                values: Some(vec!["2".to_owned()]),
            }]),
        };
        assert!(matches(&selector, Some(&labels(&[("a", "1")]))));
        assert!(!matches(&selector, Some(&labels(&[("a", "1"), ("b", "2")]))));
        assert!(!matches(&selector, None));
        assert_eq!(to_text(&selector), "a=1,b notin (2)");
    }

    #[test]
    fn an_empty_selector_selects_nothing() {
        assert!(!matches(&LabelSelector::default(), Some(&labels(&[("a", "1")]))));
    }
}
