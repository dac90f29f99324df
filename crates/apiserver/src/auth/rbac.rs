//! Role-based access control: what the stored Roles, `ClusterRoles` and their bindings let a user do.
//!
//! They are kept parsed and looked at again, one by one, when one is written or removed, so a question decodes nothing.

mod bootstrap;
mod object;
pub(crate) mod policy;
pub(crate) mod rule;

use parking_lot::RwLock;
use windlass_store::{Record, Store};

pub(crate) use bootstrap::make_defaults;
pub(crate) use object::{default, errors};
pub(crate) use rule::Rule;

use crate::auth::attributes::{Attributes, Decision};
use crate::auth::user::UserInfo;
use crate::objects::object::decode;
use crate::objects::stored;
use policy::{Binding, Policy, Role, RoleRef};

/// The API group of roles and bindings.
pub(crate) const GROUP: &str = "rbac.authorization.k8s.io";
/// As the store knows them.
pub(crate) const CLUSTER_ROLES: &str = "clusterroles.rbac.authorization.k8s.io";
pub(crate) const CLUSTER_BINDINGS: &str = "clusterrolebindings.rbac.authorization.k8s.io";
pub(crate) const ROLES: &str = "roles.rbac.authorization.k8s.io";
pub(crate) const BINDINGS: &str = "rolebindings.rbac.authorization.k8s.io";

/// All roles and bindings of a store.
pub(crate) struct Rbac(RwLock<Policy>);

fn take_over(policy: &mut Policy, resource: &str, namespace: &str, name: &str, record: Option<&Record>) {
    let found = record.and_then(|record| Some((decode(record).ok()?, &record.header.labels)));
    match resource {
        ROLES | CLUSTER_ROLES => {
            let role = found.map(|(object, labels)| Role::parse(&object, labels));
            policy.set_role(namespace, name, role);
        }
        BINDINGS | CLUSTER_BINDINGS => {
            policy.set_binding(namespace, name, found.map(|(object, _)| Binding::parse(&object)));
        }
        _ => {}
    }
}

impl Rbac {
    /// Reads what is stored.
    pub(crate) fn load(store: &Store) -> Self {
        let mut policy = Policy::default();
        for resource in [ROLES, CLUSTER_ROLES, BINDINGS, CLUSTER_BINDINGS] {
            for record in stored::all(store, resource, None) {
                let key = &record.key;
                take_over(&mut policy, resource, key.namespace(), key.name(), Some(&record));
            }
        }
        Self(RwLock::new(policy))
    }

    /// Takes over an object that was written or removed.
    pub(crate) fn refresh(&self, store: &Store, resource: &str, namespace: &str, name: &str) {
        // It is read under the lock, so the last refresh always sees the last write.
        let mut policy = self.0.write();
        let record = store.get(resource, namespace, name);
        take_over(&mut policy, resource, namespace, name, record.as_deref());
    }

    /// Whether a user may do something.
    pub(crate) fn allows(&self, user: &UserInfo, asked: &Attributes<'_>) -> bool {
        self.0.read().allows(user, asked)
    }

    /// Whether a user may do something, and why.
    pub(crate) fn decide(&self, user: &UserInfo, asked: &Attributes<'_>) -> Decision {
        self.0.read().decide(user, asked)
    }

    /// All rules of a user in a namespace, or, if that is empty, in the cluster; and which roles are missing.
    pub(crate) fn rules_of(&self, user: &UserInfo, namespace: &str) -> (Vec<Rule>, Option<String>) {
        let policy = self.0.read();
        (policy.rules_of(user, namespace), policy.problems(user, namespace))
    }

    /// The rules of a role that a binding in a namespace refers to.
    pub(crate) fn rules_behind(&self, namespace: &str, reference: &RoleRef) -> Result<Vec<Rule>, String> {
        let policy = self.0.read();
        policy.role(namespace, reference).map(|role| role.rules().to_vec())
    }

    pub(crate) fn stale(&self) -> Vec<(String, Vec<Rule>)> {
        self.0.read().stale()
    }
}
