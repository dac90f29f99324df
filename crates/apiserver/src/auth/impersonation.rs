//! Impersonation: which user a request names, and whether the requesting user may impersonate that user.
//!
//! Two permissions allow it. With the verb `impersonate` on a user, all requests are allowed. With a constrained verb such as
//! `impersonate:user-info`, each request also needs the permission `impersonate-on:user-info:VERB` on its target. The name of
//! these verbs depends on the type of the impersonated user. The constrained permission is tried first, as its errors are more
//! specific.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use http::{HeaderMap, HeaderValue};

use crate::auth::authorizer::{Authorizer, refusal};
use crate::error::ApiError;
use crate::http::request::percent_decode;
use windlass_rbac::attributes::{Attributes, Target};
use windlass_rbac::user::{ANONYMOUS, AUTHENTICATED, MASTERS, UNAUTHENTICATED, UserInfo};

const SERVICE_ACCOUNT: &str = "system:serviceaccount:";
const NODE: &str = "system:node:";
/// The API group of impersonated fields other than users and groups.
const MORE: &str = "authentication.k8s.io";

/// The impersonated user, as in the headers.
pub(crate) struct Wanted<'h> {
    name: &'h str,
    groups: Vec<&'h str>,
    uid: &'h str,
    extra: BTreeMap<String, Vec<String>>,
}

/// A permission to impersonate: the verb, and the API group of users and groups.
struct Right<'a> {
    verb: &'a str,
    group: &'static str,
}

/// The values of a header that are not empty. Names are UTF-8, as Go's clients send them.
fn texts<'h>(headers: &'h HeaderMap, name: &str) -> Result<Vec<&'h str>, ApiError> {
    let read = |value: &'h HeaderValue| {
        std::str::from_utf8(value.as_bytes())
            .map_err(|_| ApiError::bad_request(format!("header {name}: the value is not UTF-8")))
    };
    let values: Result<Vec<&str>, _> = headers.get_all(name).iter().map(read).collect();
    let mut values = values?;
    values.retain(|value| !value.is_empty());
    Ok(values)
}

impl<'h> Wanted<'h> {
    /// Reads the headers; `None` without impersonation. A header that cannot be read is an error: without it, the request would run with
    /// the rights of the sender, or without a group that limits it.
    pub(crate) fn read(headers: &'h HeaderMap) -> Result<Option<Self>, ApiError> {
        const EXTRA: &str = "impersonate-extra-";
        if !headers.keys().any(|key| key.as_str().starts_with("impersonate-")) {
            return Ok(None);
        }
        let values = |name: &str| texts(headers, name);
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for key in headers.keys().filter(|key| key.as_str().starts_with(EXTRA)) {
            let name = percent_decode(&key.as_str()[EXTRA.len()..], false);
            let texts = values(key.as_str())?.into_iter().map(str::to_owned);
            extra.entry(name).or_default().extend(texts);
        }
        let out = Self {
            name: values("impersonate-user")?.first().copied().unwrap_or(""),
            groups: values("impersonate-group")?,
            uid: values("impersonate-uid")?.first().copied().unwrap_or(""),
            extra,
        };
        if !out.name.is_empty() {
            return Ok(Some(out));
        }
        if out.is_only_named() {
            return Ok(None);
        }
        Err(ApiError::bad_request(format!(
            "requested {} without impersonating a user name",
            out.shown()
        )))
    }

    fn is_only_named(&self) -> bool {
        self.groups.is_empty() && self.uid.is_empty() && self.extra.is_empty()
    }

    /// The form of Kubernetes' messages.
    fn shown(&self) -> String {
        let list = |texts: &[String]| {
            let quoted: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
            format!("[]string{{{}}}", quoted.join(", "))
        };
        let groups: Vec<String> = self.groups.iter().map(|g| (*g).to_owned()).collect();
        let mut out = format!("&user.DefaultInfo{{Name:{:?}, UID:{:?}, Groups:", self.name, self.uid);
        out.push_str(&if groups.is_empty() {
            "[]string(nil)".to_owned()
        } else {
            list(&groups)
        });
        out.push_str(", Extra:map[string][]string");
        if self.extra.is_empty() {
            out.push_str("(nil)");
        } else {
            let entries: Vec<String> = self
                .extra
                .iter()
                .map(|(key, values)| format!("{key:?}:{}", list(values)))
                .collect();
            // Writing to a String cannot fail.
            let _ = write!(out, "{{{}}}", entries.join(", "));
        }
        out.push('}');
        out
    }

    /// Namespace and name of a service account.
    fn account(&self) -> Option<(&'h str, &'h str)> {
        self.name.strip_prefix(SERVICE_ACCOUNT)?.split_once(':')
    }

