//! Namespace: defaults, creation and validation.

use serde_json::{Value, json};
use windlass_objects::metadata::{is_deleting, strings};
use windlass_objects::names::qualified_name_problems;
use windlass_objects::owners::unqualified;
use windlass_schema::{FieldError, FieldErrors};

use super::field::{or_set, set};

/// Sets the fields of a new namespace that only the server sets.
pub(crate) fn on_create(object: &mut Value) {
    or_set(object, "spec", json!({}));
    or_set(&mut object["spec"], "finalizers", json!([]));
    // Without the finalizer, a deleted namespace would be removed before its contents.
    if let Some(list) = object["spec"]["finalizers"].as_array_mut()
        && !list.iter().any(|f| f == "kubernetes")
    {
        list.push("kubernetes".into());
    }
    set(object, "status", json!({"phase": "Active"}));
}

/// Errors of a namespace.
pub(crate) fn errors(object: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
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
