//! Who asks, and what they may.

use std::collections::BTreeMap;

/// The identity of a client.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UserInfo {
    /// User name.
    pub name: String,
    /// Uid, often empty.
    pub uid: String,
    /// Groups.
    pub groups: Vec<String>,
    /// Anything else that the authenticator knows.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl UserInfo {
    /// A member of `system:masters`, who may do everything.
    pub fn admin(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            groups: vec!["system:masters".to_owned(), "system:authenticated".to_owned()],
            ..Self::default()
        }
    }

    /// A user with groups.
    pub fn new(name: &str, groups: &[&str]) -> Self {
        let mut groups: Vec<String> = groups.iter().map(|g| (*g).to_owned()).collect();
        if !groups.iter().any(|g| g == "system:authenticated") {
            groups.push("system:authenticated".to_owned());
        }
        Self {
            name: name.to_owned(),
            groups,
            ..Self::default()
        }
    }

    /// Nobody known.
    pub fn anonymous() -> Self {
        Self {
            name: "system:anonymous".to_owned(),
            groups: vec!["system:unauthenticated".to_owned()],
            ..Self::default()
        }
    }

    /// Whether the user was recognised.
    pub fn is_authenticated(&self) -> bool {
        self.groups.iter().any(|g| g == "system:authenticated")
    }

    pub(crate) fn is_master(&self) -> bool {
        self.groups.iter().any(|g| g == "system:masters")
    }
}

/// What a request wants to do.
#[derive(Debug, Clone, Copy)]
pub struct Attributes<'a> {
    /// `get`, `list`, `create`, ...
    pub verb: &'a str,
    /// API group.
    pub group: &'a str,
    /// Resource, `pods`.
    pub resource: &'a str,
    /// Subresource, may be empty.
    pub subresource: &'a str,
    /// Namespace, empty for cluster scope.
    pub namespace: &'a str,
    /// Name, may be empty.
    pub name: &'a str,
    /// The path, for requests that are not for a resource.
    pub path: &'a str,
}

/// Decides who may do what. Members of `system:masters` are never asked about.
pub trait Authorizer: Send + Sync + 'static {
    /// `Err` with a reason when the user may not.
    fn authorize(&self, user: &UserInfo, attributes: &Attributes<'_>) -> Result<(), String>;
}

/// Lets everybody do everything who is known.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllowAuthenticated;

impl Authorizer for AllowAuthenticated {
    fn authorize(&self, user: &UserInfo, _: &Attributes<'_>) -> Result<(), String> {
        if user.is_authenticated() {
            Ok(())
        } else {
            Err(String::new())
        }
    }
}
