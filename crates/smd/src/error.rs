//! Errors of applies and patches.

use std::fmt;

/// Why an apply was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Other managers own fields with other values.
    #[error("{0}")]
    Conflicts(Conflicts),
    /// The applied configuration does not match its schema, or cannot be merged.
    #[error("{0}")]
    Invalid(String),
    /// managedFields cannot be parsed.
    #[error("failed to decode managed fields: {0}")]
    BadFields(String),
    /// The applied configuration contains managedFields.
    #[error("metadata.managedFields must be nil")]
    ManagedFieldsSet,
}

/// A field that another manager owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The other manager in Kubernetes' form: `"kubectl" using apps/v1`.
    pub manager: String,
    /// The field: `.spec.replicas`.
    pub path: String,
}

impl Conflict {
    /// The message of the cause in a `Status`.
    pub fn message(&self) -> String {
        format!("conflict with {}", self.manager)
    }
}

/// The conflicts of one apply, by manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflicts {
    /// The first ones.
    pub listed: Vec<Conflict>,
    /// How many more there are.
    pub left_out: usize,
}

impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let ([only], 0) = (self.listed.as_slice(), self.left_out) {
            return write!(
                f,
                "Apply failed with 1 conflict: conflict with {}: {}",
                only.manager, only.path
            );
        }
        let count = self.listed.len() + self.left_out;
        write!(f, "Apply failed with {count} conflicts: ")?;
        let mut last: Option<&str> = None;
        for conflict in &self.listed {
            if last != Some(&conflict.manager) {
                if last.is_some() {
                    f.write_str("\n")?;
                }
                write!(f, "conflicts with {}:", conflict.manager)?;
                last = Some(&conflict.manager);
            }
            write!(f, "\n- {}", conflict.path)?;
        }
        if self.left_out > 0 {
            write!(f, "\nand {} more", self.left_out)?;
        }
        Ok(())
    }
}

/// Why a patch was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch is malformed.
    #[error("{0}")]
    BadPatch(String),
    /// The patch cannot be applied to the object.
    #[error("{0}")]
    Unprocessable(String),
    /// The patch has too many operations, or they copy too much.
    #[error("{0}")]
    TooLarge(String),
    /// An error without a reason in Kubernetes: its servers report an internal error.
    #[error("{0}")]
    Unnamed(String),
}
