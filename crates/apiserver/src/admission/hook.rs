//! Hooks that validate or change objects before they are stored.

use serde_json::Value;

use crate::error::ApiError;
use windlass_rbac::user::UserInfo;

/// The operation of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmissionVerb {
    /// A new object.
    Create,
    /// A changed object.
    Update,
    /// An object to delete.
    Delete,
}

/// A write before it is stored.
#[derive(Debug, Clone, Copy)]
pub struct AdmissionRequest<'a> {
    /// The operation.
    pub verb: AdmissionVerb,
    /// API group.
    pub group: &'a str,
    /// API version.
    pub version: &'a str,
    /// Kind.
    pub kind: &'a str,
    /// Resource.
    pub resource: &'a str,
    /// Subresource, may be empty.
    pub subresource: &'a str,
    /// Namespace, empty for cluster scope.
    pub namespace: &'a str,
    /// Name.
    pub name: &'a str,
    /// The user of the request.
    pub user: &'a UserInfo,
    /// The stored object.
    pub old: Option<&'a Value>,
    /// True for a dry run: nothing will be stored.
    pub dry_run: bool,
}

/// A hook: a pure function of the request and the object.
pub trait AdmissionHook: Send + Sync + 'static {
    /// Changes the object, or refuses the write; may add warnings. On a deletion the object is the old one, and changes are
    /// discarded.
    fn admit(
        &self,
        request: &AdmissionRequest<'_>,
        object: &mut Value,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError>;
}
