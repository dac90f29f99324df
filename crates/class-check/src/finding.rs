//! What is found in files, with its place and what to do about it.

use std::fmt;

use serde::Serialize;
use windlass_gocompat::quote::quoted;

use crate::positions::Position;

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// An API server refuses it, or Clusters of the class cannot be made.
    Error,
    /// It works, but hardly as its author means it; or it could not be tried.
    Warning,
    /// What was not checked, and why.
    Note,
}

/// A check, by its name in outputs and in the documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// The text is YAML or JSON, and each document an object.
    Syntax,
    /// No object is there twice.
    DuplicateObject,
    /// CustomResourceDefinitions can be used.
    Definition,
    /// The kind has the version.
    Version,
    /// Fields have the names, types and values of their schema.
    Schema,
    /// Names, labels and annotations.
    Metadata,
    /// Values have no variables of clusterctl.
    UnreplacedVariable,
    /// What admission refuses.
    Admission,
    /// What admission warns of.
    AdmissionWarning,
    /// The kind is known.
    UnknownKind,
    /// The templates of a class are there.
    TemplateReference,
    /// Go templates name variables that exist.
    UndefinedVariable,
    /// Variables are used.
    UnusedVariable,
    /// Variables have a value to try patches with.
    ExampleValue,
    /// Patches change what generated objects take over.
    PatchWithoutEffect,
    /// A patch is enabled by some values.
    PatchNeverEnabled,
    /// Patches of extensions.
    ExternalPatch,
    /// Patches can be applied.
    Patch,
    /// What a patch writes has no missing value in it.
    MissingValue,
    /// Generated objects are not refused.
    GeneratedObject,
    /// All else that keeps a Cluster from being generated.
    Topology,
}

impl Check {
    /// All checks.
    pub const ALL: [Self; 21] = [
        Self::Syntax,
        Self::DuplicateObject,
        Self::Definition,
        Self::Version,
        Self::Schema,
        Self::Metadata,
        Self::UnreplacedVariable,
        Self::Admission,
        Self::AdmissionWarning,
        Self::UnknownKind,
        Self::TemplateReference,
        Self::UndefinedVariable,
        Self::UnusedVariable,
        Self::ExampleValue,
        Self::PatchWithoutEffect,
        Self::PatchNeverEnabled,
        Self::ExternalPatch,
        Self::Patch,
        Self::MissingValue,
        Self::GeneratedObject,
        Self::Topology,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::DuplicateObject => "duplicate-object",
            Self::Definition => "definition",
            Self::Version => "version",
            Self::Schema => "schema",
            Self::Metadata => "metadata",
            Self::UnreplacedVariable => "unreplaced-variable",
            Self::Admission => "admission",
            Self::AdmissionWarning => "admission-warning",
            Self::UnknownKind => "unknown-kind",
            Self::TemplateReference => "template-reference",
            Self::UndefinedVariable => "undefined-variable",
            Self::UnusedVariable => "unused-variable",
            Self::ExampleValue => "example-value",
            Self::PatchWithoutEffect => "patch-without-effect",
            Self::PatchNeverEnabled => "patch-never-enabled",
            Self::ExternalPatch => "external-patch",
            Self::Patch => "patch",
            Self::MissingValue => "missing-value",
            Self::GeneratedObject => "generated-object",
            Self::Topology => "topology",
        }
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How grave it is.
    pub severity: Severity,
    /// The check that found it.
    pub check: Check,
    /// The name of the file.
    pub file: String,
    /// Where in the file.
    #[serde(flatten)]
    pub position: Position,
    /// The object, as `Kind namespace/name`; empty for a whole document.
    pub object: String,
    /// The field in it; empty for the whole object.
    pub field: String,
    /// The problem.
    pub message: String,
    /// What to do about it; may be empty.
    pub hint: String,
}

/// `file:line:column: error: object: field: message [check]`, in one line.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        let Position { line, column } = self.position;
        write!(f, "{}:{line}:{column}: {severity}: ", one_line(&self.file))?;
        for part in [&self.object, &self.field] {
            if !part.is_empty() {
                write!(f, "{}: ", one_line(part))?;
            }
        }
        write!(f, "{} [{}]", one_line(&self.message), self.check.name())
    }
}

/// A text without characters that end a line or that a terminal would act on.
pub(crate) fn one_line(text: &str) -> String {
    if text.contains(char::is_control) {
        quoted(text).trim_matches('"').to_owned()
    } else {
        text.to_owned()
    }
}

/// What is wrong with a field of an object, without its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) severity: Severity,
    pub(crate) check: Check,
    pub(crate) field: String,
    pub(crate) message: String,
    pub(crate) hint: String,
    /// The line of the field's text that it is about.
    pub(crate) line: Option<usize>,
}

impl Problem {
    pub(crate) fn error(check: Check, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, check, field, message)
    }

    pub(crate) fn warning(check: Check, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, check, field, message)
    }

    pub(crate) fn note(check: Check, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Severity::Note, check, field, message)
    }

    fn new(severity: Severity, check: Check, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            severity,
            check,
            field: field.into(),
            message: message.into(),
            hint: String::new(),
            line: None,
        }
    }

    /// With what to do about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    pub(crate) fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_have_the_same_names_in_all_outputs() {
        for check in Check::ALL {
            let json = serde_json::to_value(check).unwrap();
            assert_eq!(json, check.name());
        }
    }

    #[test]
    fn a_finding_is_one_line() {
        let finding = Finding {
            severity: Severity::Warning,
            check: Check::Patch,
            file: "a.yaml".to_owned(),
            position: Position { line: 3, column: 5 },
            object: "ClusterClass c".to_owned(),
            field: "spec.x".to_owned(),
            message: "is \"bad\"\nand \u{1b}[31mred".to_owned(),
            hint: String::new(),
        };
        let line = finding.to_string();
        assert!(
            line.starts_with("a.yaml:3:5: warning: ClusterClass c: spec.x: is "),
            "{line}"
        );
        assert!(line.ends_with(" [patch]") && !line.contains(char::is_control), "{line}");
    }
}
