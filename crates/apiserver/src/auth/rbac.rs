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

/// What a stored object is to the policy; without a value, it is gone.
enum Parsed {
    Role(Option<Role>),
    Binding(Option<Binding>),
    Other,
}

impl Parsed {
    fn of(resource: &str, record: Option<&Record>) -> Self {
        let found = record.and_then(|record| Some((decode(record).ok()?, &record.header.labels)));
        match resource {
            ROLES | CLUSTER_ROLES => Self::Role(found.map(|(object, labels)| Role::parse(&object, labels))),
            BINDINGS | CLUSTER_BINDINGS => Self::Binding(found.map(|(object, _)| Binding::parse(&object))),
            _ => Self::Other,
        }
    }

    fn enter(self, policy: &mut Policy, namespace: &str, name: &str) {
        match self {
            Self::Role(role) => policy.set_role(namespace, name, role),
            Self::Binding(binding) => policy.set_binding(namespace, name, binding),
            Self::Other => {}
        }
    }
}

impl Rbac {
    /// Reads the stored roles and bindings.
    pub(crate) fn load(store: &Store) -> Self {
        let mut policy = Policy::default();
        for resource in [ROLES, CLUSTER_ROLES, BINDINGS, CLUSTER_BINDINGS] {
            for record in stored::all(store, resource, None) {
                let key = &record.key;
                Parsed::of(resource, Some(&record)).enter(&mut policy, key.namespace(), key.name());
            }
        }
        Self(RwLock::new(policy))
    }

    /// Reloads an object that was written or deleted.
    pub(crate) fn refresh(&self, store: &Store, resource: &str, namespace: &str, name: &str) {
        let read = || store.get(resource, namespace, name);
        let revision = |record: &Option<Arc<Record>>| record.as_ref().map(|record| record.revision);
        let mut record = read();
        loop {
            // Every request needs the lock to be authorized, so nothing is parsed under it.
            let parsed = Parsed::of(resource, record.as_deref());
            let mut policy = self.0.write();
            // It is read again under the lock, so the last refresh always enters the last write.
            let now = read();
            if revision(&now) == revision(&record) {
                parsed.enter(&mut policy, namespace, name);
                return;
            }
            record = now;
        }
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
