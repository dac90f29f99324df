//! Validates values.

use std::collections::HashSet;

use serde_json::{Map, Value};
use windlass_gocompat::quote;

use crate::check::{Checks, NumberFormat};
use crate::error::{FieldError, Kind, MOST_ERRORS, go_float};
use crate::keyed::{OldItems, keyed};
use crate::node::{Additional, Node, Schema, Type};
use crate::path::Path;

/// The errors of an API object.
///
/// With `old`, errors of unchanged parts are not reported again (ratcheting), and transition rules are evaluated.
pub fn validate(schema: &Schema, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
    validate_at(schema, "", value, old)
}

/// The errors of a value at the path `at`.
pub fn validate_at(schema: &Schema, at: &str, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let path = Path::Root(at);
    validate_node(&schema.root, value, old, &path, &mut errors);
    keyed(&schema.root, value, old, &path, &mut errors);
    errors
}

/// The part of an object to validate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The whole object.
    Whole,
    /// The value of `status`.
    Status,
}

/// The errors in types and values of an object or its status, without those of keyed lists and rules.
///
/// With `old`, errors of unchanged parts are not reported again.
pub fn check_shape(schema: &Schema, part: Part, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let root = Path::Root("");
    match part {
        Part::Whole => {
            validate_node(&schema.root, value, old, &root, &mut errors);
        }
        Part::Status => {
            if let (Some(node), Some(status)) = (schema.root.properties.get("status"), value.get("status")) {
                let old = old.and_then(|old| old.get("status"));
                errors = apart(node, status, old, &Path::Field(&root, "status"));
            }
        }
    }
    errors
}

/// The errors of a value at a path, worded as for a value on its own.
pub(crate) fn apart(node: &Node, value: &Value, old: Option<&Value>, at: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    validate_node(node, value, old, &Path::Root(""), &mut errors);
    for error in &mut errors {
        error.path = if error.path.is_empty() {
            at.to_string()
        } else {
            format!("{at}.{}", error.path)
        };
    }
    errors
}

/// What is wrong with the lists with keys of an object.
pub fn check_lists(schema: &Schema, value: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    keyed(&schema.root, value, old, &Path::Root(""), errors);
}

/// Validates a value and everything in it; returns the number of visited values.
pub(crate) fn validate_node(
    node: &Node,
    value: &Value,
    old: Option<&Value>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) -> usize {
    let start = errors.len();
    if start >= MOST_ERRORS {
        return 0;
    }
    let seen = check_value(node, value, old, path, errors);
    // Unchanged values are tolerated. The comparison is needed only if there are errors.
    if errors.len() > start && old == Some(value) {
        errors.truncate(start);
    }
    seen
}

fn check_value(
    node: &Node,
    value: &Value,
    old: Option<&Value>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) -> usize {
    let typed = check_type(node, value, path, errors);
    if value.is_null() {
        if let Some(checks) = &node.checks {
            check_enum(checks, value, path, errors);
        }
        return usize::from(typed);
    }
    let mut seen = usize::from(typed);
    let checks = node.checks.as_deref();
    if let Some(checks) = checks {
        seen += junctors(checks, value, old, path, errors);
        match value {
            Value::String(text) => check_string(checks, text, path, errors),
            Value::Number(number) => check_number(checks, number, path, errors),
            _ => {}
        }
    }
    if let Value::Array(items) = value {
        if let Some(below) = &node.items {
            let before = old.and_then(|old| OldItems::of(node, old));
            for (index, item) in items.iter().enumerate() {
                let before = before.as_ref().and_then(|before| before.get(item));
                seen += validate_node(below, item, before, &Path::Index(path, index), errors);
            }
        }
        if let Some(checks) = checks {
            check_items(checks, items, path, errors);
        }
    }
    if let Some(checks) = checks {
        check_enum(checks, value, path, errors);
    }
    if let Value::Object(map) = value {
        if let Some(checks) = checks {
            check_counts(checks, map.len(), path, errors);
        }
        seen += fields(node, map, old, path, errors);
        for name in checks.map(|c| c.required.as_slice()).unwrap_or_default() {
            if !map.contains_key(name) {
                errors.push(FieldError::required(Path::Field(path, name).to_string(), ""));
            }
        }
    }
    seen
}

