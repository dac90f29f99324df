//! Aggregation of ClusterRoles: roles with an `aggregationRule` get the rules of the selected roles, after every write of a
//! ClusterRole.

use std::time::Instant;

use serde_json::json;

use crate::state::Inner;
use crate::verbs::call::Call;
use crate::verbs::mutation::Mutation;
use crate::verbs::options::WriteOptions;
use windlass_objects::Part;
use windlass_rbac::CLUSTER_ROLES;
use windlass_rbac::user::UserInfo;

/// Limit of rounds: aggregated roles may select aggregated roles, and other clients may write at the same time.
const ROUNDS: usize = 20;
/// The name of this controller in Kubernetes.
const CONTROLLER: &str = "clusterrole-aggregation-controller";

/// Updates the rules of every aggregated role.
pub(crate) async fn settle(server: &Inner) {
    let Some(rbac) = server.authorizer.rbac() else {
        return;
    };
    let user = UserInfo::account("kube-system", CONTROLLER);
    let options = WriteOptions {
        force: Some(true),
        ..WriteOptions::default()
    };
    let registry = server.registry();
    let Some(resource) = registry.find_storage(CLUSTER_ROLES) else {
        return;
    };
    let call = Call {
        server,
        resource: &resource,
        namespace: "",
        user: &user,
        options: &options,
        manager: CONTROLLER.to_owned(),
    };
    for _ in 0..ROUNDS {
        let stale = rbac.stale();
        if stale.is_empty() {
            return;
        }
        for (name, rules) in stale {
            let Some(record) = server.store.get(&resource.storage, "", &name) else {
                continue;
            };
            let applied = json!({
                "apiVersion": resource.api_version(), "kind": resource.kind,
                "metadata": {"name": name}, "rules": rules,
            });
            let mutation = Mutation::Apply(applied, Vec::new());
            if let Err(error) = call.change_once(&name, &record, &mutation, Part::Main).await {
                let what = format!("cannot fill in the rules of a ClusterRole: {error}");
                warn(server, &name, &what);
                return;
            }
        }
    }
    warn(server, "", "ClusterRoles gather rules from each other without end");
}

/// A write of each ClusterRole comes here, so the same failure is not logged each time.
fn warn(server: &Inner, name: &str, what: &str) {
    if let Some(repeated) = server
        .said
        .line(&format!("{CLUSTER_ROLES} {name}"), what, Instant::now())
    {
        tracing::warn!(name, repeated, "{what}");
    }
}

impl Call<'_> {
    /// Updates aggregated roles after a write of a ClusterRole.
    pub(crate) async fn settle(&self) {
        if self.resource.storage.as_ref() == CLUSTER_ROLES {
            settle(self.server).await;
        }
    }
}
