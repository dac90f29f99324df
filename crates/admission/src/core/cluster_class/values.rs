//! Whether the values of variables in Clusters fit the changed definitions of their class.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use windlass_gocompat::quote::quoted;
use windlass_schema::FieldError;
use windlass_topology::model::{ClassSpec, Topology, VariableClass, read};
use windlass_topology::variables::check::{BUDGET, Definitions, is_unchecked, places};

use super::{inline_definitions, key};
use crate::field::Field;
use crate::rule::Change;
use windlass_schema::FieldErrors;

/// Checks that the values in the Clusters of a class fit definitions that change, and that no variable is removed that a Cluster sets.
///
/// Cluster API has checked this up to v1.3, and its proposal for ClusterClasses says so. Without the check a class is accepted, and its
/// Clusters are reconciled no more. Classes with variables of runtime extensions are not checked: those variables are not known here. Rules
/// of variables may cost `left` together. When it is spent, only the shapes of the other values are known: a warning says so.
///
/// Values that did not fit the definitions before do not count, nor those of Clusters that are being deleted.
pub(super) fn changed_variables(
    change: &Change<'_>,
    clusters: &[Arc<Value>],
    mut left: Option<u64>,
    errors: &mut FieldErrors,
) -> Option<String> {
    let (Ok(before), Ok(after)) = (
        read::<ClassSpec>(change.old, "/spec"),
        read::<ClassSpec>(change.new, "/spec"),
    ) else {
        return None;
    };
    let is_discovered = after.patches.iter().any(|patch| {
        let external = patch.external.as_ref();
        external.is_some_and(|external| external.get("discoverVariablesExtension").is_some())
    });
    // A class is not searched for each variable of the other.
    let (by_name, is_there) = (by_name(&before.variables), by_name(&after.variables));
    let changed: Vec<VariableClass> = after
        .variables
        .iter()
        .filter(|variable| by_name.get(variable.name.as_str()) != Some(variable))
        .cloned()
        .collect();
    let gone = by_name.keys().copied();
    let gone: BTreeSet<&str> = gone.filter(|name| !is_there.contains_key(name)).collect();
    if is_discovered || (changed.is_empty() && gone.is_empty()) {
        return None;
    }
    let at = Field::of(change.new).child("spec.variables");
    let definitions = match Definitions::of(&inline_definitions(&changed)) {
        Ok(definitions) => definitions,
        Err(why) => {
            // The check of the class says it better.
            if errors.is_empty() {
                errors.add(|| FieldError::invalid(at.path(), Value::Null, why));
            }
            return None;
        }
    };
    let names: BTreeSet<&str> = changed.iter().map(|variable| variable.name.as_str()).collect();
    let changed_from: Vec<VariableClass> = before
        .variables
        .iter()
        .filter(|variable| names.contains(variable.name.as_str()))
        .cloned()
        .collect();
    let definitions_before = Definitions::of(&inline_definitions(&changed_from)).ok();
    let (mut unchecked, mut left_before) = (0, BUDGET);
    let in_use = clusters
        .iter()
        .filter(|cluster| !Field::of(cluster).child("metadata.deletionTimestamp").is_set());
    for cluster in in_use {
        let Ok(topology) = read::<Topology>(cluster, "/spec/topology") else {
            continue;
        };
        for place in places(&topology) {
            let (path, values, list) = (&place.at, place.values, place.list());
            for variable in values.iter().filter(|variable| gone.contains(variable.name.as_str())) {
                errors.add(|| {
                    let (name, cluster) = (quoted(&variable.name), key(cluster));
                    at.forbidden(format!(
                        "variable {name} can not be removed. It is used in Cluster {cluster} at {path}"
                    ))
                });
            }
            let values = values.iter().filter(|variable| names.contains(variable.name.as_str()));
            let values: Vec<_> = values.cloned().collect();
            let completed = definitions.complete(&values, list);
            let found = definitions.check(&completed, &[], list, &mut left);
            let mut wrong: Vec<FieldError> = found.into_iter().filter(|error| !is_unchecked(error)).collect();
            if let Some(before) = definitions_before.as_ref().filter(|_| !wrong.is_empty()) {
                let values = values.iter().filter(|value| by_name.contains_key(value.name.as_str()));
                let completed = before.complete(&values.cloned().collect::<Vec<_>>(), list);
                let known = before.check(&completed, &[], list, &mut left_before);
                let known = known.into_iter().filter(|error| !is_unchecked(error));
                let known: BTreeSet<String> = known.map(|error| variable_of(path, &error)).collect();
                wrong.retain(|error| !known.contains(&variable_of(path, error)));
            }
            // The values are those of others, and messages have them: only their places are named.
            errors.extend(wrong.into_iter().map(|error| {
                let (cluster, path) = (key(cluster), error.path);
                at.forbidden(format!(
                    "{path} of Cluster {cluster} does not fit the changed definitions"
                ))
            }));
        }
        unchecked += usize::from(left.is_none());
        if errors.is_full() {
            break;
        }
    }
    (unchecked > 0).then(|| {
        let all = clusters.len();
        format!("the rules of the changed variables cost too much to check the values of {unchecked} of {all} Clusters")
    })
}

