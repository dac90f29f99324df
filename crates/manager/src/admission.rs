//! Admission in the process of the embedded server: calls the functions of the webhooks directly.

use crate::registry::admission;
use serde_json::Value;
use windlass_apiserver::{AdmissionHook, AdmissionRequest, AdmissionVerb, ApiError};
use windlass_webhook::{Operation, Rule};

/// Admission of writes of all kinds.
pub(crate) struct InProcess {
    rules: Vec<Rule>,
}

impl InProcess {
    pub(crate) fn new() -> Self {
        Self {
            rules: admission::rules(),
        }
    }
}

impl AdmissionHook for InProcess {
    fn admit(
        &self,
        request: &AdmissionRequest<'_>,
        object: &mut Value,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        let is_about = |rule: &&Rule| (rule.group, rule.resource) == (request.group, request.resource);
        let Some(rule) = self.rules.iter().find(is_about) else {
            return Ok(());
        };
        let nothing = Value::Null;
        let stored = request.old.unwrap_or(&nothing);
        let (operation, old, new) = match request.verb {
            AdmissionVerb::Create => (Operation::Create, &nothing, &*object),
            AdmissionVerb::Update => (Operation::Update, stored, &*object),
            AdmissionVerb::Delete => (Operation::Delete, stored, &nothing),
        };
        let verdict = rule.judge(operation, request.subresource, old, new);
        warnings.extend(verdict.warnings);
        if verdict.errors.is_empty() {
            Ok(())
        } else {
            Err(ApiError::invalid(
                request.group,
                request.kind,
                request.name,
                &verdict.errors,
            ))
        }
    }
}
