//! Whether a webhook is called for a request. Pure.

use std::sync::Arc;

use serde::Serialize;

use super::hook::{Hook, Rule, Scope};
use crate::objects::resource::Resource;

/// The operation of a request, as rules name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
}

impl Operation {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// The properties of a request that rules are compared with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) operation: Operation,
    /// Whether the object is in a namespace; false for a namespace itself.
    pub(crate) namespaced: bool,
}

impl Rule {
    pub(crate) fn matches(&self, target: &Target<'_>) -> bool {
        let any = |list: &[String], wanted: &str| list.iter().any(|item| item == "*" || item == wanted);
        let scope = match self.scope {
            Scope::Any => true,
            Scope::Cluster => !target.namespaced,
            Scope::Namespaced => target.namespaced,
        };
        scope
            && any(&self.operations, target.operation.text())
            && any(&self.groups, target.group)
            && any(&self.versions, target.version)
            && self.resources.iter().any(|named| {
                let (resource, subresource) = named.split_once('/').unwrap_or((named, ""));
                (resource == "*" || resource == target.resource)
                    && (subresource == "*" || subresource == target.subresource)
            })
    }
}

/// The version of the resource in which a webhook sees a request; `None` if no rule matches. This is the version of the request
/// if a rule names it. Otherwise, for a webhook that accepts equivalents, it is the version of the first matching rule.
pub(crate) fn seen_as(
    hook: &Hook,
    resource: &Arc<Resource>,
    versions: impl FnOnce() -> Vec<Arc<Resource>>,
    subresource: &str,
    operation: Operation,
    namespaced: bool,
) -> Option<Arc<Resource>> {
    let target = |resource: &Resource, rule: &Rule| {
        rule.matches(&Target {
            group: &resource.group,
            version: &resource.version,
            resource: &resource.plural,
            subresource,
            operation,
            namespaced,
        })
    };
    if hook.rules.iter().any(|rule| target(resource, rule)) {
        return Some(Arc::clone(resource));
    }
    if !hook.equivalent || hook.rules.is_empty() {
        return None;
    }
    let versions = versions();
    hook.rules
        .iter()
        .find_map(|rule| versions.iter().find(|other| target(other, rule)).map(Arc::clone))
}

/// Whether webhooks are never called for a kind, so that a broken webhook can always be repaired.
pub(crate) fn is_exempt(resource: &Resource) -> bool {
    resource.group == "admissionregistration.k8s.io"
        && matches!(
            resource.kind.as_str(),
            "ValidatingWebhookConfiguration"
                | "MutatingWebhookConfiguration"
                | "ValidatingAdmissionPolicy"
                | "ValidatingAdmissionPolicyBinding"
                | "MutatingAdmissionPolicy"
                | "MutatingAdmissionPolicyBinding"
        )
}

#[cfg(test)]
mod tests;
