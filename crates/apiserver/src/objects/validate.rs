//! Validation of an object before it is stored.

use std::sync::{Arc, LazyLock};

use serde_json::Value;
use windlass_cel::Validator;
use windlass_meta::budget::{LIGHT_RULE_COST, RULE_COST};
use windlass_schema::{FieldError, FieldErrors, Kind, Node, Schema};

use crate::codec::go_wording::json_type;
use crate::error::ApiError;
use crate::http::heavy;
use crate::objects::prepare::immutable_errors;
use crate::objects::resource::Resource;
use crate::verbs::options::FieldValidation;
use windlass_builtin_kinds::Special;
use windlass_objects::Part;
use windlass_objects::metadata::{meta, meta_value, text};
use windlass_objects::names::{check_annotations, check_labels};

static METADATA: LazyLock<Option<Arc<Schema>>> =
    LazyLock::new(|| windlass_builtin_kinds::parsed("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"));

/// Why an object does not match its schema.
pub(crate) enum Misshapen {
    /// Unknown or duplicate fields, in strict mode.
    Strict(Vec<String>),
    /// It cannot be decoded as the kind.
    Undecodable(String),
}

impl Misshapen {
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Strict(problems) => {
                // Errors of the YAML parser have their own prefix.
                let head = if problems[0].starts_with("line ") {
                    "yaml: unmarshal errors:\n  "
                } else {
                    ""
                };
                format!("strict decoding error: {head}{}", problems.join(", "))
            }
            Self::Undecodable(why) => why.clone(),
        }
    }

    fn error(self, resource: &Resource) -> ApiError {
        let Resource { kind, version, .. } = resource;
        ApiError::bad_request(format!(
            "{kind} in version \"{version}\" cannot be handled as a {kind}: {}",
            self.words()
        ))
    }
}

/// Drops unknown fields and applies defaults. Returns warnings, or refuses in strict mode. `problems` are the problems of the
/// object's text.
pub(crate) fn shape(
    resource: &Resource,
    object: &mut Value,
    problems: &[String],
    mode: FieldValidation,
) -> Result<Vec<String>, ApiError> {
    fit(resource, object, problems, mode).map_err(|misshapen| misshapen.error(resource))
}

/// [`shape`] for callers with their own error messages.
pub(crate) fn fit(
    resource: &Resource,
    object: &mut Value,
    problems: &[String],
    mode: FieldValidation,
) -> Result<Vec<String>, Misshapen> {
    let mut warnings: Vec<String> = Vec::new();
    fill_labels(object);
    if !resource.is_custom() {
        if let Some(schema) = resource.schema() {
            fill_texts(schema.root(), object);
        }
        drop_nulls(object);
    }
    let schema = resource.schema();
    if mode != FieldValidation::Ignore {
        warnings.extend(problems.iter().cloned());
        let mut unknown = Vec::new();
        if let Some(schema) = schema {
            unknown.extend(windlass_schema::unknown_fields(schema, object));
        }
        if let (Some(schema), Some(metadata)) = (METADATA.as_ref(), object.get("metadata")) {
            let within = windlass_schema::unknown_fields(schema, metadata);
            unknown.extend(within.into_iter().map(|p| format!("metadata.{p}")));
        }
        unknown.sort();
        unknown.dedup();
        warnings.extend(unknown.into_iter().map(|p| format!("unknown field \"{p}\"")));
    }
    if resource.is_custom()
        && let Some(schema) = schema
    {
        let unknown = crate::objects::embedded::shape(schema, METADATA.as_deref(), object, mode);
        warnings.extend(unknown.map_err(Misshapen::Undecodable)?);
    }
    if mode == FieldValidation::Strict && !warnings.is_empty() {
        return Err(Misshapen::Strict(warnings));
    }
    if let Some(schema) = schema {
        decode(resource, schema, object).map_err(Misshapen::Undecodable)?;
    }
    prune_metadata(resource, object).map_err(Misshapen::Undecodable)?;
    warnings.extend(windlass_objects::owners::unite(object));
    if let Some(schema) = schema {
        windlass_schema::prune(schema, object);
        windlass_schema::default(schema, object);
        windlass_schema::drop_nulls(schema, object);
    }
    if resource.is_custom() {
        windlass_schema::whole_numbers(object);
    }
    (resource.strategy.default)(object);
    Ok(warnings)
}

