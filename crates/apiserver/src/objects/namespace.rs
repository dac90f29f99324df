//! The rules of namespaces, and whether one takes new objects. Pure.

use serde_json::Value;
use windlass_schema::FieldError;

use crate::error::ApiError;
use crate::objects::names::qualified_name_problems;
use crate::objects::object::{is_deleting, strings};
use crate::objects::owners::unqualified;
use crate::objects::resource::Resource;

/// What is wrong with a namespace.
pub(crate) fn errors(object: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let finalizers = object.pointer("/spec/finalizers");
    if old.is_none_or(|old| old.pointer("/spec/finalizers") != finalizers) {
        for (index, finalizer) in strings(finalizers).into_iter().enumerate() {
            let at = match old {
                None => "spec.finalizers".to_owned(),
                Some(_) => format!("spec.finalizers[{index}]"),
            };
            for problem in qualified_name_problems(finalizer) {
                errors.push(FieldError::invalid(&at, finalizer.into(), problem));
            }
            unqualified(finalizer, &at, errors);
        }
    }
    let Some(old) = old.filter(|old| old.get("status") != object.get("status")) else {
        return;
    };
    let phase = object.pointer("/status/phase").and_then(Value::as_str).unwrap_or("");
    let (wanted, words) = if is_deleting(old) {
        (
            "Terminating",
            "may only be 'Terminating' if `deletionTimestamp` is not empty",
        )
    } else {
        ("Active", "may only be 'Active' if `deletionTimestamp` is empty")
    };
    if phase != wanted {
        errors.push(FieldError::invalid("status.Phase", phase.into(), words));
    }
}

/// Whether what a namespaced object is made in takes new objects.
pub(crate) fn check_namespace(
    resource: &Resource,
    namespace: Option<&windlass_store::Record>,
    wanted: &str,
    name: &str,
) -> Result<(), ApiError> {
    let Some(namespace) = namespace else {
        return Err(ApiError::not_found("", "namespaces", wanted));
    };
    if namespace.header.deleting {
        let mut error = ApiError::forbidden(
            &resource.group,
            &resource.plural,
            name,
            &format!("unable to create new content in namespace {wanted} because it is being terminated"),
        );
        if let Some(details) = &mut error.details {
            details.causes.push(crate::error::Cause {
                reason: "NamespaceTerminating".to_owned(),
                message: format!("namespace {wanted} is being terminated"),
                field: "metadata.namespace".to_owned(),
            });
        }
        return Err(error);
    }
    Ok(())
}
