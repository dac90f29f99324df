//! The identity of a client.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The group of all users that are authenticated.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The group of anonymous requests.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The name of an anonymous user.
pub const ANONYMOUS: &str = "system:anonymous";
/// The group with all permissions.
pub const MASTERS: &str = "system:masters";

/// The identity of a client.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UserInfo {
    /// User name.
    pub name: String,
    /// Uid, often empty.
    pub uid: String,
    /// Groups.
    pub groups: Vec<String>,
    /// Additional attributes from the authenticator.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl UserInfo {
    /// A member of `system:masters`, with all permissions.
    pub fn admin(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            groups: vec![MASTERS.to_owned(), AUTHENTICATED.to_owned()],
            ..Self::default()
        }
    }

    /// A user with groups.
    pub fn new(name: &str, groups: &[&str]) -> Self {
        let mut groups: Vec<String> = groups.iter().map(|g| (*g).to_owned()).collect();
        if !groups.iter().any(|g| g == AUTHENTICATED) {
            groups.push(AUTHENTICATED.to_owned());
        }
        Self {
            name: name.to_owned(),
            groups,
            ..Self::default()
        }
    }

    /// A service account.
    pub fn account(namespace: &str, name: &str) -> Self {
        let groups = ["system:serviceaccounts", &format!("system:serviceaccounts:{namespace}")];
        Self::new(&format!("system:serviceaccount:{namespace}:{name}"), &groups)
    }

    /// The anonymous user.
    pub fn anonymous() -> Self {
        Self {
            name: ANONYMOUS.to_owned(),
            groups: vec![UNAUTHENTICATED.to_owned()],
            ..Self::default()
        }
    }

    /// Whether the user is authenticated.
    pub fn is_authenticated(&self) -> bool {
        self.groups.iter().any(|g| g == AUTHENTICATED)
    }

    /// Whether the user has all permissions.
    pub fn is_master(&self) -> bool {
        self.groups.iter().any(|g| g == MASTERS)
    }
}

/// A user in the form of Kubernetes objects.
pub fn user_value(user: &UserInfo) -> Value {
    let mut out = json!({"username": user.name, "groups": user.groups});
    if !user.uid.is_empty() {
        out["uid"] = user.uid.clone().into();
    }
    if !user.extra.is_empty() {
        out["extra"] = json!(user.extra);
    }
    out
}
