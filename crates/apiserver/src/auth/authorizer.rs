//! Authorization: the authorizer of a server, and the wording of a refusal.

use crate::auth::rbac::Rbac;
use crate::error::ApiError;
use windlass_rbac::attributes::{Attributes, Decision, Target};
use windlass_rbac::user::UserInfo;

/// The authorization mode. Members of `system:masters` have all permissions in each mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Authorization {
    /// All authenticated users have all permissions.
    #[default]
    AllowAuthenticated,
    /// The stored Roles, ClusterRoles and bindings decide. The default roles are created at start.
    Rbac,
}

/// The authorizer of a server.
pub(crate) enum Authorizer {
    AllowAuthenticated,
    Rbac(Rbac),
}

impl Authorizer {
    /// Whether the user has a permission. Allocates nothing.
    pub(crate) fn allows(&self, user: &UserInfo, asked: &Attributes<'_>) -> bool {
        if user.is_master() {
            return true;
        }
        match self {
            Self::AllowAuthenticated => user.is_authenticated() && !joins_masters(asked),
            Self::Rbac(rbac) => rbac.allows(user, asked),
        }
    }

    /// Whether the user has a permission, and the reason.
    pub(crate) fn decide(&self, user: &UserInfo, asked: &Attributes<'_>) -> Decision {
        match self {
            Self::Rbac(rbac) if !user.is_master() => rbac.decide(user, asked),
            _ => Decision {
                allowed: self.allows(user, asked),
                reason: String::new(),
            },
        }
    }

    /// Returns the Forbidden error of Kubernetes if the user lacks the permission.
    pub(crate) fn check(&self, user: &UserInfo, asked: &Attributes<'_>) -> Result<(), ApiError> {
        if self.allows(user, asked) {
            return Ok(());
        }
        Err(match self {
            // All authenticated users have all permissions, so only authentication is checked.
            Self::AllowAuthenticated if !user.is_authenticated() => ApiError::unauthorized(),
            _ => refusal(user, asked, &self.decide(user, asked).reason),
        })
    }

    /// The roles, in the mode RBAC.
    pub(crate) fn rbac(&self) -> Option<&Rbac> {
        match self {
            Self::AllowAuthenticated => None,
            Self::Rbac(rbac) => Some(rbac),
        }
    }
}

/// Whether a request would let the user act as a member of `system:masters`. Without RBAC, only members may do this.
fn joins_masters(asked: &Attributes<'_>) -> bool {
    matches!(
        asked,
        Attributes {
            verb: "impersonate",
            target: Target::Resource {
                resource: "groups",
                name: "system:masters",
                ..
            }
        }
    )
}

pub(crate) fn refusal(user: &UserInfo, asked: &Attributes<'_>, reason: &str) -> ApiError {
    let tail = if reason.is_empty() {
        String::new()
    } else {
        format!(": {reason}")
    };
    let (who, verb) = (&user.name, asked.verb);
    match asked.target {
        Target::Path(path) => {
            let words = format!("forbidden: User {who:?} cannot {verb} path {path:?}{tail}");
            let mut error = ApiError::new(403, "Forbidden", words);
            error.details = Some(Box::default());
            error
        }
        Target::Resource {
            group,
            resource,
            subresource,
            namespace,
            name,
        } => {
            let (slash, sub) = if subresource.is_empty() {
                ("", "")
            } else {
                ("/", subresource)
            };
            let place = if namespace.is_empty() {
                "at the cluster scope".to_owned()
            } else {
                format!("in the namespace {namespace:?}")
            };
            let words = format!(
                "User {who:?} cannot {verb} resource \"{resource}{slash}{sub}\" in API group {group:?} {place}{tail}"
            );
            ApiError::forbidden(group, resource, name, &words)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(target: Target<'_>, reason: &str, want: &str) {
        let bob = UserInfo::new("bob", &[]);
        let asked = Attributes { verb: "get", target };
        assert_eq!(refusal(&bob, &asked, reason).message, want);
    }

    #[test]
    fn a_refusal_says_who_may_not_do_what_where() {
        let pod = Target::Resource {
            group: "",
            resource: "pods",
            subresource: "",
            namespace: "n",
            name: "p",
        };
        check(
            pod,
            "",
            r#"pods "p" is forbidden: User "bob" cannot get resource "pods" in API group "" in the namespace "n""#,
        );
        let scale = Target::Resource {
            group: "apps",
            resource: "deployments",
            subresource: "scale",
            namespace: "",
            name: "",
        };
        check(
            scale,
            "because",
            r#"deployments.apps is forbidden: User "bob" cannot get resource "deployments/scale" in API group "apps" at the cluster scope: because"#,
        );
        check(
            Target::Path("/metrics"),
            "",
            r#"forbidden: User "bob" cannot get path "/metrics""#,
        );
    }
}
