//! Whether the values of variables in Clusters fit the changed definitions of their class.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use windlass_gocompat::quote::quoted;
use windlass_schema::{FieldError, FieldErrors, is_full};
use windlass_topology::model::{ClassSpec, Topology, VariableClass, read};
use windlass_topology::variables::check::{BUDGET, Definitions, is_unchecked, places};
use windlass_topology::variables::class::path_of;

use super::{inline_definitions, key};
use crate::field::Field;
use crate::rule::Change;

/// The variables of a class that an update changes or removes.
pub(super) struct Changed {
    before: Vec<VariableClass>,
    /// Those whose definitions are good.
    after: Vec<VariableClass>,
    /// Whether there are others. Their values cannot be checked, so no error of the class may be forgiven.
    pub(super) are_some_wrong: bool,
    gone: BTreeSet<String>,
}

impl Changed {
    /// The variables that change, unless runtime extensions define variables: those are not known here. `wrong` are the errors of the
    /// new definitions.
    pub(super) fn of(change: &Change<'_>, wrong: &[FieldError]) -> Option<Self> {
        let (Ok(before), Ok(after)) = (
            read::<ClassSpec>(change.old, "/spec"),
            read::<ClassSpec>(change.new, "/spec"),
        ) else {
            return None;
        };
        let is_discovered = after.patches.iter().any(|patch| {
            let external = patch.external.as_ref();
            external.is_some_and(|external| external.discovers().is_some())
        });
        if is_discovered {
            return None;
        }
        let wrong: BTreeSet<&str> = wrong.iter().map(|error| variable_in(&error.path)).collect();
        let is_wrong = |variable: &VariableClass| wrong.contains(variable_in(&path_of(&variable.name)));
        // A class is not searched for each variable of the other.
        let (was, is) = (by_name(&before.variables), by_name(&after.variables));
        let changed = after.variables.iter();
        let changed = changed.filter(|variable| was.get(variable.name.as_str()) != Some(variable));
        let (bad, good): (Vec<&VariableClass>, Vec<_>) = changed.partition(|variable| is_wrong(variable));
        let gone = was.keys().filter(|name| !is.contains_key(*name));
        let gone = gone.map(|name| (*name).to_owned()).collect();
        Some(Self {
            are_some_wrong: !bad.is_empty(),
            after: good.into_iter().cloned().collect(),
            gone,
            before: before.variables,
        })
    }
}

/// The part of the path of an error that names the variable.
fn variable_in(path: &str) -> &str {
    path.find(']').map_or(path, |end| &path[..=end])
}

/// Checks that the values in the Clusters of a class fit definitions that change, and that no variable is removed that a Cluster sets.
///
/// Cluster API has checked this up to v1.3, and its proposal for ClusterClasses says so. Without the check a class is accepted, and its
/// Clusters are reconciled no more. Rules of variables may cost `left` together. When it is spent, only the shapes of the other values are known: a warning says so.
///
/// Values that did not fit the definitions before do not count, nor those of Clusters that are being deleted.
pub(super) fn check(
    change: &Change<'_>,
    changed: &Changed,
    clusters: &[Arc<Value>],
    mut left: Option<u64>,
    errors: &mut FieldErrors,
) -> Option<String> {
    let (before, changed, gone) = (&changed.before, &changed.after, &changed.gone);
    if changed.is_empty() && gone.is_empty() {
        return None;
    }
    let by_name = by_name(before);
    let at = Field::of(change.new).child("spec.variables");
    let definitions = match Definitions::of(&inline_definitions(changed)) {
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
            // Of many errors, those of later variables were not looked for.
            let are_all_known = !is_full(&found);
            let mut wrong: Vec<FieldError> = found.into_iter().filter(|error| !is_unchecked(error)).collect();
            if let Some(before) = definitions_before
                .as_ref()
                .filter(|_| are_all_known && !wrong.is_empty())
            {
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
    use crate::rule::{Admission, Operation, Rule, WRITES};
    use crate::view::Objects;

    fn update<'a>(old: &'a Value, new: &'a Value, view: &'a Objects) -> Change<'a> {
        Change {
            resource: "clusterclasses.cluster.x-k8s.io",
            operation: Operation::Update,
            dry_run: false,
            old,
            new,
            view,
        }
    }

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
            let view = Objects(Vec::new());
            let change = update(old, new, &view);
            let mut errors = FieldErrors::new();
            let changed = Changed::of(&change, &[]).unwrap();
            check(&change, &changed, &[Arc::new(cluster)], BUDGET, &mut errors);
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

    /// A class that is older than a rule can still be changed, but for what its Clusters use.
    #[test]
    fn an_error_that_was_there_before_hides_no_other_variable() {
        let number = |least: i64| json!({"type": "integer", "minimum": least});
        let class = |n: Option<i64>, old: Value| {
            let variable = |name: &str, schema: Value| json!({"name": name, "schema": {"openAPIV3Schema": schema}});
            let mut variables = vec![variable("with.point", old)];
            variables.extend(n.map(|least| variable("n", number(least))));
            json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass",
                "metadata": {"namespace": "a", "name": "c"}, "spec": {"variables": variables},
            })
        };
        let cluster = json!({
            "kind": "Cluster", "metadata": {"namespace": "a", "name": "x"},
            "spec": {"topology": {"classRef": {"name": "c"}, "variables": [{"name": "n", "value": 1}]}},
        });
        let rule = Rule {
            group: "cluster.x-k8s.io",
            version: "v1beta2",
            kind: "ClusterClass",
            resource: "clusterclasses",
            admission: Admission::checking(WRITES, super::super::check),
            decode: None,
            closed: Vec::new(),
        };
        let view = Objects(vec![Arc::new(cluster)]);
        let refused = |old: &Value, new: &Value| {
            let change = update(old, new, &view);
            let errors = rule.check(&change).unwrap().errors;
            errors
                .into_iter()
                .map(|error| error.to_string())
                .collect::<Vec<_>>()
                .join("; ")
        };
        let text = json!({"type": "string"});
        let before = class(Some(0), text.clone());
        assert_eq!(refused(&before, &class(Some(1), text.clone())), "");
        let narrowed = refused(&before, &class(Some(2), text.clone()));
        assert!(narrowed.contains("does not fit the changed definitions"), "{narrowed}");
        let removed = refused(&before, &class(None, text));
        assert!(removed.contains("variable \"n\" can not be removed"), "{removed}");
        // What changes has to be right.
        let changed = refused(&before, &class(Some(0), json!({"type": "boolean"})));
        assert!(changed.contains("variable name cannot contain"), "{changed}");
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
            let view = Objects(Vec::new());
            let change = update(&old, &new, &view);
            let mut errors = FieldErrors::new();
            let changed = Changed::of(&change, &[]).unwrap();
            let warning = check(&change, &changed, &[Arc::new(cluster)], Some(500_000), &mut errors);
            (errors.len(), warning.is_some())
        };
        assert_eq!(changed(1, 1), (0, false));
        assert_eq!(changed(1, 2), (1, false));
        assert_eq!(changed(100, 1), (0, true));
    }
}
