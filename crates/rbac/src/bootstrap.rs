//! The default roles and bindings: created if missing, and completed if they lack rules or subjects.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use windlass_objects::metadata::{meta_value, set_meta};

use crate::policy::{RoleRef, rules};
use crate::rule::{Rule, joined, lacking};
use crate::{CLUSTER_BINDINGS, CLUSTER_ROLES, GROUP};

const DATA: &str = include_str!("bootstrap.yaml");
/// The annotation that, if set to "false", keeps the server from completing an object.
const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Defaults {
    roles: Vec<DefaultRole>,
    bindings: Vec<DefaultBinding>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DefaultRole {
    name: String,
    #[serde(default)]
    rules: Vec<Rule>,
    #[serde(default)]
    joins: Vec<String>,
    #[serde(default)]
    gathers: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DefaultBinding {
    name: String,
    #[serde(default)]
    groups: Vec<String>,
    /// Service accounts of kube-system.
    #[serde(default)]
    accounts: Vec<String>,
}

fn joins(role: &str) -> String {
    format!("rbac.authorization.k8s.io/aggregate-to-{role}")
}

fn object(kind: &str, name: &str, joined: &[String]) -> Value {
    let mut labels: BTreeMap<String, &str> = joined.iter().map(|role| (joins(role), "true")).collect();
    labels.insert("kubernetes.io/bootstrapping".to_owned(), "rbac-defaults");
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": kind,
        "metadata": {"name": name, "labels": labels, "annotations": {AUTO_UPDATE: "true"}},
    })
}

