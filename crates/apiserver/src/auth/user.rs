//! Who asks.

use std::collections::BTreeMap;

use serde_json::{Value, json};

pub(crate) const AUTHENTICATED: &str = "system:authenticated";
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";
pub(crate) const ANONYMOUS: &str = "system:anonymous";
pub(crate) const MASTERS: &str = "system:masters";

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
    pub(crate) fn account(namespace: &str, name: &str) -> Self {
        let groups = ["system:serviceaccounts", &format!("system:serviceaccounts:{namespace}")];
        Self::new(&format!("system:serviceaccount:{namespace}:{name}"), &groups)
    }

    /// Nobody known.
    pub fn anonymous() -> Self {
        Self {
            name: ANONYMOUS.to_owned(),
            groups: vec![UNAUTHENTICATED.to_owned()],
            ..Self::default()
        }
    }

    /// Whether the user was recognised.
    pub fn is_authenticated(&self) -> bool {
        self.groups.iter().any(|g| g == AUTHENTICATED)
    }

    pub(crate) fn is_master(&self) -> bool {
        self.groups.iter().any(|g| g == MASTERS)
    }
}

/// A user as Kubernetes' objects have it.
pub(crate) fn user_value(user: &UserInfo) -> Value {
    let mut out = json!({"username": user.name, "groups": user.groups});
    if !user.uid.is_empty() {
        out["uid"] = user.uid.clone().into();
    }
    if !user.extra.is_empty() {
        out["extra"] = json!(user.extra);
    }
    out
}
