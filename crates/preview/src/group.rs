//! Puts Clusters with the same result together.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use windlass_controller_runtime::ObjectKey;

use crate::model::{ClusterPlan, Group, Report, Summary, Verb};

/// Groups plans that are equal up to the names in them, the largest group first.
pub(crate) fn group(plans: BTreeMap<ObjectKey, ClusterPlan>) -> Vec<Group> {
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    for (cluster, plan) in plans {
        if plan.is_empty() {
            continue;
        }
        let shape = shape(&cluster, &plan);
        let group = groups.entry(shape).or_insert_with(|| Group {
            clusters: Vec::new(),
            plan,
        });
        group.clusters.push(cluster.to_string());
    }
    let mut groups: Vec<Group> = groups.into_values().collect();
    groups.sort_by(|a, b| (b.clusters.len(), &a.clusters).cmp(&(a.clusters.len(), &b.clusters)));
    groups
}

/// The plan as text, with numbers for the names of the Cluster's own objects: the place where each is seen first.
fn shape(cluster: &ObjectKey, plan: &ClusterPlan) -> String {
    let mut known: BTreeSet<&str> = BTreeSet::new();
    for phase in &plan.phases {
        known.extend(phase.objects.iter().map(|change| change.object.name.as_str()));
        for one in &phase.rotated {
            known.extend([one.from.as_str(), one.to.as_str(), one.user.name.as_str()]);
        }
        for machines in &phase.machines {
            known.insert(&machines.owner.name);
            known.extend(machines.replaced.iter().map(|one| one.name.as_str()));
            known.extend(machines.kept.iter().chain(&machines.removed).map(String::as_str));
        }
    }
    let generated = format!("{}-", cluster.name);
    // The name of a Cluster may be a common word; as a name, it stands alone or behind a namespace.
    let is_own = |before: &str, word: &str| {
        if word == cluster.name {
            before.ends_with(['"', '/'])
        } else {
            word.starts_with(&generated) || known.contains(word)
        }
    };
    let unnamed = ClusterPlan {
        class: String::new(),
        ..plan.clone()
    };
    let text = serde_json::to_string(&unnamed).unwrap_or_default();
    let space = format!("\"namespace\":{}", serde_json::Value::from(cluster.namespace.as_str()));
    let text = text
        .replace(&space, "\"namespace\":\"\"")
        .replace(&format!("{}/", cluster.namespace), "/");
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    // Classes count with their names, which Clusters may have as well.
    let mut out = format!("{} ", plan.class);
    for part in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '.') {
        let word = part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        if is_own(&out, word) {
            let next = numbers.len();
            let number = numbers.entry(word.to_owned()).or_insert(next);
            let _ = write!(out, "<{number}>{}", &part[word.len()..]);
        } else {
            out.push_str(part);
        }
    }
    out
}

/// Counts what a report says.
pub(crate) fn summary(report: &Report, clusters: usize) -> Summary {
    let mut out = Summary {
        clusters,
        ..Summary::default()
    };
    for group in &report.groups {
        let times = group.clusters.len();
        if !group.plan.phases.is_empty() {
            out.changed_clusters += times;
        }
        if !group.plan.problems.is_empty() {
            out.failed_clusters += times;
        }
        for phase in &group.plan.phases {
            let count = |verb: Verb| phase.objects.iter().filter(|change| change.verb == verb).count() * times;
            out.created += count(Verb::Created);
            out.changed += count(Verb::Changed);
            out.deleted += count(Verb::Deleted);
            out.rotated += phase.rotated.len() * times;
            for machines in &phase.machines {
                let number = |number: i32| usize::try_from(number).unwrap_or_default();
                out.machines_replaced += machines.replaced.len() * times;
                out.machines_added += number(machines.added) * times;
                out.machines_removed += (machines.removed.len() + number(machines.surplus)) * times;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ObjectChange, Phase};
    use crate::names::Id;

    fn plan(name: &str, fields: usize) -> ClusterPlan {
        let object = Id {
            kind: "K".to_owned(),
            namespace: "n".to_owned(),
            name: format!("{name}-x1"),
            ..Id::default()
        };
        let change = ObjectChange {
            verb: Verb::Changed,
            object,
            reason: Some(format!("{name} says so")),
            fields: Vec::new(),
        };
        ClusterPlan {
            class: "n/c".to_owned(),
            phases: vec![Phase {
                objects: vec![change; fields],
                ..Phase::default()
            }],
            ..ClusterPlan::default()
        }
    }

    #[test]
    fn clusters_with_the_same_result_are_one_group() {
        let mut plans = BTreeMap::new();
        for (name, fields) in [("a", 1), ("b", 2), ("c", 1), ("cc", 1)] {
            plans.insert(ObjectKey::new("n", name), plan(name, fields));
        }
        plans.insert(ObjectKey::new("n", "idle"), ClusterPlan::default());
        let groups = group(plans);
        let names: Vec<_> = groups.iter().map(|group| group.clusters.join(" ")).collect();
        assert_eq!(names, ["n/a n/c n/cc", "n/b"]);
        let report = Report {
            groups,
            ..Report::default()
        };
        let summary = summary(&report, 5);
        assert_eq!((summary.clusters, summary.changed_clusters, summary.changed), (5, 4, 5));
    }
}
