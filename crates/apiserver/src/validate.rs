//! Whether an object may be stored.

use std::sync::{Arc, LazyLock};

use serde_json::Value;
use windlass_schema::{FieldError, Kind, Schema};

use crate::error::ApiError;
use crate::names::{check_annotations, check_labels};
use crate::object::{meta, meta_value, text};
use crate::prepare::immutable_errors;
use crate::request::FieldValidation;
use crate::resource::{Resource, Special};

static METADATA: LazyLock<Option<Arc<Schema>>> =
    LazyLock::new(|| crate::builtin_schema::parsed("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"));

/// Drops what the schema does not know and fills in defaults; returns warnings, or refuses when that was asked for.
pub(crate) fn shape(
    resource: &Resource,
    object: &mut Value,
    duplicates: &[String],
    mode: FieldValidation,
) -> Result<Vec<String>, ApiError> {
    let mut problems: Vec<String> = Vec::new();
    if mode != FieldValidation::Ignore {
        problems.extend(duplicates.iter().map(|p| format!("duplicate field \"{p}\"")));
    }
    if !resource.is_custom() {
        drop_nulls(object);
    }
    let schema = resource.schema();
    if mode != FieldValidation::Ignore {
        if let Some(schema) = schema {
            problems.extend(
                windlass_schema::unknown_fields(schema, object)
                    .into_iter()
                    .map(|p| format!("unknown field \"{p}\"")),
            );
        }
        if resource.is_custom()
            && let (Some(schema), Some(metadata)) = (METADATA.as_ref(), object.get("metadata"))
        {
            problems.extend(
                windlass_schema::unknown_fields(schema, metadata)
                    .into_iter()
                    .map(|p| format!("unknown field \"metadata.{p}\"")),
            );
        }
    }
    if mode == FieldValidation::Strict && !problems.is_empty() {
        let group_version = resource.api_version();
        let what = problems.join(", ");
        let message = if resource.is_custom() {
            format!("strict decoding error: {what}")
        } else {
            format!(
                "{} in version \"{}\" cannot be handled as a {}: strict decoding error: {what}",
                resource.kind, resource.version, resource.kind
            )
        };
        tracing::debug!(group_version, message, "strict decoding failed");
        return Err(ApiError::bad_request(message));
    }
    prune_metadata(object)?;
    problems.extend(crate::owners::unite(object));
    if let Some(schema) = schema {
        check_types(resource, schema, object)?;
        windlass_schema::prune(schema, object);
        windlass_schema::default(schema, object);
        windlass_schema::drop_nulls(schema, object);
    }
    Ok(problems)
}

/// Completes what an apply has led to. Nothing unknown is in it; what it emptied is null, and stays so for validation to find where
/// the schema of a custom resource does not allow that.
pub(crate) fn complete_applied(resource: &Resource, object: &mut Value) -> Result<(), ApiError> {
    let custom = resource.is_custom().then(|| resource.schema()).flatten();
    let Some(schema) = custom else {
        return shape(resource, object, &[], FieldValidation::Ignore).map(drop);
    };
    prune_metadata(object)?;
    windlass_schema::default_keeping_nulls(schema, object);
    Ok(())
}

/// Go's decoders take null for "not set".
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, v| !v.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

fn prune_metadata(object: &mut Value) -> Result<(), ApiError> {
    let Some(schema) = METADATA.as_ref() else {
        return Ok(());
    };
    let Some(metadata) = object.get_mut("metadata") else {
        return Ok(());
    };
    drop_nulls(metadata);
    let wrong = windlass_schema::validate_at(schema, "metadata", metadata, None);
    // What stands twice in a list is not told apart here: some of it is united, some stays.
    if let Some(error) = wrong.iter().find(|error| error.kind != Kind::Duplicate) {
        return Err(ApiError::bad_request(format!(
            "the object's metadata cannot be decoded: {error}"
        )));
    }
    if let Some(map) = metadata.as_object_mut() {
        map.retain(|k, _| schema.root().properties.contains_key(k));
    }
    Ok(())
}

/// Built-in kinds are decoded into types: what does not fit is no object of the kind at all.
fn check_types(resource: &Resource, schema: &Schema, object: &Value) -> Result<(), ApiError> {
    if resource.is_custom() || resource.special == Special::Crd {
        return Ok(());
    }
    let wrong = windlass_schema::validate(schema, object, None);
    match wrong.iter().find(|error| error.kind != Kind::Duplicate) {
        Some(error) => Err(ApiError::bad_request(format!(
            "{kind} in version \"{version}\" cannot be handled as a {kind}: {error}",
            kind = resource.kind,
            version = resource.version,
        ))),
        None => Ok(()),
    }
}

/// Everything wrong with an object that is about to be stored; `old` is what it replaces.
pub(crate) fn errors(resource: &Resource, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    metadata_errors(resource, object, old, &mut errors);
    if let Some(old) = old {
        errors.extend(immutable_errors(old, object));
    }
    errors.extend(crate::special::errors(resource, object, old));
    if resource.is_custom()
        && let Some(schema) = resource.schema()
    {
        errors.extend(windlass_schema::validate(schema, object, old));
    }
    errors
}

/// Refuses an object with errors.
pub(crate) fn check(resource: &Resource, object: &Value, old: Option<&Value>) -> Result<(), ApiError> {
    let errors = errors(resource, object, old);
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(
        &resource.group,
        &resource.kind,
        meta(object, "name"),
        &errors,
    ))
}

fn metadata_errors(resource: &Resource, object: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let name = meta(object, "name");
    let prefix = meta(object, "generateName");
    if old.is_none() {
        if !prefix.is_empty() {
            for problem in resource.name_rule.problems(prefix, true) {
                errors.push(FieldError::invalid("metadata.generateName", prefix.into(), problem));
            }
        }
        if name.is_empty() {
            errors.push(FieldError::required(
                "metadata.name",
                "name or generateName is required",
            ));
        } else {
            for problem in resource.name_rule.problems(name, false) {
                errors.push(FieldError::invalid("metadata.name", name.into(), problem));
            }
        }
    }
    let changed = |key: &str| old.is_none_or(|old| meta_value(old, key) != meta_value(object, key));
    if changed("labels")
        && let Some(labels) = meta_value(object, "labels")
    {
        check_labels(labels, "metadata.labels", errors);
    }
    if changed("annotations")
        && let Some(annotations) = meta_value(object, "annotations")
    {
        check_annotations(annotations, "metadata.annotations", errors);
    }
    if changed("ownerReferences") {
        crate::owners::errors(object, errors);
    }
    if changed("finalizers") {
        crate::owners::finalizer_errors(object, resource.is_custom(), errors);
    }
    if changed("managedFields") {
        manager_errors(object, errors);
    }
}

fn manager_errors(object: &Value, errors: &mut Vec<FieldError>) {
    let managers = meta_value(object, "managedFields").and_then(Value::as_array);
    for (i, entry) in managers.into_iter().flatten().enumerate() {
        for (key, most) in [("manager", 128), ("subresource", 256)] {
            if text(entry, key).len() > most {
                errors.push(FieldError::new(
                    format!("metadata.managedFields[{i}].{key}"),
                    Kind::TooLong,
                    None,
                    format!("may not be more than {most} bytes"),
                ));
            }
        }
    }
}
