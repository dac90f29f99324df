//! Warnings about accepted objects: pod templates with deprecated labels or duplicates.

use std::collections::BTreeSet;

use serde_json::Value;

use super::field::Field;
use windlass_objects::metadata::generation;

/// Deprecated node labels, and the warnings about them.
const OLD_LABELS: &[(&str, &str)] = &[
    (
        "beta.kubernetes.io/arch",
        "deprecated since v1.14; use \"kubernetes.io/arch\" instead",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    (
        "beta.kubernetes.io/os",
        "deprecated since v1.14; use \"kubernetes.io/os\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    (
        "node-role.kubernetes.io/master",
        "use \"node-role.kubernetes.io/control-plane\" instead",
    ),
];

/// Warnings about the pod template of a workload; none if a write does not change the spec.
pub(crate) fn of_template(object: &Value, old: Option<&Value>) -> Vec<String> {
    let spec = Field::of(object, "spec");
    of_changed(object, old, &spec.get("template").get("spec"))
}

/// Warnings about the pod template of a CronJob.
pub(crate) fn of_cron_job(object: &Value, old: Option<&Value>) -> Vec<String> {
    let job = Field::of(object, "spec").get("jobTemplate").get("spec");
    of_changed(object, old, &job.get("template").get("spec"))
}

/// Warnings about a new pod.
pub(crate) fn of_pod(object: &Value, old: Option<&Value>) -> Vec<String> {
    match old {
        None => of_spec(&Field::of(object, "spec")),
        Some(_) => Vec::new(),
    }
}

fn of_changed(object: &Value, old: Option<&Value>, spec: &Field<'_>) -> Vec<String> {
    if old.is_some_and(|old| generation(old) == generation(object)) {
        return Vec::new();
    }
    of_spec(spec)
}

fn of_spec(spec: &Field<'_>) -> Vec<String> {
    let mut out = Vec::new();
    for (key, field) in spec.get("nodeSelector").entries() {
        out.extend(old_label(key).map(|words| format!("{}: {words}", field.path)));
    }
    let affinity = spec.get("affinity").get("nodeAffinity");
    let required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution");
    for term in required.get("nodeSelectorTerms").items() {
        of_term(&term, &mut out);
    }
    for preferred in affinity.get("preferredDuringSchedulingIgnoredDuringExecution").items() {
        of_term(&preferred.get("preference"), &mut out);
    }
    for spread in spec.get("topologySpreadConstraints").items() {
        let key = spread.get("topologyKey");
        out.extend(old_label(key.text()).map(|words| format!("{}: {} is {words}", key.path, key.text())));
    }
    for list in ["initContainers", "containers"] {
        for container in spec.get(list).items() {
            of_environment(&container.get("env"), &mut out);
        }
    }
    out
}

fn old_label(key: &str) -> Option<&'static str> {
    OLD_LABELS
        .iter()
        .find(|(label, _)| *label == key)
        .map(|(_, words)| *words)
}

fn of_term(term: &Field<'_>, out: &mut Vec<String>) {
    for expression in term.get("matchExpressions").items() {
        let key = expression.get("key");
        out.extend(old_label(key.text()).map(|words| format!("{}: {} is {words}", key.path, key.text())));
    }
}

fn of_environment(variables: &Field<'_>, out: &mut Vec<String>) {
    let mut names = BTreeSet::new();
    for variable in variables.items() {
        let name = variable.get("name").text();
        // A variable that extends itself needs two entries.
        let adds = variable.get("value").text().contains(&format!("$({name})"));
        if !names.insert(name) && !adds {
            out.push(format!(
                "{}: hides previous definition of {name:?}, which may be unexpected when using apply",
                variable.path
            ));
        }
    }
}