fn fields(
    node: &Node,
    map: &Map<String, Value>,
    old: Option<&Value>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) -> usize {
    let mut seen = 0;
    for (name, child) in map {
        let below = match node.properties.get(name) {
            Some(below) => below,
            None if node.closed && errors.len() >= MOST_ERRORS => break,
            None if node.closed => {
                let detail = format!("{} in body is a forbidden property", Path::Field(path, name));
                errors.push(FieldError::invalid(path.to_string(), name.as_str().into(), detail));
                continue;
            }
            None => match &node.additional {
                Additional::Values(below) => below.as_ref(),
                _ => continue,
            },
        };
        seen += validate_node(
            below,
            child,
            old.and_then(|old| old.get(name)),
            &Path::Field(path, name),
            errors,
        );
    }
    seen
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(n) if n.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn is_whole(value: &Value) -> bool {
    match value {
        Value::Number(n) => !n.is_f64() || n.as_f64().is_some_and(|f| f.fract() == 0.0),
        _ => false,
    }
}

fn check_type(node: &Node, value: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) -> bool {
    let want = if node.int_or_string {
        "integer,string"
    } else {
        node.kind.map_or("", Type::name)
    };
    let fits = match value {
        _ if want.is_empty() => true,
        Value::Null => node.nullable,
        _ if node.int_or_string => value.is_string() || is_whole(value),
        _ => match node.kind {
            None => true,
            Some(Type::Object) => value.is_object(),
            Some(Type::Array) => value.is_array(),
            Some(Type::String) => value.is_string(),
            Some(Type::Boolean) => value.is_boolean(),
            Some(Type::Number) => value.is_number(),
            Some(Type::Integer) => is_whole(value),
        },
    };
    if !fits {
        let (is, want) = mismatch(node, value, want);
        let detail = format!("{path} in body must be of type {want}: {}", quote::quoted(is));
        errors.push(FieldError::new(
            path.to_string(),
            Kind::TypeInvalid,
            Some(is.into()),
            detail,
        ));
        if node.kind == Some(Type::Integer) && value.is_number() {
            let format = node.checks.as_deref().and_then(|checks| checks.number_format);
            errors.push(out_of_range(path, "integer", format));
        }
    }
    fits
}

/// The error of a value of the wrong type. It names formats instead of types, if the schema has a format.
fn mismatch<'a>(node: &'a Node, value: &Value, want: &'a str) -> (&'static str, &'a str) {
    let is = type_name(value);
    let format = node
        .checks
        .as_deref()
        .and_then(|checks| match (&checks.format, checks.number_format) {
            (Some((_, name)), _) => Some(name.as_str()),
            (None, Some(number)) => Some(number.name()),
            (None, None) => None,
        });
    match (format, value) {
        (Some(format), Value::Number(n)) => (if n.is_f64() { "float64" } else { "int64" }, format),
        (Some(format), Value::Bool(_) | Value::Object(_)) => ("", format),
        _ => (is, want),
    }
}

fn out_of_range(path: &Path<'_>, kind: &str, format: Option<NumberFormat>) -> FieldError {
    let format = format.map_or("(default format)".to_owned(), |f| format!("with format {}", f.name()));
    let detail = format!("Checked value must be of type {kind} {format} in {path}");
    FieldError::invalid(path.or_nil(), "".into(), detail)
}

fn invalid(path: &Path<'_>, value: &Value, rest: &str, errors: &mut Vec<FieldError>) {
    errors.push(FieldError::invalid(
        path.to_string(),
        value.clone(),
        format!("{path} in body {rest}"),
    ));
}

