//! A field of an object: its value, and its path for errors.

use std::net::IpAddr;

use serde_json::Value;
use windlass_schema::{FieldError, Kind};

use windlass_objects::names::{label_problems, qualified_name_problems, subdomain_problems};

pub(crate) type Errors = windlass_schema::FieldErrors;

/// A function that returns the problems of a name.
pub(crate) type Problems = fn(&str) -> Vec<String>;

static NOTHING: Value = Value::Null;

/// A value and its path.
#[derive(Debug, Clone)]
pub(crate) struct Field<'a> {
    pub(super) path: String,
    pub(super) value: &'a Value,
}

impl<'a> Field<'a> {
    /// A top-level field of an object.
    pub(crate) fn of(object: &'a Value, name: &str) -> Self {
        Self {
            path: name.to_owned(),
            value: object.get(name).unwrap_or(&NOTHING),
        }
    }

    pub(crate) fn get(&self, name: &str) -> Self {
        Self {
            path: format!("{}.{name}", self.path),
            value: self.value.get(name).unwrap_or(&NOTHING),
        }
    }

    pub(crate) fn items(&self) -> impl Iterator<Item = Self> + use<'a, '_> {
        let items = self.value.as_array().map_or(&[][..], Vec::as_slice);
        items.iter().enumerate().map(|(i, value)| Self {
            path: format!("{}[{i}]", self.path),
            value,
        })
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'a str, Self)> + use<'a, '_> {
        self.value.as_object().into_iter().flatten().map(|(key, value)| {
            let path = format!("{}[{key}]", self.path);
            (key.as_str(), Self { path, value })
        })
    }

    pub(crate) fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    /// Whether it is absent, or an empty text, list or map.
    pub(crate) fn is_empty(&self) -> bool {
        match self.value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(map) => map.is_empty(),
            _ => false,
        }
    }

    pub(crate) fn text(&self) -> &'a str {
        self.value.as_str().unwrap_or("")
    }

    pub(crate) fn int(&self) -> Option<i64> {
        self.value.as_i64()
    }

    pub(crate) fn is_true(&self) -> bool {
        self.value.as_bool() == Some(true)
    }

    pub(crate) fn required(&self, words: &str) -> FieldError {
        FieldError::required(self.path.clone(), words)
    }

    pub(crate) fn invalid(&self, words: impl Into<String>) -> FieldError {
        FieldError::invalid(self.path.clone(), self.value.clone(), words)
    }

    pub(crate) fn forbidden(&self, words: impl Into<String>) -> FieldError {
        FieldError::forbidden(self.path.clone(), words)
    }

    pub(crate) fn duplicate(&self) -> FieldError {
        FieldError::duplicate(self.path.clone(), self.value.clone())
    }

    pub(crate) fn not_found(&self) -> FieldError {
        FieldError::new(self.path.clone(), Kind::NotFound, Some(self.value.clone()), "")
    }

    pub(crate) fn unsupported(&self, allowed: &[&str]) -> FieldError {
        let allowed: Vec<String> = allowed.iter().map(|s| (*s).to_owned()).collect();
        FieldError::not_supported(self.path.clone(), self.value.clone(), &allowed)
    }
}

/// An error with a value in the form of Kubernetes' internal types.
pub(crate) fn printed(path: &str, kind: Kind, shown: &str, words: &str) -> FieldError {
    FieldError::new(path, kind, None, format!("{shown}: {words}"))
}

/// An unknown strategy type, in the form of Kubernetes' messages.
pub(crate) fn strategy(kind: &str) -> String {
    format!("{{\"Type\":{kind:?},\"RollingUpdate\":null}}")
}

/// Checks that a text is one of a few; an absent value is reported as missing.
pub(crate) fn one_of(field: &Field<'_>, allowed: &[&str], errors: &mut Errors) {
    if field.is_empty() {
        errors.push(field.required(""));
    } else if !allowed.contains(&field.text()) {
        errors.push(field.unsupported(allowed));
    }
}

/// Checks that a text is one of a few, if it is set.
pub(crate) fn maybe_one_of(field: &Field<'_>, allowed: &[&str], errors: &mut Errors) {
    if field.is_set() && !allowed.contains(&field.text()) {
        errors.push(field.unsupported(allowed));
    }
}

pub(crate) fn non_negative(field: &Field<'_>, errors: &mut Errors) {
    if field.int().is_some_and(|n| n < 0) {
        errors.push(field.invalid("must be greater than or equal to 0"));
    }
}

pub(crate) fn positive(field: &Field<'_>, errors: &mut Errors) {
    if field.int().is_some_and(|n| n <= 0) {
        errors.push(field.invalid("must be greater than 0"));
    }
}