/// Completes the result of an apply. It has no unknown fields. Emptied fields are null and stay so, because validation reports
/// null if the schema of a custom resource does not allow it.
pub(crate) fn complete_applied(resource: &Resource, object: &mut Value) -> Result<(), ApiError> {
    let custom = resource.is_custom().then(|| resource.schema()).flatten();
    let Some(schema) = custom else {
        return shape(resource, object, &[], FieldValidation::Ignore).map(drop);
    };
    prune_metadata(resource, object).map_err(|why| Misshapen::Undecodable(why).error(resource))?;
    windlass_schema::default_keeping_nulls(schema, object);
    windlass_schema::whole_numbers(object);
    Ok(())
}

/// In a map of texts, Go's decoders read null as an empty text.
fn fill_texts(node: &Node, value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, child) in map {
                let known = node.properties.contains_key(key);
                match node.field(key) {
                    Some(below) if !known && child.is_null() && below.is_plain_text() => *child = "".into(),
                    Some(below) => fill_texts(below, child),
                    None => {}
                }
            }
        }
        Value::Array(items) => {
            if let Some(below) = &node.items {
                for item in items {
                    if item.is_null() && below.is_plain_text() {
                        *item = "".into();
                    } else {
                        fill_texts(below, item);
                    }
                }
            }
        }
        _ => {}
    }
}

/// Go's decoders read null as "not set".
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

/// Replaces null values of labels and annotations with empty texts.
fn fill_labels(object: &mut Value) {
    for key in ["labels", "annotations"] {
        let map = object.get_mut("metadata").and_then(|m| m.get_mut(key));
        for (_, value) in map.and_then(Value::as_object_mut).into_iter().flatten() {
            if value.is_null() {
                *value = "".into();
            }
        }
    }
}

fn prune_metadata(resource: &Resource, object: &mut Value) -> Result<(), String> {
    let Some(schema) = METADATA.as_ref() else {
        return Ok(());
    };
    let Some(metadata) = object.get_mut("metadata") else {
        return Ok(());
    };
    drop_nulls(metadata);
    let wrong = windlass_schema::validate_at(schema, "metadata", metadata, None);
    // Duplicate elements of a list are not distinguished here: some are merged, some stay.
    if let Some(error) = wrong.iter().find(|error| error.kind != Kind::Duplicate) {
        return Err(undecodable_metadata(resource, metadata, error));
    }
    windlass_schema::prune(schema, metadata);
    Ok(())
}

/// The decoding error of metadata in the wording of Go's decoder, which names its types.
fn undecodable_metadata(resource: &Resource, metadata: &Value, error: &FieldError) -> String {
    let below = error.path.strip_prefix("metadata.").unwrap_or(&error.path);
    let end = below.find(['.', '[']).unwrap_or(below.len());
    let (field, rest) = below.split_at(end);
    let last = rest.rsplit('.').next().unwrap_or("");
    let (owner, field, wanted) = match (field, rest) {
        ("labels" | "annotations", "") => ("ObjectMeta", field.to_owned(), "map[string]string"),
        ("finalizers", "") => ("ObjectMeta", field.to_owned(), "[]string"),
        ("ownerReferences", "") => ("ObjectMeta", field.to_owned(), "[]v1.OwnerReference"),
        ("ownerReferences", rest) if rest.contains('.') => {
            let wanted = if matches!(last, "controller" | "blockOwnerDeletion") {
                "bool"
            } else {
                "string"
            };
            ("OwnerReference", format!("{field}.{last}"), wanted)
        }
        ("generation" | "deletionGracePeriodSeconds", _) => ("ObjectMeta", field.to_owned(), "int64"),
        _ => ("ObjectMeta", field.to_owned(), "string"),
    };
    if field.ends_with("Timestamp")
        && let Some(time) = metadata.get(&field).and_then(Value::as_str)
    {
        return format!(
            "parsing time \"{time}\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"{time}\" as \"2006\""
        );
    }
    let mut at = metadata;
    for part in below.split(['.', '[', ']']).filter(|p| !p.is_empty()) {
        let index = part.parse::<usize>().ok();
        at = at.get(part).or_else(|| at.get(index?)).unwrap_or(&Value::Null);
    }
    let prefix = if resource.is_custom() { "" } else { "metadata." };
    format!(
        "json: cannot unmarshal {} into Go struct field {owner}.{prefix}{field} of type {wanted}",
        json_type(at)
    )
}