fn check_enum(checks: &Checks, value: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if checks.one_of_values.is_empty() || checks.one_of_values.iter().any(|allowed| same(allowed, value)) {
        return;
    }
    let allowed: Vec<String> = checks
        .one_of_values
        .iter()
        .map(|v| match v {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        })
        .collect();
    errors.push(FieldError::not_supported(path.to_string(), value.clone(), &allowed));
}

/// Equality in which 1 and 1.0 are the same number.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => x == y || x.as_f64() == y.as_f64(),
        _ => a == b,
    }
}

fn check_string(checks: &Checks, text: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let length = || text.chars().count() as u64;
    let value = || Value::String(text.to_owned());
    if let Some(max) = checks
        .max_length
        .filter(|max| text.len() as u64 > *max && length() > *max)
    {
        let unit = if max == 1 { "byte" } else { "bytes" };
        errors.push(FieldError::new(
            path.to_string(),
            Kind::TooLong,
            None,
            format!("may not be more than {max} {unit}"),
        ));
    } else if let Some(min) = checks.min_length.filter(|min| length() < *min) {
        invalid(path, &value(), &format!("should be at least {min} chars long"), errors);
    } else if let Some((pattern, source)) = checks.pattern.as_ref().filter(|(p, _)| !p.is_match(text)) {
        let _ = pattern;
        invalid(path, &value(), &format!("should match '{source}'"), errors);
    }
    if let Some((format, name)) = checks.format.as_ref().filter(|(f, _)| !f.accepts(text)) {
        let _ = format;
        let detail = format!("{path} in body must be of type {name}: {}", quote::quoted(text));
        errors.push(FieldError::new(
            path.to_string(),
            Kind::TypeInvalid,
            Some(value()),
            detail,
        ));
    }
}

fn check_number(checks: &Checks, number: &serde_json::Number, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Some(float) = number.as_f64() else { return };
    let whole = !number.is_f64();
    let value = Value::Number(number.clone());
    let (kind, fits) = match checks.number_format {
        Some(NumberFormat::Int32) => ("integer", (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&float)),
        Some(NumberFormat::Int64) => (
            "integer",
            number.as_i64().is_some() || float.abs() < 9_223_372_036_854_775_808.0,
        ),
        Some(NumberFormat::Float) => ("number", float.abs() <= f64::from(f32::MAX)),
        _ => ("number", true),
    };
    if !fits {
        errors.push(out_of_range(path, kind, checks.number_format));
    }
    let show = |limit: f64| {
        if whole { go_int(limit) } else { go_float(limit) }
    };
    if let Some(factor) = checks.multiple_of {
        let fits = match (number.as_i64(), factor > 0.0 && factor.fract() == 0.0) {
            #[expect(clippy::cast_possible_truncation, reason = "the factor is whole")]
            (Some(n), true) => n % (factor as i64).max(1) == 0,
            _ if factor < 1.0 => is_near_whole(float * (1.0 / factor)),
            _ => is_near_whole(float / factor),
        };
        if !fits {
            invalid(
                path,
                &value,
                &format!("should be a multiple of {}", show(factor)),
                errors,
            );
        }
    }
    if let Some(min) = checks.minimum
        && (float < min || (checks.exclusive_minimum && float <= min))
    {
        let words = if checks.exclusive_minimum {
            "greater than"
        } else {
            "greater than or equal to"
        };
        invalid(path, &value, &format!("should be {words} {}", show(min)), errors);
    }
    if let Some(max) = checks.maximum
        && (float > max || (checks.exclusive_maximum && float >= max))
    {
        let words = if checks.exclusive_maximum {
            "less than"
        } else {
            "less than or equal to"
        };
        invalid(path, &value, &format!("should be {words} {}", show(max)), errors);
    }
}

fn is_near_whole(float: f64) -> bool {
    let diff = (float - float.round()).abs();
    diff == 0.0 || diff <= float.abs() * 1e-9
}

fn go_int(float: f64) -> String {
    format!("{:.0}", float.trunc())
}

