//! Validation of API objects embedded in custom objects: kinds and metadata. Pure.

use serde_json::{Map, Value};
use windlass_schema::{FieldError, FieldErrors, Schema, StrictErrors};

use crate::codec::go_wording::json_type;
use crate::verbs::options::FieldValidation;
use windlass_objects::metadata::{strings, text};
use windlass_objects::names::{NameRule, check_annotations, check_labels, qualified_name_problems};

/// Errors of an object embedded at `at`.
pub(crate) fn errors(at: &str, embedded: &Map<String, Value>, out: &mut FieldErrors) {
    let here = |name: &str| format!("{at}.{name}");
    for name in ["apiVersion", "kind"] {
        if !embedded.contains_key(name) {
            out.push(FieldError::required(here(name), ""));
        }
    }
    if let Some(version) = embedded.get("apiVersion") {
        let words = match version.as_str() {
            None => Some("must be a string".to_owned()),
            Some("") => Some("must not be empty".to_owned()),
            Some(text) if text.matches('/').count() > 1 => Some(format!("unexpected GroupVersion string: {text}")),
            Some(_) => None,
        };
        if let Some(words) = words {
            out.push(FieldError::invalid(here("apiVersion"), version.clone(), words));
        }
    }
    if let Some(kind) = embedded.get("kind") {
        let words = match kind.as_str() {
            None => Some("must be a string".to_owned()),
            Some("") => Some("must not be empty".to_owned()),
            Some(text) => {
                let problems = NameRule::Label1035.problems(&text.to_lowercase(), false);
                let found = problems.join(",");
                (!problems.is_empty()).then(|| format!("may have mixed case, but should otherwise match: {found}"))
            }
        };
        if let Some(words) = words {
            out.push(FieldError::invalid(here("kind"), kind.clone(), words));
        }
    }
    if let Some(metadata) = embedded.get("metadata").filter(|m| m.is_object()) {
        metadata_errors(&here("metadata"), metadata, out);
    }
}

fn metadata_errors(at: &str, metadata: &Value, out: &mut FieldErrors) {
    for (key, prefix) in [("generateName", true), ("name", false)] {
        let name = text(metadata, key);
        for problem in NameRule::PathSegment.problems(name, prefix) {
            out.push(FieldError::invalid(format!("{at}.{key}"), name.into(), problem));
        }
    }
    if let Some(labels) = metadata.get("labels") {
        check_labels(labels, &format!("{at}.labels"), out);
    }
    if let Some(annotations) = metadata.get("annotations") {
        check_annotations(annotations, &format!("{at}.annotations"), out);
    }
    for finalizer in strings(metadata.get("finalizers")) {
        for problem in qualified_name_problems(finalizer) {
            out.push(FieldError::invalid(
                format!("{at}.finalizers"),
                finalizer.into(),
                problem,
            ));
        }
    }
}

/// Decodes the metadata of embedded objects. Returns the paths of dropped fields for warnings, or the decoding error.
pub(crate) fn shape(
    schema: &Schema,
    metadata: Option<&Schema>,
    object: &mut Value,
    mode: FieldValidation,
) -> Result<Vec<String>, String> {
    let (mut wrong, mut unknown) = (None, StrictErrors::default());
    windlass_schema::each_embedded(schema, object, &mut |path, embedded| {
        for name in ["apiVersion", "kind"] {
            if let Some(value) = embedded.get(name).filter(|v| !v.is_string()) {
                let error = FieldError::invalid(format!("{path}.{name}"), value.clone(), "must be a string");
                wrong.get_or_insert(error);
            }
        }
        let (Some(known), Some(found)) = (metadata, embedded.get("metadata")) else {
            return;
        };
        let mut plain = found.clone();
        drop_nulls(&mut plain);
        if let Some(words) = undecodable(known, &plain) {
            let error = FieldError::invalid(format!("{path}.metadata"), found.clone(), words);
            wrong.get_or_insert(error);
        }
        if mode != FieldValidation::Ignore {
            for field in windlass_schema::unknown_fields(known, &plain) {
                unknown.push(&format_args!("unknown field \"{path}.metadata.{field}\""));
            }
        }
    });
    if let Some(error) = wrong {
        return Err(error.to_string());
    }
    windlass_schema::each_embedded_mut(schema, object, &mut |embedded| {
        if let (Some(known), Some(found)) = (metadata, embedded.get_mut("metadata")) {
            drop_nulls(found);
            if let Some(map) = found.as_object_mut() {
                map.retain(|name, _| known.root().properties.contains_key(name));
            }
        }
    });
    Ok(unknown.into_vec())
}

fn drop_nulls(value: &mut Value) {
    if let Some(map) = value.as_object_mut() {
        map.retain(|_, value| !value.is_null());
    }
}

/// The decoding error of metadata in the wording of Kubernetes.
fn undecodable(known: &Schema, metadata: &Value) -> Option<String> {
    let errors = windlass_schema::validate_at(known, "metadata", metadata, None);
    let error = errors.first()?;
    let parts: Vec<&str> = error.path.split(['.', '[']).collect();
    let field = parts.get(1).copied().unwrap_or("");
    let mut at = metadata;
    for part in parts.iter().skip(1) {
        at = at.get(part.trim_end_matches(']')).unwrap_or(at);
    }
    let is = json_type(at);
    let wanted = match (field, parts.len()) {
        ("labels" | "annotations", 2) => "map[string]string",
        ("finalizers", 2) => "[]string",
        ("ownerReferences", 2) => "[]v1.OwnerReference",
        ("generation" | "deletionGracePeriodSeconds", _) => "int64",
        _ => "string",
    };
    Some(format!(
        "json: cannot unmarshal {is} into Go struct field ObjectMeta.{field} of type {wanted}"
    ))
}
