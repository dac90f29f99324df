//! Errors of fields, with the texts and cause reasons of Kubernetes.

use std::fmt;

use serde_json::Value;
use windlass_gocompat::quote;

/// The category of a field error. [`Kind::reason`] is the cause reason of a `Status`, `Display` the text of the error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A value is missing.
    Required,
    /// A value breaks a rule.
    Invalid,
    /// A value is not one of the allowed ones.
    NotSupported,
    /// A string is too long.
    TooLong,
    /// A list or map has too many items.
    TooMany,
    /// A value occurs more than once where it must be unique.
    Duplicate,
    /// A value has the wrong type.
    TypeInvalid,
    /// A value may not be set here.
    Forbidden,
    /// A reference to an object that does not exist.
    NotFound,
    /// The check itself failed.
    Internal,
}

impl Kind {
    /// The reason of a `metav1.StatusCause`.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::Duplicate => "FieldValueDuplicate",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::Forbidden => "FieldValueForbidden",
            Self::NotFound => "FieldValueNotFound",
            Self::Internal => "InternalError",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::Duplicate => "Duplicate value",
            Self::Forbidden => "Forbidden",
            Self::NotFound => "Not found",
            Self::Internal => "Internal error",
        }
    }
}

/// How many errors of an object are collected: one more than an answer lists. The sender of an object chooses how many there are.
pub const MOST_ERRORS: usize = windlass_meta::budget::FIELD_ERRORS + 1;

/// Bytes of the errors of an object that are collected: some times what an answer shows.
const MOST_BYTES: usize = 1 << 20;

/// The errors of the fields of an object, up to limits in number and bytes; the rest is dropped at once. The sender of an object chooses how
/// many errors it has and how long they are: a path has names of the object, and an error has a value of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FieldErrors {
    list: Vec<FieldError>,
    bytes: usize,
}

impl FieldErrors {
    /// No errors.
    pub const fn new() -> Self {
        Self {
            list: Vec::new(),
            bytes: 0,
        }
    }

    /// Adds an error, unless there are enough.
    pub fn push(&mut self, error: FieldError) {
        self.extend([error]);
    }

    /// Adds an error, which is made only if there is room.
    pub fn add(&mut self, make: impl FnOnce() -> FieldError) {
        self.extend(std::iter::once_with(make));
    }

    /// Whether there is no room. A loop that looks for errors only can end.
    pub fn is_full(&self) -> bool {
        self.list.len() >= MOST_ERRORS || self.bytes >= MOST_BYTES
    }

    /// The errors.
    pub fn into_vec(self) -> Vec<FieldError> {
        self.list
    }
}

impl std::ops::Deref for FieldErrors {
    type Target = [FieldError];

    fn deref(&self) -> &[FieldError] {
        &self.list
    }
}

impl Extend<FieldError> for FieldErrors {
    fn extend<T: IntoIterator<Item = FieldError>>(&mut self, errors: T) {
        let mut errors = errors.into_iter();
        while !self.is_full()
            && let Some(error) = errors.next()
        {
            self.bytes += error.bytes();
            self.list.push(error);
        }
    }
}

impl IntoIterator for FieldErrors {
    type Item = FieldError;
    type IntoIter = std::vec::IntoIter<FieldError>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

/// Whether a list of errors may lack some: it has as many as are collected.
pub fn is_full(errors: &[FieldError]) -> bool {
    errors.len() >= MOST_ERRORS || errors.iter().map(FieldError::bytes).sum::<usize>() >= MOST_BYTES
}

fn bytes_of(value: &Value) -> usize {
    let within = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(bytes_of).sum(),
        Value::Object(map) => map.iter().map(|(key, value)| key.len() + bytes_of(value)).sum(),
        _ => 0,
    };
    within + size_of::<Value>()
}

