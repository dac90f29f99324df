//! Escalation checks: a user may not grant permissions that the user does not have.

use serde_json::Value;

use crate::auth::rbac::Rbac;
use crate::error::ApiError;
use crate::verbs::call::Call;
use windlass_meta::budget::{GRANTED_COMBINATIONS, GRANTED_COMPARISONS};
use windlass_objects::metadata::{meta, set_meta};
use windlass_rbac::attributes::{Attributes, Target};
use windlass_rbac::policy::{RoleRef, has_aggregation, rules};
use windlass_rbac::rule::{Rule, comparisons, count, lacking, lines, quoted};
use windlass_rbac::{BINDINGS, CLUSTER_BINDINGS, CLUSTER_ROLES, GROUP, ROLES};

/// Refuses a role or binding that grants permissions that the user does not have.
pub(crate) fn confirm(call: &Call<'_>, object: &Value, old: Option<&Value>) -> Result<(), ApiError> {
    let Some(rbac) = call.server.authorizer.rbac() else {
        return Ok(());
    };
    if call.resource.group != GROUP || call.user.is_master() || old.is_some_and(|old| is_housekeeping(old, object)) {
        return Ok(());
    }
    let check = Check { call, rbac, object };
    match call.resource.storage.as_ref() {
        ROLES | CLUSTER_ROLES => check.role(old),
        BINDINGS | CLUSTER_BINDINGS => check.binding(),
        _ => Ok(()),
    }
}

/// Whether only fields differ that the garbage collector must be able to change.
fn is_housekeeping(old: &Value, new: &Value) -> bool {
    const FREE: [&str; 4] = ["finalizers", "ownerReferences", "managedFields", "resourceVersion"];
    let strip = |object: &Value| {
        let mut object = object.clone();
        for key in FREE {
            set_meta(&mut object, key, None);
        }
        object
    };
    strip(old) == strip(new)
}

/// The permissions of users that may do everything.
fn everything() -> [Rule; 2] {
    let all = || vec!["*".to_owned()];
    [
        Rule {
            api_groups: all(),
            resources: all(),
            verbs: all(),
            ..Rule::default()
        },
        Rule {
            urls: all(),
            verbs: all(),
            ..Rule::default()
        },
    ]
}

struct Check<'a> {
    call: &'a Call<'a>,
    rbac: &'a Rbac,
    object: &'a Value,
}

impl Check<'_> {
    fn forbidden(&self, why: &str) -> ApiError {
        let resource = self.call.resource;
        ApiError::forbidden(&resource.group, &resource.plural, meta(self.object, "name"), why)
    }

    fn may(&self, verb: &str, resource: &str, name: &str) -> bool {
        let target = Target::Resource {
            group: GROUP,
            resource,
            subresource: "",
            namespace: self.call.namespace,
            name,
        };
        self.rbac.allows(self.call.user, &Attributes { verb, target })
    }

    fn role(&self, old: Option<&Value>) -> Result<(), ApiError> {
        // The name is not part of the permission to create an object.
        let name = old.map_or("", |old| meta(old, "name"));
        if self.may("escalate", &self.call.resource.plural, name) {
            return Ok(());
        }
        self.holds(&rules(self.object))?;
        let gathers = has_aggregation(self.object) || old.is_some_and(has_aggregation);
        if gathers && self.holds(&everything()).is_err() {
            return Err(self.forbidden("must have cluster-admin privileges to use the aggregationRule"));
        }
        Ok(())
    }

    fn binding(&self) -> Result<(), ApiError> {
        let reference = RoleRef::parse(self.object);
        let plural = if reference.is_cluster_role() {
            "clusterroles"
        } else {
            "roles"
        };
        if self.may("bind", plural, &reference.name) {
            return Ok(());
        }
        let behind = self.rbac.rules_behind(self.call.namespace, &reference);
        self.holds(&behind.map_err(|_| ApiError::not_found(GROUP, &self.call.resource.plural, &reference.name))?)
    }

    fn holds(&self, wanted: &[Rule]) -> Result<(), ApiError> {
        let user = self.call.user;
        let count = count(wanted);
        if count > GRANTED_COMBINATIONS {
            return Err(self.forbidden(&format!(
                "user {:?} would grant {count} combinations of API group, resource, name and verb, and no more than {GRANTED_COMBINATIONS} are checked: \
                 grant less at once, or with the verb \"escalate\" or \"bind\"",
                user.name
            )));
        }
        let (held, problems) = self.rbac.rules_of(user, self.call.namespace);
        if comparisons(&held, wanted) > GRANTED_COMPARISONS {
            return Err(self.forbidden(&format!(
                "user {:?} has too many rules in this namespace to compare {count} combinations of API group, resource, name and verb with: \
                 grant less at once, or with the verb \"escalate\" or \"bind\"",
                user.name
            )));
        }
        let lacking = lacking(&held, wanted);
        if lacking.is_empty() {
            return Ok(());
        }
        let tail = problems.map(|why| format!("; resolution errors: [{why}]"));
        Err(self.forbidden(&format!(
            "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}{}",
            user.name,
            quoted(&user.groups),
            lines(&lacking),
            tail.unwrap_or_default()
        )))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_garbage_collector_changes_is_no_grant() {
        let old = json!({"metadata": {"name": "a", "finalizers": ["x/y"], "resourceVersion": "1"}, "rules": []});
        let check = |new: Value, want: bool| assert_eq!(is_housekeeping(&old, &new), want, "{new}");
        check(
            json!({"metadata": {"name": "a", "ownerReferences": []}, "rules": []}),
            true,
        );
        check(
            json!({"metadata": {"name": "a", "labels": {"b": "c"}}, "rules": []}),
            false,
        );
        check(json!({"metadata": {"name": "a"}, "rules": [{}]}), false);
    }
}