impl DefaultRole {
    fn object(&self) -> Value {
        let mut role = object("ClusterRole", &self.name, &self.joins);
        role["rules"] = json!(self.rules);
        if let Some(name) = &self.gathers {
            role["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {joins(name): "true"}}]});
        }
        role
    }
}

impl DefaultBinding {
    fn object(&self) -> Value {
        let mut binding = object("ClusterRoleBinding", &self.name, &[]);
        binding["roleRef"] = json!({"apiGroup": GROUP, "kind": "ClusterRole", "name": self.name});
        let groups = self.groups.iter();
        let accounts = self.accounts.iter();
        binding["subjects"] = groups
            .map(|name| json!({"apiGroup": GROUP, "kind": "Group", "name": name}))
            .chain(accounts.map(|name| json!({"kind": "ServiceAccount", "namespace": "kube-system", "name": name})))
            .collect();
        binding
    }
}

/// All default objects, each with its storage name.
pub fn defaults() -> Result<Vec<(&'static str, Value)>, String> {
    let found: Defaults = serde_saphyr::from_str(DATA).map_err(|error| error.to_string())?;
    let roles = found.roles.iter().map(|role| (CLUSTER_ROLES, role.object()));
    let bindings = found
        .bindings
        .iter()
        .map(|binding| (CLUSTER_BINDINGS, binding.object()));
    Ok(roles.chain(bindings).collect())
}

/// Adds missing entries to a map.
fn add_entries(have: &mut Map<String, Value>, wanted: &Value) {
    for (key, value) in wanted.as_object().into_iter().flatten() {
        have.entry(key.clone()).or_insert_with(|| value.clone());
    }
}

/// Adds missing items to a list.
fn add_items(object: &mut Value, key: &str, wanted: &[Value]) {
    let Some(map) = object.as_object_mut() else {
        return;
    };
    let list = map.entry(key).or_insert_with(|| json!([]));
    if list.is_null() {
        *list = json!([]);
    }
    if let Some(list) = list.as_array_mut() {
        let fresh: Vec<Value> = wanted.iter().filter(|item| !list.contains(item)).cloned().collect();
        list.extend(fresh);
    }
}

fn items<'v>(object: &'v Value, pointer: &str) -> &'v [Value] {
    object
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The stored object with the missing parts of the default; `None` if it is complete or must not be changed.
pub fn completed(stored: &Value, wanted: &Value) -> Option<Value> {
    let opted_out = meta_value(stored, "annotations").and_then(|all| all.get(AUTO_UPDATE)) == Some(&"false".into());
    let other_role = stored.get("roleRef").is_some() && RoleRef::parse(stored) != RoleRef::parse(wanted);
    if opted_out || other_role {
        return None;
    }
    let mut new = stored.clone();
    for key in ["labels", "annotations"] {
        let mut have = meta_value(stored, key)
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        add_entries(&mut have, meta_value(wanted, key).unwrap_or(&Value::Null));
        set_meta(&mut new, key, Some(have.into()));
    }
    if stored.get("roleRef").is_some() {
        add_items(&mut new, "subjects", items(wanted, "/subjects"));
    } else if wanted.get("aggregationRule").is_some() {
        if let Some(map) = new.as_object_mut() {
            let rule = map.entry("aggregationRule").or_insert_with(|| json!({}));
            add_items(
                rule,
                "clusterRoleSelectors",
                items(wanted, "/aggregationRule/clusterRoleSelectors"),
            );
        }
    } else {
        let missing = joined(&lacking(&rules(stored), &rules(wanted)));
        let missing: Vec<Value> = missing.iter().map(|rule| json!(rule)).collect();
        if !missing.is_empty() {
            add_items(&mut new, "rules", &missing);
        }
    }
    (new != *stored).then_some(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn default(name: &str, kind: &str) -> Value {
        let all = defaults().unwrap();
        let found = all
            .into_iter()
            .find(|(_, o)| o["metadata"]["name"] == name && o["kind"] == kind);
        found.unwrap().1
    }

    #[test]
    fn defaults_are_what_the_server_itself_would_take() {
        let all = defaults().unwrap();
        for (resource, object) in &all {
            let mut found = windlass_schema::FieldErrors::new();
            let kind = object["kind"].as_str().unwrap();
            let mut filled = object.clone();
            crate::roles::default(&mut filled);
            assert_eq!(*object, filled, "nothing is left to default");
            crate::roles::errors(kind, object, None, &mut found);
            assert!(found.is_empty(), "{object}: {found:?}");
            assert!(resource.starts_with(&kind.to_lowercase()));
        }
        for binding in all.iter().filter(|(resource, _)| *resource == CLUSTER_BINDINGS) {
            default(binding.1["roleRef"]["name"].as_str().unwrap(), "ClusterRole");
        }
    }

    #[test]
    fn a_default_stays_as_it_is() {
        for (_, object) in defaults().unwrap() {
            assert_eq!(completed(&object, &object), None);
        }
    }

    #[test]
    fn what_is_missing_is_added_and_what_was_added_stays() {
        let wanted = default("system:basic-user", "ClusterRole");
        let mut stored = wanted.clone();
        let extra = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]});
        stored["rules"] = json!([extra, wanted["rules"][0]]);
        stored["metadata"]["labels"] = json!({"mine": "1"});
        let new = completed(&stored, &wanted).unwrap();
        assert_eq!(new["rules"], json!([extra, wanted["rules"][0], wanted["rules"][1]]));
        let labels = json!({"mine": "1", "kubernetes.io/bootstrapping": "rbac-defaults"});
        assert_eq!(new["metadata"]["labels"], labels);
        stored["metadata"]["annotations"][AUTO_UPDATE] = "false".into();
        assert_eq!(completed(&stored, &wanted), None);
    }

    #[test]
    fn bindings_get_their_subjects_back_and_keep_others() {
        let wanted = default("system:discovery", "ClusterRoleBinding");
        let mut stored = wanted.clone();
        stored["subjects"] = json!([{"apiGroup": GROUP, "kind": "User", "name": "ann"}]);
        let new = completed(&stored, &wanted).unwrap();
        assert_eq!(new["subjects"], json!([stored["subjects"][0], wanted["subjects"][0]]));
        stored["roleRef"]["name"] = "other".into();
        assert_eq!(completed(&stored, &wanted), None);
    }

    #[test]
    fn gathered_rules_are_nobodys_default() {
        let wanted = default("view", "ClusterRole");
        let mut stored = wanted.clone();
        stored["rules"] = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
        assert_eq!(completed(&stored, &wanted), None);
    }
}
