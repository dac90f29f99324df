//! Role-based access control: the permissions of users from the stored Roles, `ClusterRoles` and bindings.
//!
//! Roles are kept parsed. A write or deletion parses only its own object, so that a check decodes nothing.

use parking_lot::RwLock;
use windlass_store::{Record, Store};

use crate::error::ApiError;
use crate::objects::encoding::decode;
use crate::objects::encoding::draft;
use crate::objects::stored;
use std::sync::Arc;
use windlass_objects::metadata::{meta, meta_mut, seconds};
use windlass_rbac::attributes::{Attributes, Decision};
use windlass_rbac::bootstrap::{completed, defaults};
use windlass_rbac::policy::{Binding, Policy, Role, RoleRef};
use windlass_rbac::rule::Rule;
use windlass_rbac::user::UserInfo;
use windlass_rbac::{BINDINGS, CLUSTER_BINDINGS, CLUSTER_ROLES, ROLES};
use windlass_store::{Change, Expect, Key, Write};

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
    /// Reads the stored roles and bindings.
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

    /// Reloads an object that was written or deleted.
    pub(crate) fn refresh(&self, store: &Store, resource: &str, namespace: &str, name: &str) {
        // It is read under the lock, so the last refresh always sees the last write.
        let mut policy = self.0.write();
        let record = store.get(resource, namespace, name);
        take_over(&mut policy, resource, namespace, name, record.as_deref());
    }

    /// Whether a user has a permission.
    pub(crate) fn allows(&self, user: &UserInfo, asked: &Attributes<'_>) -> bool {
        self.0.read().allows(user, asked)
    }

    /// Whether a user has a permission, and the reason.
    pub(crate) fn decide(&self, user: &UserInfo, asked: &Attributes<'_>) -> Decision {
        self.0.read().decide(user, asked)
    }

    /// All rules of a user in a namespace, or in the cluster if it is empty; and the roles that are missing.
    pub(crate) fn rules_of(&self, user: &UserInfo, namespace: &str) -> (Vec<Rule>, Option<String>) {
        let policy = self.0.read();
        (policy.rules_of(user, namespace), policy.problems(user, namespace))
    }

    /// The rules of the role of a binding in a namespace.
    pub(crate) fn rules_behind(&self, namespace: &str, reference: &RoleRef) -> Result<Vec<Rule>, String> {
        let policy = self.0.read();
        policy.role(namespace, reference).map(|role| role.rules().to_vec())
    }

    pub(crate) fn stale(&self) -> Vec<(String, Vec<Rule>)> {
        self.0.read().stale()
    }
}

/// Creates and completes the default roles and bindings.
pub(crate) async fn make_defaults(store: &Store, now: jiff::Timestamp) -> Result<(), ApiError> {
    let now = seconds(now);
    let mut writes = Vec::new();
    for (resource, mut wanted) in defaults().map_err(ApiError::internal)? {
        let key = Key::new(&Arc::from(resource), "", meta(&wanted, "name"));
        let write = match store.get(resource, "", key.name()) {
            None => {
                let meta = meta_mut(&mut wanted);
                meta.insert("uid".to_owned(), uuid::Uuid::new_v4().to_string().into());
                meta.insert("creationTimestamp".to_owned(), now.clone().into());
                Some((Expect::Absent, wanted))
            }
            Some(record) => completed(&decode(&record)?, &wanted).map(|new| (Expect::Revision(record.revision), new)),
        };
        writes.extend(write.map(|(expect, object)| Write {
            key,
            expect,
            change: Change::Put(draft(&object)),
        }));
    }
    if !writes.is_empty() {
        store.commit(writes).await.map_err(ApiError::internal)?;
    }
    Ok(())
}
