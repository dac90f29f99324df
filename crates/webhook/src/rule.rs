//! Admission rules, as data.

use serde_json::Value;
use windlass_schema::FieldError;

use crate::rights::{Reference, Refers};

/// A kind of write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A new object.
    Create,
    /// A changed object.
    Update,
    /// An object to remove.
    Delete,
}

impl Operation {
    /// The name in reviews and configurations.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// A write under review.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// Resource and group of the object, in the form of `kubectl`: `devclusters.infrastructure.cluster.x-k8s.io`.
    pub resource: &'a str,
    /// The stored object; `null` for a creation.
    pub old: &'a Value,
    /// The new object; `null` for a deletion.
    pub new: &'a Value,
}

/// The verdict about a write.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// The errors; the write is allowed if there are none.
    pub errors: Vec<FieldError>,
    /// Warnings for the user, for allowed and for refused writes.
    pub warnings: Vec<String>,
}

/// A pure function that checks a write.
pub type Check = fn(&Change<'_>) -> Verdict;

/// A check of writes of one kind. Subresources are not checked.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The API group.
    pub group: &'static str,
    /// The served versions; the first one names the path.
    pub versions: Vec<String>,
    /// The kind, which is namespaced.
    pub kind: &'static str,
    /// The resource name.
    pub resource: &'static str,
    /// The operations that it checks.
    pub operations: &'static [Operation],
    /// The check.
    pub check: Check,
    /// What a write newly refers to, so that the user needs rights there.
    pub refers: Option<Refers>,
    /// A condition in CEL: only writes for which it holds are sent to the webhook. Those for which it does not hold must pass the rule.
    pub condition: Option<&'static str>,
}

impl Rule {
    /// Resource and group.
    pub fn qualified(&self) -> String {
        format!("{}.{}", self.resource, self.group)
    }

    /// The name in configurations and refusals.
    pub fn name(&self) -> String {
        format!("validation.{}.{}", self.kind.to_ascii_lowercase(), self.group)
    }

    /// The path of reviews for a version, as controller-runtime names it.
    pub fn path(&self, version: &str) -> String {
        let kind = self.kind.to_ascii_lowercase();
        format!("/validate-{}-{version}-{kind}", self.group.replace('.', "-"))
    }

    /// Checks a write. Writes that the rule does not cover are allowed.
    pub fn judge(&self, operation: Operation, subresource: &str, old: &Value, new: &Value) -> Verdict {
        if !self.covers(operation, subresource) {
            return Verdict::default();
        }
        let resource = &self.qualified();
        (self.check)(&Change { resource, old, new })
    }

    /// What a write newly refers to. The user needs [rights](crate::decide) there.
    pub fn reference(&self, operation: Operation, subresource: &str, old: &Value, new: &Value) -> Option<Reference> {
        let refers = self.refers.filter(|_| self.covers(operation, subresource))?;
        let resource = &self.qualified();
        refers(&Change { resource, old, new })
    }

    fn covers(&self, operation: Operation, subresource: &str) -> bool {
        subresource.is_empty() && self.operations.contains(&operation)
    }
}