/// Variables by their names: the first of each name, of which there is one in a good class.
fn by_name(variables: &[VariableClass]) -> BTreeMap<&str, &VariableClass> {
    let mut found = BTreeMap::new();
    for variable in variables {
        found.entry(variable.name.as_str()).or_insert(variable);
    }
    found
}

/// The path of the variable in the list at `list` that an error is about, or what the error says of the list.
fn variable_of(list: &str, error: &FieldError) -> String {
    match error.path.strip_prefix(list) {
        Some(rest) if rest.starts_with('[') => {
            let end = rest.find(']').map_or(rest.len(), |end| end + 1);
            format!("{list}{}", &rest[..end])
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rule::Operation;
    use crate::view::Objects;

    /// A Cluster may have come before its class, or from Cluster API, which does not check this.
    #[test]
    fn values_that_did_not_fit_before_do_not_refuse_a_change() {
        let class = |variables: Value| {
            let variable =
                |(name, schema): (&String, &Value)| json!({"name": name, "schema": {"openAPIV3Schema": schema}});
            let variables: Vec<Value> = variables.as_object().unwrap().iter().map(variable).collect();
            json!({"metadata": {"namespace": "a", "name": "c"}, "spec": {"variables": variables}})
        };
        let cluster = |deleted: Value| {
            let values = json!([{"name": "size", "value": "waytoolong"}, {"name": "n", "value": 1}]);
            json!({
                "kind": "Cluster", "metadata": {"namespace": "a", "name": "x", "deletionTimestamp": deleted},
                "spec": {"topology": {"classRef": {"name": "c"}, "variables": values}},
            })
        };
        let refused = |old: &Value, new: &Value, cluster: Value| {
            let change = Change {
                resource: "clusterclasses.cluster.x-k8s.io",
                operation: Operation::Update,
                dry_run: false,
                old,
                new,
                view: &Objects(Vec::new()),
            };
            let mut errors = FieldErrors::new();
            changed_variables(&change, &[Arc::new(cluster)], BUDGET, &mut errors);
            let details = errors.into_vec().into_iter().map(|error| error.detail);
            details.collect::<Vec<_>>()
        };
        let size = |most: i64| json!({"type": "string", "maxLength": most});
        let old = class(json!({"size": size(5), "n": {"type": "integer"}}));
        let relaxed = class(json!({"size": size(8), "n": {"type": "integer"}}));
        assert_eq!(refused(&old, &relaxed, cluster(Value::Null)), Vec::<String>::new());
        let stricter = class(json!({"size": size(8), "n": {"type": "integer", "minimum": 2}}));
        let words = "spec.topology.variables[n].value of Cluster a/x does not fit the changed definitions";
        assert_eq!(refused(&old, &stricter, cluster(Value::Null)), [words]);
        let deleted = cluster(json!("2026-01-01T00:00:00Z"));
        assert_eq!(refused(&old, &stricter, deleted), Vec::<String>::new());
        // Another variable of this name was not there before.
        let none = class(json!({"n": {"type": "integer"}}));
        assert_eq!(refused(&none, &relaxed, cluster(Value::Null)).len(), 1);
    }

    /// What could not be checked is not known to be wrong.
    #[test]
    fn values_that_cost_too_much_to_check_do_not_refuse_a_change() {
        let numbers = "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]";
        let rule = format!("{numbers}.all(a, {numbers}.all(b, {numbers}.all(c, self + a + b + c > 0)))");
        let class = |least: i64| {
            let schema = json!({"type": "integer", "minimum": least, "x-kubernetes-validations": [{"rule": rule}]});
            json!({
                "metadata": {"namespace": "a", "name": "c"},
                "spec": {"variables": [{"name": "n", "schema": {"openAPIV3Schema": schema}}]},
            })
        };
        let set =
            |number| json!({"name": format!("md-{number}"), "variables": {"overrides": [{"name": "n", "value": 1}]}});
        let changed = |sets: usize, least: i64| {
            let sets: Vec<Value> = (0..sets).map(set).collect();
            let cluster = json!({
                "kind": "Cluster", "metadata": {"namespace": "a", "name": "x"},
                "spec": {"topology": {"classRef": {"name": "c"}, "workers": {"machineDeployments": sets}}},
            });
            let (old, new) = (class(0), class(least));
            let change = Change {
                resource: "clusterclasses.cluster.x-k8s.io",
                operation: Operation::Update,
                dry_run: false,
                old: &old,
                new: &new,
                view: &Objects(Vec::new()),
            };
            let mut errors = FieldErrors::new();
            let warning = changed_variables(&change, &[Arc::new(cluster)], Some(500_000), &mut errors);
            (errors.len(), warning.is_some())
        };
        assert_eq!(changed(1, 1), (0, false));
        assert_eq!(changed(1, 2), (1, false));
        assert_eq!(changed(100, 1), (0, true));
    }
}
