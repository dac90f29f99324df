//! Hooks that validate or change objects before they are stored.

use serde_json::Value;

use crate::error::ApiError;
use crate::objects::convert::served;
use crate::state::Inner;
use windlass_rbac::attributes::Attributes;
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
    /// What else the server knows.
    pub server: &'a dyn Lookup,
}

/// What a hook may ask the server.
pub trait Lookup: std::fmt::Debug + Sync {
    /// Whether a user has a permission.
    fn allows(&self, user: &UserInfo, asked: &Attributes<'_>) -> bool;
    /// An object of a resource; none if it does not exist, or the resource is not served in this version.
    fn object(&self, resource: (&str, &str, &str), namespace: &str, name: &str) -> Result<Option<Value>, ApiError>;
    /// The resource of a kind of an API group.
    fn resource(&self, group: &str, kind: &str) -> Option<String>;
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner").finish_non_exhaustive()
    }
}

impl Lookup for Inner {
    fn allows(&self, user: &UserInfo, asked: &Attributes<'_>) -> bool {
        self.authorizer.allows(user, asked)
    }

    fn object(
        &self,
        (group, version, plural): (&str, &str, &str),
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, ApiError> {
        let Some(resource) = self.registry().find(group, version, plural) else {
            return Ok(None);
        };
        let found = self.store.get(&resource.storage, namespace, name);
        found.map(|record| served(&resource, &record)).transpose()
    }

    fn resource(&self, group: &str, kind: &str) -> Option<String> {
        let registry = self.registry();
        let mut all = registry.everything();
        let found = all.find(|resource| resource.group == group && resource.kind == kind)?;
        Some(found.plural.clone())
    }
}

/// A hook: a function of the request, the object, and what the server knows. It waits for nothing.
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
