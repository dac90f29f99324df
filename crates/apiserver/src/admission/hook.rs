//! Hooks that validate or change objects before they are stored.

use std::collections::BTreeMap;
use std::sync::Arc;

use memchr::memmem::Finder;
use serde_json::Value;
use windlass_store::{ListQuery, Record};

use crate::error::ApiError;
use crate::objects::convert::{brought_now, served};
use crate::objects::resource::Resource;
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
    /// Version and resource of a kind of an API group.
    fn resource(&self, group: &str, kind: &str) -> Option<(String, String)>;
    /// The objects of a resource, of one namespace or of all. Only those whose encoding has all of these texts are decoded: a filter for
    /// names and values that need no escape in JSON.
    fn objects(
        &self,
        resource: (&str, &str, &str),
        namespace: Option<&str>,
        texts: &[&str],
    ) -> Result<Vec<Value>, ApiError>;
    /// The objects of a resource in a namespace that have all of these labels. The others are not decoded.
    fn labelled(
        &self,
        resource: (&str, &str, &str),
        namespace: &str,
        labels: &BTreeMap<String, String>,
    ) -> Result<Vec<Value>, ApiError>;
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
        found.map(|record| self.served(&resource, &record)).transpose()
    }

    fn resource(&self, group: &str, kind: &str) -> Option<(String, String)> {
        let registry = self.registry();
        let mut all = registry.everything();
        let found = all.find(|resource| resource.group == group && resource.kind == kind)?;
        Some((found.version.clone(), found.plural.clone()))
    }

    fn objects(
        &self,
        resource: (&str, &str, &str),
        namespace: Option<&str>,
        texts: &[&str],
    ) -> Result<Vec<Value>, ApiError> {
        let finders: Vec<Finder<'_>> = texts.iter().map(Finder::new).collect();
        let has_all = |record: &Record| finders.iter().all(|finder| finder.find(&record.value).is_some());
        self.kept(resource, namespace, has_all)
    }

    fn labelled(
        &self,
        resource: (&str, &str, &str),
        namespace: &str,
        labels: &BTreeMap<String, String>,
    ) -> Result<Vec<Value>, ApiError> {
        let (group, version, plural) = resource;
        let Some(resource) = self.registry().find(group, version, plural) else {
            return Ok(Vec::new());
        };
        let found = self.store.labelled(&resource.storage, namespace, labels);
        found.iter().map(|record| self.served(&resource, record)).collect()
    }
}

impl Inner {
    /// The objects of a resource whose records are `wanted`.
    fn kept(
        &self,
        (group, version, plural): (&str, &str, &str),
        namespace: Option<&str>,
        wanted: impl Fn(&Record) -> bool,
    ) -> Result<Vec<Value>, ApiError> {
        let Some(resource) = self.registry().find(group, version, plural) else {
            return Ok(Vec::new());
        };
        let query = ListQuery {
            resource: &resource.storage,
            namespace,
            after: None,
            at: None,
        };
        let page = self.store.list(&query).map_err(ApiError::internal)?;
        let found = page.items.iter().filter(|record| wanted(record));
        found.map(|record| self.served(&resource, record)).collect()
    }

    fn served(&self, resource: &Resource, record: &Arc<Record>) -> Result<Value, ApiError> {
        let brought = brought_now(self, resource, record)?;
        served(resource, &brought)
    }
}

/// A hook: functions of the request, the object, and what the server knows. They wait for nothing. Objects whose versions are converted in this
/// process have the storage version, whatever version a request has. They are called for subresources,
/// too, with the object as it will be.
pub trait AdmissionHook: Send + Sync + 'static {
    /// Completes an object that is created or updated, or refuses the write; may add warnings. Says whether it has changed something. It
    /// is called again after a webhook has changed the object.
    fn complete(
        &self,
        _request: &AdmissionRequest<'_>,
        _object: &mut Value,
        _warnings: &mut Vec<String>,
    ) -> Result<bool, ApiError> {
        Ok(false)
    }

    /// Checks a complete and valid object, or refuses the write; may add warnings. On a deletion the object is the stored one.
    fn check(&self, request: &AdmissionRequest<'_>, object: &Value, warnings: &mut Vec<String>)
    -> Result<(), ApiError>;
}
