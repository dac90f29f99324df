//! Notes about decisions, for the author of the provider object.

use std::fmt;

use serde_json::Value;

/// A decision: a field of the declaration, and its effect on an object. It never contains values that may be secret: those of
/// variables, and of unknown flags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The field of the declaration, with its list index: `spec.manager.verbosity`.
    pub field: String,
    /// The changed object, by kind, namespace and name; may be empty.
    pub object: String,
    /// The container, for settings of containers.
    pub container: Option<String>,
    /// The effect, or the reason for having none.
    pub what: String,
    /// Whether the field had no effect, which its author should know.
    pub ignored: bool,
}

impl Note {
    pub(crate) fn done(field: &str, object: &str, what: impl Into<String>) -> Self {
        Self {
            field: field.to_owned(),
            object: object.to_owned(),
            container: None,
            what: what.into(),
            ignored: false,
        }
    }

    pub(crate) fn ignored(field: &str, object: &str, why: impl Into<String>) -> Self {
        Self {
            ignored: true,
            ..Self::done(field, object, why)
        }
    }

    pub(crate) fn in_container(mut self, container: &str) -> Self {
        self.container = Some(container.to_owned());
        self
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ignored = if self.ignored { "ignored, " } else { "" };
        write!(f, "{}: {ignored}{}", self.field, self.what)?;
        match (&self.container, self.object.is_empty()) {
            (Some(container), _) => write!(f, " (container {container} of {})", self.object),
            (None, false) => write!(f, " ({})", self.object),
            (None, true) => Ok(()),
        }
    }
}

/// Kind, namespace and name of an object, as messages show it.
pub(crate) fn object_name(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let metadata = &object["metadata"];
    match metadata["namespace"].as_str() {
        Some(namespace) => format!("{} {namespace}/{}", text(&object["kind"]), text(&metadata["name"])),
        None => format!("{} {}", text(&object["kind"]), text(&metadata["name"])),
    }
}
