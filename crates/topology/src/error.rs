//! The one error of this crate: which object, which field, what is wrong.

/// Why a topology cannot be computed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{object}: {}{message}", at(field))]
pub struct Error {
    /// The object that has to be changed, as `Kind namespace/name`.
    pub object: String,
    /// The field in it, or nothing when the whole object is meant.
    pub field: String,
    /// The problem and the expectation.
    pub message: String,
}

fn at(field: &str) -> String {
    if field.is_empty() {
        String::new()
    } else {
        format!("{field}: ")
    }
}

impl Error {
    /// An error about one field of one object.
    pub fn new(object: impl Into<String>, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            object: object.into(),
            field: field.into(),
            message: message.into(),
        }
    }
}

/// `Kind namespace/name`, as errors and notes name an object.
pub fn describe(kind: &str, namespace: &str, name: &str) -> String {
    if namespace.is_empty() {
        format!("{kind} {name}")
    } else {
        format!("{kind} {namespace}/{name}")
    }
}