    fn node(&self) -> Option<&'h str> {
        self.name.strip_prefix(NODE).filter(|name| !name.is_empty())
    }

    /// The type of the impersonated user in the names of constrained verbs.
    fn sort(&self) -> Option<&'static str> {
        match (self.node(), self.account()) {
            (Some(_), _) => self.is_only_named().then_some("arbitrary-node"),
            (_, Some(_)) => self.is_only_named().then_some("serviceaccount"),
            _ => Some("user-info"),
        }
    }

    /// The impersonated user, if `user` has the permission.
    pub(crate) fn become_by(
        self,
        user: &UserInfo,
        asked: &Attributes<'_>,
        authorizer: &Authorizer,
    ) -> Result<UserInfo, ApiError> {
        let mut first = None;
        if let Some(sort) = self.sort() {
            let on = format!("impersonate-on:{sort}:{}", asked.verb);
            let limited = Attributes {
                verb: &on,
                target: asked.target,
            };
            let verb = format!("impersonate:{sort}");
            let right = Right {
                verb: &verb,
                group: MORE,
            };
            let done = authorizer
                .check(user, &limited)
                .and_then(|()| self.check_limits(user, &right))
                .and_then(|()| self.check(user, authorizer, &right));
            match done {
                Ok(()) => return Ok(self.user(true)),
                Err(error) => first = Some(error),
            }
        }
        let right = Right {
            verb: "impersonate",
            group: "",
        };
        match self.check(user, authorizer, &right) {
            Ok(()) => Ok(self.user(false)),
            Err(error) => Err(first.unwrap_or(error)),
        }
    }

    /// A constrained permission never leads to an unconstrained one.
    fn check_limits(&self, user: &UserInfo, right: &Right<'_>) -> Result<(), ApiError> {
        if !self.groups.contains(&MASTERS) {
            return Ok(());
        }
        let asked = Attributes {
            verb: right.verb,
            target: target(right.group, "groups", "", "", MASTERS),
        };
        let why = "impersonating the system:masters group is not allowed";
        Err(refusal(user, &asked, why))
    }

    /// Checks the permission for every part of the impersonated user.
    fn check(&self, user: &UserInfo, authorizer: &Authorizer, right: &Right<'_>) -> Result<(), ApiError> {
        let ask = |target: Target<'_>| {
            let verb = right.verb;
            authorizer.check(user, &Attributes { verb, target })
        };
        let limited = right.group == MORE;
        match (self.account(), self.node().filter(|_| limited)) {
            (Some((namespace, name)), _) => ask(target(right.group, "serviceaccounts", "", namespace, name))?,
            (None, Some(name)) => ask(target(right.group, "nodes", "", "", name))?,
            (None, None) => ask(target(right.group, "users", "", "", self.name))?,
        }
        if !self.uid.is_empty() {
            ask(target(MORE, "uids", "", "", self.uid))?;
        }
        for group in &self.groups {
            ask(target(right.group, "groups", "", "", group))?;
        }
        for (key, values) in &self.extra {
            for value in values {
                ask(target(MORE, "userextras", key, "", value))?;
            }
        }
        Ok(())
    }

    fn user(self, limited: bool) -> UserInfo {
        let mut groups: Vec<String> = self.groups.iter().map(|g| (*g).to_owned()).collect();
        if groups.is_empty()
            && let Some((namespace, _)) = self.account()
        {
            groups.push("system:serviceaccounts".to_owned());
            groups.push(format!("system:serviceaccounts:{namespace}"));
        }
        if limited && self.node().is_some() {
            groups.push("system:nodes".to_owned());
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

fn target<'a>(
    group: &'a str,
    resource: &'a str,
    subresource: &'a str,
    namespace: &'a str,
    name: &'a str,
) -> Target<'a> {
    Target::Resource {
        group,
        resource,
        subresource,
        namespace,
        name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_rbac::attributes::Target;

    fn ask(user: &UserInfo, headers: &[(&'static str, &'static str)]) -> Result<Option<UserInfo>, ApiError> {
        let headers: Vec<_> = headers.iter().map(|(key, value)| (*key, value.as_bytes())).collect();
        ask_in_bytes(user, &headers)
    }

    fn ask_in_bytes(user: &UserInfo, headers: &[(&'static str, &[u8])]) -> Result<Option<UserInfo>, ApiError> {
        let mut map = HeaderMap::new();
        for (key, value) in headers {
            map.append(*key, HeaderValue::from_bytes(value).unwrap());
        }
        let asked = Attributes {
            verb: "get",
            target: Target::Path("/x"),
        };
        let wanted = Wanted::read(&map)?;
        wanted
            .map(|wanted| wanted.become_by(user, &asked, &Authorizer::AllowAuthenticated))
            .transpose()
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

    /// A request whose user cannot be read must not be one of the sender.
    #[test]
    fn names_are_utf8_and_nothing_is_left_out() {
        let admin = UserInfo::admin("root");
        let other = ask(
            &admin,
            &[("impersonate-user", "müller"), ("impersonate-group", "größe")],
        );
        assert_eq!(other.unwrap().unwrap(), UserInfo::new("müller", &["größe"]));
        for header in [
            "impersonate-user",
            "impersonate-group",
            "impersonate-uid",
            "impersonate-extra-a",
        ] {
            let headers = [
                ("impersonate-user", b"bob".as_slice()),
                (header, b"m\xfcller".as_slice()),
            ];
            let error = ask_in_bytes(&admin, &headers).unwrap_err();
            assert_eq!(
                (error.code, error.message.contains(header)),
                (400, true),
                "{}",
                error.message
            );
            let error = ask_in_bytes(&admin, &headers[1..]).unwrap_err();
            assert_eq!(error.code, 400);
        }
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
    fn only_masters_impersonate_masters() {
        let eve = UserInfo::new("eve", &[]);
        let headers = [("impersonate-user", "x"), ("impersonate-group", "system:masters")];
        assert_eq!(ask(&eve, &headers).unwrap_err().code, 403);
        assert!(ask(&UserInfo::admin("root"), &headers).unwrap().unwrap().is_master());
    }

    #[test]
    fn impersonated_users_are_shown_as_in_kubernetes() {
        let error = ask(&UserInfo::admin("root"), &[("impersonate-group", "dev")]).unwrap_err();
        assert_eq!(
            error.message,
            r#"requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"dev"}, Extra:map[string][]string(nil)} without impersonating a user name"#
        );
    }
}
