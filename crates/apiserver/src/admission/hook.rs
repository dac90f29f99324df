//! Hooks that see, change or refuse objects before they are stored.

use serde_json::Value;

use crate::error::ApiError;
use windlass_rbac::user::UserInfo;

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmissionVerb {
    /// A new object.
    Create,
    /// A changed object.
    Update,
    /// An object that shall go.
    Delete,
}

/// A write on its way to the store.
#[derive(Debug, Clone, Copy)]
pub struct AdmissionRequest<'a> {
    /// What is being done.
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
    /// Who asks.
    pub user: &'a UserInfo,
    /// What is stored now.
    pub old: Option<&'a Value>,
    /// Nothing will be written.
    pub dry_run: bool,
}

/// A hook: a pure function of the request and the object.
pub trait AdmissionHook: Send + Sync + 'static {
    /// Changes the object, or refuses it; may add warnings. On a deletion the object is the old one, and changes are lost.
    fn admit(
        &self,
        request: &AdmissionRequest<'_>,
        object: &mut Value,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError>;
}