pub(crate) fn within(field: &Field<'_>, low: i64, high: i64, errors: &mut Errors) {
    if field.int().is_some_and(|n| n < low || n > high) {
        errors.push(field.invalid(format!("must be between {low} and {high}, inclusive")));
    }
}

/// Checks that a text is set.
pub(crate) fn present(field: &Field<'_>, errors: &mut Errors) {
    if field.is_empty() {
        errors.push(field.required(""));
    }
}

/// Checks the form of a text, if it is not empty.
pub(crate) fn named(field: &Field<'_>, problems: Problems, errors: &mut Errors) {
    if !field.is_empty() {
        errors.extend(problems(field.text()).into_iter().map(|p| field.invalid(p)));
    }
}

/// Checks that a text is set and has a form.
pub(crate) fn must_be_named(field: &Field<'_>, problems: Problems, errors: &mut Errors) {
    present(field, errors);
    named(field, problems, errors);
}

pub(crate) fn label(field: &Field<'_>, errors: &mut Errors) {
    named(field, label_problems, errors);
}

pub(crate) fn subdomain(field: &Field<'_>, errors: &mut Errors) {
    named(field, subdomain_problems, errors);
}

pub(crate) fn qualified(field: &Field<'_>, errors: &mut Errors) {
    named(field, qualified_name_problems, errors);
}

/// Checks that a field keeps its value.
pub(crate) fn immutable(object: &Value, old: &Value, path: &str, errors: &mut Errors) {
    let pointer = format!("/{}", path.replace('.', "/"));
    let (is, was) = (object.pointer(&pointer), old.pointer(&pointer));
    if is != was {
        let is = is.cloned().unwrap_or(Value::Null);
        errors.push(FieldError::invalid(path, is, "field is immutable"));
    }
}

/// The problems of a port name (IANA service name).
pub(crate) fn port_name_problems(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    if text.len() > 15 {
        out.push("must be no more than 15 characters".to_owned());
    }
    if !text
        .bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    {
        out.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !text.bytes().any(|b| b.is_ascii_lowercase()) {
        out.push("must contain at least one letter (a-z)".to_owned());
    }
    if text.contains("--") {
        out.push("must not contain consecutive hyphens".to_owned());
    }
    if text.starts_with('-') || text.ends_with('-') {
        out.push("must not begin or end with a hyphen".to_owned());
    }
    out
}

/// Checks a port number or name.
pub(crate) fn port(field: &Field<'_>, errors: &mut Errors) {
    match field.value {
        Value::String(text) => errors.extend(port_name_problems(text).into_iter().map(|p| field.invalid(p))),
        _ => within(field, 1, 65535, errors),
    }
}

pub(crate) fn ip(field: &Field<'_>, errors: &mut Errors) -> Option<IpAddr> {
    let parsed = field.text().parse().ok();
    if parsed.is_none() {
        errors.push(field.invalid("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"));
    }
    parsed
}

/// Whether a text is a network such as `10.0.0.0/8`.
pub(crate) fn is_network(text: &str) -> bool {
    text.split_once('/').is_some_and(|(address, length)| {
        let most = match address.parse() {
            Ok(IpAddr::V4(_)) => 32,
            Ok(IpAddr::V6(_)) => 128,
            Err(_) => return false,
        };
        length.parse::<u8>().is_ok_and(|length| length <= most)
    })
}

/// Checks a number or percentage.
pub(crate) fn number_or_percent(field: &Field<'_>, errors: &mut Errors) {
    match field.value {
        Value::String(text) if percent(text).is_none() => errors.push(field.invalid(
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
        )),
        Value::Number(_) => non_negative(field, errors),
        _ => {}
    }
}

pub(crate) fn not_over_all(field: &Field<'_>, errors: &mut Errors) {
    if percent(field.text()).is_some_and(|n| n > 100) {
        errors.push(field.invalid("must not be greater than 100%"));
    }
}

fn percent(text: &str) -> Option<u64> {
    let digits = text.strip_suffix('%')?;
    (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().unwrap_or(u64::MAX))
}

/// Whether a number or percentage is zero.
pub(crate) fn is_none_of(field: &Field<'_>) -> bool {
    field.int() == Some(0) || percent(field.text()) == Some(0)
}

/// Sets an absent field.
pub(crate) fn or_set(object: &mut Value, key: &str, value: impl Into<Value>) {
    if let Some(map) = object.as_object_mut() {
        map.entry(key).or_insert_with(|| value.into());
    }
}

/// Sets a field.
pub(crate) fn set(object: &mut Value, key: &str, value: impl Into<Value>) {
    if let Some(map) = object.as_object_mut() {
        map.insert(key.to_owned(), value.into());
    }
}

/// The items of a nested list, mutable.
pub(crate) fn items_mut<'a>(object: &'a mut Value, pointer: &str) -> impl Iterator<Item = &'a mut Value> + use<'a> {
    object
        .pointer_mut(pointer)
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
}
