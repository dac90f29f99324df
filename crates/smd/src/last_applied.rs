//! The annotation of client-side `kubectl apply` with the last applied configuration. A manager named `kubectl` takes over the
//! fields in it, and keeps the annotation up to date as long as it exists.

use serde_json::Value;

use crate::field_set::FieldSet;
use crate::typed::{self, View};

/// The annotation of client-side apply.
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The only manager that takes them over.
pub(crate) const MANAGER: &str = "kubectl";
/// The size limit of an object's annotations.
const MAX_ANNOTATIONS: usize = 256 << 10;

fn annotation(object: &Value) -> Option<&str> {
    object
        .get("metadata")?
        .get("annotations")?
        .get(ANNOTATION)?
        .as_str()
        .filter(|text| !text.is_empty())
}

/// The fields that client-side apply wrote last and no other manager has changed since.
pub(crate) fn unchanged(view: View<'_>, live: &Value, api_version: &str) -> Option<FieldSet> {
    let last: Value = serde_json::from_str(annotation(live)?).ok()?;
    let names_kind = last
        .get("kind")
        .and_then(Value::as_str)
        .is_some_and(|kind| !kind.is_empty());
    if last.get("apiVersion").and_then(Value::as_str) != Some(api_version) || !names_kind {
        return None;
    }
    if !typed::problems(view, &last).is_empty() {
        return None;
    }
    let comparison = typed::compare(view, &last, live);
    let mut set = typed::field_set(view, &last);
    set.remove(&comparison.modified);
    set.remove(&comparison.added);
    set.remove(&comparison.removed);
    Some(set)
}

/// Updates the annotation, if it exists.
pub(crate) fn refresh(object: &mut Value, applied: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut plain = applied.clone();
    if let Some(metadata) = plain.get_mut("metadata").and_then(Value::as_object_mut)
        && let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut)
    {
        annotations.remove(ANNOTATION);
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
    let text = crate::field_set::escaped(plain.to_string()) + "\n";
    let Some(annotations) = object
        .get_mut("metadata")
        .and_then(|m| m.get_mut("annotations"))
        .and_then(Value::as_object_mut)
    else {
        return;
    };
    let others: usize = annotations
        .iter()
        .filter(|(name, _)| *name != ANNOTATION)
        .map(|(name, value)| name.len() + value.as_str().map_or(0, str::len))
        .sum();
    if others + ANNOTATION.len() + text.len() > MAX_ANNOTATIONS {
        annotations.remove(ANNOTATION);
    } else {
        annotations.insert(ANNOTATION.to_owned(), text.into());
    }
}
