//! Who asks, and in whose name.

use std::collections::BTreeMap;

use http::HeaderMap;

use crate::authorize::{Attributes, Authorizer, Target};
use crate::error::ApiError;
use crate::request::percent_decode;

const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const ANONYMOUS: &str = "system:anonymous";
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

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
            groups: vec!["system:masters".to_owned(), AUTHENTICATED.to_owned()],
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
        self.groups.iter().any(|g| g == "system:masters")
    }
}

/// Whom a request is to be made as, as its headers say.
struct Wanted<'h> {
    name: &'h str,
    groups: Vec<&'h str>,
    uid: &'h str,
    extra: BTreeMap<String, Vec<String>>,
}

impl<'h> Wanted<'h> {
    fn read(headers: &'h HeaderMap) -> Result<Option<Self>, ApiError> {
        const EXTRA: &str = "impersonate-extra-";
        if !headers.keys().any(|key| key.as_str().starts_with("impersonate-")) {
            return Ok(None);
        }
        let values = |name: &str| {
            let values = headers.get_all(name).iter();
            values
                .filter_map(|v| v.to_str().ok())
                .filter(|v| !v.is_empty())
                .collect::<Vec<_>>()
        };
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for key in headers.keys().filter(|key| key.as_str().starts_with(EXTRA)) {
            let name = percent_decode(&key.as_str()[EXTRA.len()..], false);
            let texts = values(key.as_str()).into_iter().map(str::to_owned);
            extra.entry(name).or_default().extend(texts);
        }
        let out = Self {
            name: values("impersonate-user").first().copied().unwrap_or(""),
            groups: values("impersonate-group"),
            uid: values("impersonate-uid").first().copied().unwrap_or(""),
            extra,
        };
        if !out.name.is_empty() {
            return Ok(Some(out));
        }
        if out.groups.is_empty() && out.uid.is_empty() && out.extra.is_empty() {
            return Ok(None);
        }
        Err(ApiError::bad_request(
            "groups, a uid or more are to be impersonated without a user: set Impersonate-User, too",
        ))
    }

    /// Namespace and name, when it is a service account.
    fn account(&self) -> Option<(&'h str, &'h str)> {
        self.name.strip_prefix(SERVICE_ACCOUNT)?.split_once(':')
    }

    /// Asks for everything that the user would become.
    fn check(&self, user: &UserInfo, authorizer: &Authorizer) -> Result<(), ApiError> {
        const MORE: &str = "authentication.k8s.io";
        let ask = |group: &str, resource: &str, subresource: &str, namespace: &str, name: &str| {
            let target = Target::Resource {
                group,
                resource,
                subresource,
                namespace,
                name,
            };
            let verb = "impersonate";
            authorizer.check(user, &Attributes { verb, target })
        };
        match self.account() {
            Some((namespace, name)) => ask("", "serviceaccounts", "", namespace, name)?,
            None => ask("", "users", "", "", self.name)?,
        }
        for group in &self.groups {
            ask("", "groups", "", "", group)?;
        }
        for (key, values) in &self.extra {
            for value in values {
                ask(MORE, "userextras", key, "", value)?;
            }
        }
        if !self.uid.is_empty() {
            ask(MORE, "uids", "", "", self.uid)?;
        }
        Ok(())
    }

    fn user(self) -> UserInfo {
        let mut groups: Vec<String> = self.groups.iter().map(|g| (*g).to_owned()).collect();
        if groups.is_empty()
            && let Some((namespace, _)) = self.account()
        {
            groups.push("system:serviceaccounts".to_owned());
            groups.push(format!("system:serviceaccounts:{namespace}"));
        }
        if !groups.iter().any(|g| g == AUTHENTICATED || g == UNAUTHENTICATED) {
            let known = self.name != ANONYMOUS;
            groups.push(if known { AUTHENTICATED } else { UNAUTHENTICATED }.to_owned());
        }
        UserInfo {
            name: self.name.to_owned(),
            uid: self.uid.to_owned(),
            groups,
            extra: self.extra,
        }
    }
}

/// The user that a request is made in the name of, if it is not its own.
pub(crate) fn impersonated(
    user: &UserInfo,
    headers: &HeaderMap,
    authorizer: &Authorizer,
) -> Result<Option<UserInfo>, ApiError> {
    let Some(wanted) = Wanted::read(headers)? else {
        return Ok(None);
    };
    if !user.is_authenticated() {
        return Err(ApiError::unauthorized());
    }
    wanted.check(user, authorizer)?;
    Ok(Some(wanted.user()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(user: &UserInfo, headers: &[(&'static str, &'static str)]) -> Result<Option<UserInfo>, ApiError> {
        let mut map = HeaderMap::new();
        for (key, value) in headers {
            map.append(*key, http::HeaderValue::from_static(value));
        }
        impersonated(user, &map, &Authorizer::AllowAuthenticated)
    }

    #[test]
    fn requests_in_the_name_of_others_are_theirs() {
        let admin = UserInfo::admin("root");
        assert_eq!(ask(&admin, &[]).unwrap(), None);
        let bob = ask(&admin, &[("impersonate-user", "bob"), ("impersonate-group", "dev")]).unwrap();
        assert_eq!(bob.unwrap(), UserInfo::new("bob", &["dev"]));
        for lonely in ["impersonate-group", "impersonate-uid", "impersonate-extra-a"] {
            assert_eq!(ask(&admin, &[(lonely, "dev")]).unwrap_err().code, 400);
        }
        assert_eq!(
            ask(&UserInfo::anonymous(), &[("impersonate-user", "bob")])
                .unwrap_err()
                .code,
            401
        );
    }

    #[test]
    fn uid_and_more_come_along() {
        let headers = [
            ("impersonate-user", "bob"),
            ("impersonate-uid", "7"),
            ("impersonate-extra-example.com%2fscopes", "a"),
            ("impersonate-extra-example.com%2fscopes", "b"),
        ];
        let bob = ask(&UserInfo::admin("root"), &headers).unwrap().unwrap();
        assert_eq!(bob.uid, "7");
        assert_eq!(
            bob.extra,
            [("example.com/scopes".to_owned(), vec!["a".to_owned(), "b".to_owned()])].into()
        );
    }

    #[test]
    fn some_users_have_groups_by_their_name() {
        let check = |name: &'static str, want: &[&str]| {
            let other = ask(&UserInfo::admin("root"), &[("impersonate-user", name)]).unwrap();
            assert_eq!(other.unwrap().groups, want);
        };
        check("bob", &["system:authenticated"]);
        check("system:anonymous", &["system:unauthenticated"]);
        check(
            "system:serviceaccount:a:robot",
            &[
                "system:serviceaccounts",
                "system:serviceaccounts:a",
                "system:authenticated",
            ],
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