/// An error of one field.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    /// The path: `spec.foo[0].bar`, `metadata.labels[a/b]`.
    pub path: String,
    /// The category.
    pub kind: Kind,
    /// The invalid value, if Kubernetes shows it.
    pub value: Option<Value>,
    /// More detail; may be empty.
    pub detail: String,
    /// Whether the value is a text that is shown without quotes.
    verbatim: bool,
}

impl FieldError {
    /// The bytes that it keeps, about.
    fn bytes(&self) -> usize {
        self.path.len() + self.detail.len() + self.value.as_ref().map_or(0, bytes_of)
    }

    /// An error of any category.
    pub fn new(path: impl Into<String>, kind: Kind, value: Option<Value>, detail: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            kind,
            value,
            detail: detail.into(),
            verbatim: false,
        }
    }

    /// An error that shows `value` as its value.
    pub fn shown(path: impl Into<String>, kind: Kind, value: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            verbatim: true,
            ..Self::new(path, kind, Some(Value::String(value.into())), detail)
        }
    }

    /// A missing value.
    pub fn required(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(path, Kind::Required, None, detail)
    }

    /// A value that breaks a rule.
    pub fn invalid(path: impl Into<String>, value: Value, detail: impl Into<String>) -> Self {
        Self::new(path, Kind::Invalid, Some(value), detail)
    }

    /// A field that may not be set.
    pub fn forbidden(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(path, Kind::Forbidden, None, detail)
    }

    /// A value that is not one of `allowed` (listed in sorted order, as Kubernetes does).
    pub fn not_supported(path: impl Into<String>, value: Value, allowed: &[String]) -> Self {
        let quoted: Vec<String> = allowed.iter().map(|v| quote::quoted(v)).collect();
        let detail = if quoted.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", quoted.join(", "))
        };
        Self::new(path, Kind::NotSupported, Some(value), detail)
    }

    /// A value that occurs twice.
    pub fn duplicate(path: impl Into<String>, value: Value) -> Self {
        Self::new(path, Kind::Duplicate, Some(value), "")
    }

    /// The text without the path, as in `Status.details.causes[].message`.
    pub fn body(&self) -> String {
        let mut out = self.kind.text().to_owned();
        let shows_value = !matches!(
            self.kind,
            Kind::Required | Kind::Forbidden | Kind::TooLong | Kind::Internal
        );
        if shows_value && let Some(value) = &self.value {
            out.push_str(": ");
            match value {
                Value::String(text) if self.verbatim => out.push_str(text),
                Value::String(text) => out.push_str(&quote::quoted(text)),
                Value::Number(number) if number.is_f64() => {
                    out.push_str(&go_float(number.as_f64().unwrap_or_default()));
                }
                other => out.push_str(&go_json(other)),
            }
        }
        if !self.detail.is_empty() {
            out.push_str(": ");
            out.push_str(&self.detail);
        }
        out
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.body())
    }
}

impl std::error::Error for FieldError {}

/// The errors of an invalid schema.
#[derive(Debug, Clone, PartialEq)]
pub struct SchemaError(pub Vec<FieldError>);

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for SchemaError {}

/// JSON in Go's form, with characters escaped that have a meaning in HTML.
pub(crate) fn go_json(value: &Value) -> String {
    let text = value.to_string();
    if !text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return text;
    }
    text.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// As Go prints a float64 with `%v`.
pub(crate) fn go_float(float: f64) -> String {
    let text = format!("{float:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return format!("{float}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_error_is_made_once_there_are_many_or_they_are_long() {
        let made = |length: usize| {
            let (mut errors, mut made) = (FieldErrors::new(), 0);
            for _ in 0..2 * MOST_ERRORS {
                errors.add(|| {
                    made += 1;
                    FieldError::invalid("a", "x".repeat(length).into(), "b")
                });
            }
            errors.push(FieldError::required("a", ""));
            errors.extend([FieldError::required("a", "")]);
            assert_eq!((errors.len(), errors.is_full()), (made, true));
            assert!(is_full(&errors.into_vec()));
            made
        };
        assert_eq!((made(1), made(MOST_BYTES / 2)), (MOST_ERRORS, 2));
    }
}
