//! Authorization checks in match conditions.

use std::sync::Arc;

use windlass_cel::{Permission, Permissions, Permitted};

use crate::auth::authorizer::Authorizer;
use windlass_rbac::attributes::{Attributes, Target};
use windlass_rbac::user::UserInfo;

/// Answers for the user of a request.
pub(super) struct UserPermissions {
    pub(super) authorizer: Arc<Authorizer>,
    pub(super) user: UserInfo,
}

impl Permissions for UserPermissions {
    fn check(&self, asked: &Permission) -> Permitted {
        let account = asked
            .account
            .as_ref()
            .map(|(namespace, name)| UserInfo::account(namespace, name));
        let target = match &asked.path {
            Some(path) => Target::Path(path),
            None => Target::Resource {
                group: &asked.group,
                resource: &asked.resource,
                subresource: &asked.subresource,
                namespace: &asked.namespace,
                name: &asked.name,
            },
        };
        let verb = &asked.verb;
        let user = account.as_ref().unwrap_or(&self.user);
        let decision = self.authorizer.decide(user, &Attributes { verb, target });
        Permitted {
            allowed: decision.allowed,
            reason: decision.reason,
        }
    }
}
