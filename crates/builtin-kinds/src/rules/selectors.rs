//! Label selectors.

use serde_json::Value;
use windlass_schema::FieldError;

use super::field::{Errors, Field};
use windlass_objects::names::{check_labels, label_value_problems, qualified_name_problems};
use windlass_objects::selector::LabelSelector;

/// Validates a selector. Returns whether it is usable.
pub(crate) fn check(selector: &Field<'_>, errors: &mut Errors) -> bool {
    let before = errors.len();
    check_labels(
        selector.get("matchLabels").value,
        &selector.get("matchLabels").path,
        errors,
    );
    for term in selector.get("matchExpressions").items() {
        let values = term.get("values");
        match term.get("operator").text() {
            "In" | "NotIn" if values.is_empty() => {
                errors.push(values.required("must be specified when `operator` is 'In' or 'NotIn'"));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                errors.push(values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => errors.push(term.get("operator").invalid("not a valid selector operator")),
        }
        let key = term.get("key");
        errors.extend(qualified_name_problems(key.text()).into_iter().map(|p| key.invalid(p)));
        for value in values.items() {
            errors.extend(label_value_problems(value.text()).into_iter().map(|p| value.invalid(p)));
        }
    }
    errors.len() == before
}

/// The selector of a workload, which is required, must not be empty, and must match the labels of the template.
pub(crate) struct Of<'a> {
    pub(super) selector: Field<'a>,
    pub(super) labels: Field<'a>,
    /// The kind, as in its error.
    pub(super) kind: &'a str,
    /// Whether an absent selector has its own error.
    pub(super) required: bool,
}

/// Whether the selector is comparable with the template's labels and does not match them.
pub(crate) fn mismatch(selector: &Field<'_>, labels: &Field<'_>) -> Option<FieldError> {
    if selector.is_set() {
        let parsed = LabelSelector::from_object(selector.value);
        if parsed.is_empty() || parsed.matches_map(Some(labels.value)) {
            return None;
        }
    }
    Some(labels.invalid("`selector` does not match template `labels`"))
}

/// Validates the selector. Returns whether it is usable.
pub(crate) fn workload(of: &Of<'_>, errors: &mut Errors) -> bool {
    let selector = &of.selector;
    if !selector.is_set() {
        if of.required {
            errors.push(selector.required(""));
        }
        return true;
    }
    let usable = check(selector, errors);
    if matches!(selector.value, Value::Object(_)) && LabelSelector::from_object(selector.value).is_empty() {
        errors.push(selector.invalid(format!("empty selector is invalid for {}", of.kind)));
    }
    if !usable {
        let refused = selector
            .get("matchExpressions")
            .items()
            .any(|t| !matches!(t.get("operator").text(), "In" | "NotIn" | "Exists" | "DoesNotExist"));
        if refused || of.kind != "daemonset" {
            errors.push(selector.invalid("invalid label selector"));
        }
        return false;
    }
    true
}
