//! Validation of the API approval annotation that groups of Kubernetes need.

use serde_json::Value;
use windlass_schema::{FieldError, FieldErrors};

use super::status::Condition;

const ANNOTATION: &str = "api-approved.kubernetes.io";
const SEE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Missing,
    Bypassed,
    Approved,
    Invalid,
}

fn annotation(crd: &Value) -> &str {
    crd.pointer("/metadata/annotations")
        .and_then(|a| a.get(ANNOTATION))
        .and_then(Value::as_str)
        .unwrap_or("")
}

fn state(crd: &Value) -> (State, String) {
    let text = annotation(crd);
    let has_host = text
        .split_once("://")
        .is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.split('/').next().unwrap_or("").is_empty());
    if text.is_empty() {
        let words = format!("protected groups must have approval annotation \"{ANNOTATION}\", {SEE}");
        (State::Missing, words)
    } else if text.starts_with("unapproved") {
        (State::Bypassed, format!("not approved: {}", Value::from(text)))
    } else if has_host {
        (State::Approved, format!("approved in {text}"))
    } else {
        let words = format!(
            "protected groups must have approval annotation \"{ANNOTATION}\" with either a URL or a reason starting with \"unapproved\", {SEE}"
        );
        (State::Invalid, words)
    }
}

fn is_protected(crd: &Value) -> bool {
    let group = crd.pointer("/spec/group").and_then(Value::as_str).unwrap_or("");
    ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group == *domain || group.ends_with(&format!(".{domain}")))
}

/// Errors of the annotation, unless it is unchanged.
pub(super) fn errors(crd: &Value, old: Option<&Value>, out: &mut FieldErrors) {
    if !is_protected(crd) {
        return;
    }
    let (is, words) = state(crd);
    if old.is_some_and(|old| state(old).0 == is) {
        return;
    }
    let at = format!("metadata.annotations[{ANNOTATION}]");
    match is {
        State::Missing => out.push(FieldError::required(at, words)),
        State::Invalid => out.push(FieldError::invalid(at, annotation(crd).into(), words)),
        State::Approved | State::Bypassed => {}
    }
}

/// The condition about the approval.
pub(super) fn condition(crd: &Value) -> Option<Condition> {
    if !is_protected(crd) {
        return None;
    }
    let (is, message) = state(crd);
    let (status, reason) = match is {
        State::Missing => (false, "MissingAnnotation"),
        State::Bypassed => (false, "UnapprovedAnnotation"),
        State::Approved => (true, "ApprovedAnnotation"),
        State::Invalid => (false, "InvalidAnnotation"),
    };
    Some(Condition {
        kind: "KubernetesAPIApprovalPolicyConformant",
        status,
        reason,
        message,
    })
}
