//! Who asks, and what they may.

use std::collections::BTreeMap;

use http::HeaderMap;

use crate::error::ApiError;

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

/// Asks the authorizer, and says no in Kubernetes' words.
pub(crate) fn allow(user: &UserInfo, a: &Attributes<'_>, authorizer: &dyn Authorizer) -> Result<(), ApiError> {
    if user.is_master() {
        return Ok(());
    }
    authorizer.authorize(user, a).map_err(|why| {
        let place = if a.namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace \"{}\"", a.namespace)
        };
        let tail = if why.is_empty() {
            String::new()
        } else {
            format!(": {why}")
        };
        let words = if a.resource.is_empty() {
            format!("User \"{}\" cannot {} path \"{}\"{tail}", user.name, a.verb, a.path)
        } else {
            format!(
                "User \"{}\" cannot {} resource \"{}\" in API group \"{}\" {place}{tail}",
                user.name, a.verb, a.resource, a.group
            )
        };
        ApiError::forbidden(a.group, a.resource, a.name, &words)
    })
}

/// The user that a request is made in the name of, if it is not its own.
pub(crate) fn impersonated(
    user: &UserInfo,
    headers: &HeaderMap,
    authorizer: &dyn Authorizer,
) -> Result<Option<UserInfo>, ApiError> {
    let values = |name: &str| -> Vec<&str> { headers.get_all(name).iter().filter_map(|v| v.to_str().ok()).collect() };
    let groups = values("impersonate-group");
    let uid = values("impersonate-uid").first().copied().unwrap_or("");
    let Some(name) = values("impersonate-user").first().copied().filter(|n| !n.is_empty()) else {
        return if groups.is_empty() && uid.is_empty() {
            Ok(None)
        } else {
            Err(ApiError::bad_request(
                "groups or a uid are to be impersonated without a user: set Impersonate-User, too",
            ))
        };
    };
    if !user.is_authenticated() {
        return Err(ApiError::unauthorized());
    }
    for (resource, name) in std::iter::once(("users", name)).chain(groups.iter().map(|g| ("groups", *g))) {
        let attributes = Attributes {
            verb: "impersonate",
            group: "",
            resource,
            subresource: "",
            namespace: "",
            name,
            path: "",
        };
        allow(user, &attributes, authorizer)?;
        // Whoever may become a master may do everything: only one may.
        if name == "system:masters" && !user.is_master() {
            return Err(ApiError::forbidden("", resource, name, "only its members may join it"));
        }
    }
    let mut other = UserInfo::new(name, &groups);
    uid.clone_into(&mut other.uid);
    Ok(Some(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(user: &UserInfo, headers: &[(&'static str, &'static str)]) -> Result<Option<UserInfo>, ApiError> {
        let mut map = HeaderMap::new();
        for (key, value) in headers {
            map.append(*key, http::HeaderValue::from_static(value));
        }
        impersonated(user, &map, &AllowAuthenticated)
    }

    #[test]
    fn requests_in_the_name_of_others_are_theirs() {
        let admin = UserInfo::admin("root");
        assert_eq!(ask(&admin, &[]).unwrap(), None);
        let bob = ask(&admin, &[("impersonate-user", "bob"), ("impersonate-group", "dev")]).unwrap();
        assert_eq!(bob.unwrap(), UserInfo::new("bob", &["dev"]));
        assert_eq!(ask(&admin, &[("impersonate-group", "dev")]).unwrap_err().code, 400);
        assert_eq!(
            ask(&UserInfo::anonymous(), &[("impersonate-user", "bob")])
                .unwrap_err()
                .code,
            401
        );
    }

    #[test]
    fn nobody_becomes_a_master_who_is_none() {
        let eve = UserInfo::new("eve", &[]);
        let headers = [("impersonate-user", "x"), ("impersonate-group", "system:masters")];
        assert_eq!(ask(&eve, &headers).unwrap_err().code, 403);
        assert!(ask(&UserInfo::admin("root"), &headers).unwrap().unwrap().is_master());
    }
}