fn check_items(checks: &Checks, items: &[Value], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let size = items.len() as u64;
    if let Some(min) = checks.min_items.filter(|min| size < *min) {
        invalid(path, &size.into(), &format!("should have at least {min} items"), errors);
    }
    if let Some(max) = checks.max_items.filter(|max| size > *max) {
        errors.push(too_many(path, size, max));
    }
    if checks.unique_items && has_duplicates(items) {
        errors.push(FieldError::invalid(
            path.to_string(),
            "".into(),
            format!("{path} in body shouldn't contain duplicates"),
        ));
    }
}

fn too_many(path: &Path<'_>, size: u64, max: u64) -> FieldError {
    let unit = if max == 1 { "item" } else { "items" };
    FieldError::new(
        path.to_string(),
        Kind::TooMany,
        Some(size.into()),
        format!("must have at most {max} {unit}"),
    )
}

fn check_counts(checks: &Checks, size: usize, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let size = size as u64;
    if let Some(min) = checks.min_properties.filter(|min| size < *min) {
        invalid(
            path,
            &size.into(),
            &format!("should have at least {min} properties"),
            errors,
        );
    }
    if let Some(max) = checks.max_properties.filter(|max| size > *max) {
        errors.push(too_many(path, size, max));
    }
}

fn has_duplicates(items: &[Value]) -> bool {
    let mut seen = HashSet::with_capacity(items.len());
    items.iter().any(|item| !seen.insert(item))
}

fn junctors(
    checks: &Checks,
    value: &Value,
    old: Option<&Value>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) -> usize {
    let mut seen = 0;
    let composite = |detail: String, errors: &mut Vec<FieldError>| {
        errors.push(FieldError::invalid(path.or_nil(), "".into(), detail));
    };
    let quoted = || quote::quoted(&path.to_string());
    if !checks.any_of.is_empty() {
        let outcome = branches(&checks.any_of, value, old, path);
        if outcome.valid == 0 {
            composite(
                format!("{} must validate at least one schema (anyOf)", quoted()),
                errors,
            );
            errors.extend(outcome.best);
        }
        seen += outcome.seen;
    }
    if !checks.one_of.is_empty() {
        let outcome = branches(&checks.one_of, value, old, path);
        if outcome.valid != 1 {
            let found = if outcome.valid == 0 {
                "Found none valid".to_owned()
            } else {
                format!("Found {} valid alternatives", outcome.valid)
            };
            composite(
                format!("{} must validate one and only one schema (oneOf). {found}", quoted()),
                errors,
            );
            if outcome.valid == 0 {
                errors.extend(outcome.best);
            }
        }
        seen += outcome.seen;
    }
    if !checks.all_of.is_empty() {
        let mut valid = 0;
        for branch in &checks.all_of {
            let start = errors.len();
            seen += validate_node(branch, value, old, path, errors);
            valid += usize::from(errors.len() == start);
        }
        if valid != checks.all_of.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            composite(
                format!("{} must validate all the schemas (allOf){none}", quoted()),
                errors,
            );
        }
    }
    if let Some(not) = &checks.not {
        let mut inner = Vec::new();
        validate_node(not, value, None, path, &mut inner);
        if inner.is_empty() {
            composite(format!("{} must not validate the schema (not)", quoted()), errors);
        }
    }
    seen
}

struct Outcome {
    valid: usize,
    /// The errors of the best matching branch.
    best: Vec<FieldError>,
    seen: usize,
}

fn branches(list: &[Node], value: &Value, old: Option<&Value>, path: &Path<'_>) -> Outcome {
    let mut outcome = Outcome {
        valid: 0,
        best: Vec::new(),
        seen: 0,
    };
    let mut furthest = None;
    for branch in list {
        let mut errors = Vec::new();
        let seen = validate_node(branch, value, old, path, &mut errors);
        if errors.is_empty() {
            outcome.valid += 1;
            outcome.seen = outcome.seen.max(seen);
        } else if furthest.is_none_or(|best| seen > best) {
            furthest = Some(seen);
            outcome.best = errors;
        }
    }
    outcome
}