/// Decodes an object of a built-in kind: an object that does not match the type cannot be stored at all.
fn decode(resource: &Resource, schema: &Schema, object: &mut Value) -> Result<(), String> {
    if resource.is_custom() {
        return Ok(());
    }
    windlass_builtin_kinds::decode(schema, &resource.kind, object)
}

/// All validation errors of an object that is about to be stored; `old` is the object that it replaces.
fn errors(
    resource: &Resource,
    part: Part,
    object: &Value,
    old: Option<&Value>,
    warnings: &mut Vec<String>,
) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if old.is_none() {
        name_errors(resource, object, &mut errors);
    }
    metadata_errors(object, old, &mut errors);
    if let Some(old) = old {
        errors.extend(immutable_errors(old, object));
        // Kubernetes validates twice: for all kinds in common, then for each kind.
        errors.extend(errors.clone());
    }
    if old.is_none_or(|old| meta_value(old, "finalizers") != meta_value(object, "finalizers")) {
        windlass_objects::owners::finalizer_errors(object, resource.is_custom(), &mut errors);
    }
    errors.extend(resource.strategy.errors(object, old, part));
    if let Some(validator) = resource.validator() {
        custom_errors(resource, validator, part, (object, old), &mut errors, warnings);
    }
    errors
}

/// Errors of a custom object.
fn custom_errors(
    resource: &Resource,
    validator: &Validator,
    part: Part,
    (object, old): (&Value, Option<&Value>),
    errors: &mut FieldErrors,
    warnings: &mut Vec<String>,
) {
    let schema = validator.schema();
    let shape = match part {
        Part::Status => windlass_schema::Part::Status,
        _ => windlass_schema::Part::Whole,
    };
    errors.extend(windlass_schema::check_shape(schema, shape, object, old));
    if let Some(paths) = &resource.scale {
        crate::objects::scale::errors(paths, part != Part::Status, object, errors);
    }
    if part != Part::Status {
        windlass_schema::each_embedded(schema, object, &mut |path, embedded| {
            crate::objects::embedded::errors(&path.to_string(), embedded, errors);
        });
    }
    let mut known = Vec::new();
    // Rules depend on what was found before.
    let mut found = std::mem::take(errors).into_vec();
    let before = found.len();
    let left = validator.check_rest(object, old, LIGHT_RULE_COST, &mut found, &mut known);
    if left.is_none() {
        resource.costly.note();
        found.truncate(before);
        known.clear();
        heavy::at_once(|| validator.check_rest(object, old, RULE_COST, &mut found, &mut known));
    }
    errors.extend(found);
    warnings.extend(known.iter().map(ToString::to_string));
}

/// Refuses an object with errors.
pub(crate) fn check(
    resource: &Resource,
    part: Part,
    object: &Value,
    old: Option<&Value>,
    warnings: &mut Vec<String>,
) -> Result<(), ApiError> {
    if resource.special == Special::Crd && part != Part::Status {
        warnings.extend(crate::crds::warnings(object, old));
    }
    if part == Part::Main {
        warnings.extend((resource.strategy.warnings)(object, old));
    }
    let errors = errors(resource, part, object, old, warnings);
    if errors.is_empty() {
        return Ok(());
    }
    // Events are validated as those of the core group.
    let group = if resource.storage.as_ref() == "events" {
        ""
    } else {
        &resource.group
    };
    let refused = ApiError::invalid(group, &resource.kind, meta(object, "name"), &errors);
    Err(refused.warned(warnings))
}

fn name_errors(resource: &Resource, object: &Value, errors: &mut FieldErrors) {
    let name = meta(object, "name");
    if name.is_empty() {
        errors.push(FieldError::required(
            "metadata.name",
            "name or generateName is required",
        ));
        return;
    }
    for problem in resource.name_rule.problems(name, false) {
        errors.push(FieldError::invalid("metadata.name", name.into(), problem));
    }
}

fn metadata_errors(object: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
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
        windlass_objects::owners::errors(object, errors);
    }
    if changed("managedFields") {
        manager_errors(object, errors);
    }
}

fn manager_errors(object: &Value, errors: &mut FieldErrors) {
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
