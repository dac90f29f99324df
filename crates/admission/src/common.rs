//! Checks that several kinds share. Fields and words are those of Cluster API v1.14.

use serde_json::{Map, Value, json};
use windlass_gocompat::quote::quoted;
use windlass_gotemplate::Budget;
use windlass_meta::budget::NAME_COST;
use windlass_objects::names::{
    check_annotations, check_labels, label_key_problems, label_value_problems, subdomain_problems,
};
use windlass_objects::selector::{self, LabelSelector};
use windlass_schema::{FieldError, FieldErrors};

use crate::field::Field;

/// What a naming template of Machines must have, so that two of them get two names.
const RANDOM: &str = "{{ .random }}";
/// The longest name that a naming template makes. A longer one is cut.
const LONGEST_NAME: usize = 63;
/// The characters that a longer name ends with; a sample of them.
const SAMPLE: &str = "bcdfg";

/// Checks a name that becomes the value of a label.
pub(crate) fn name_is_label(object: &Value, words: &str, errors: &mut FieldErrors) {
    let name = Field::of(object).child("metadata.name");
    for problem in label_value_problems(name.text()) {
        errors.add(|| name.invalid(format!("{words} {problem}")));
    }
}

/// Checks labels and annotations of a template.
pub(crate) fn template_metadata(metadata: &Field<'_>, errors: &mut FieldErrors) {
    for (part, check) in [
        ("labels", check_labels as fn(&Value, &str, &mut FieldErrors)),
        ("annotations", check_annotations),
    ] {
        let at = metadata.child(part);
        // The path can be long, so it is written only if there is an error.
        let mut found = FieldErrors::new();
        if !errors.is_full() {
            check(at.value(), "", &mut found);
        }
        errors.extend(found.into_iter().map(|mut error| {
            error.path = at.path();
            error
        }));
    }
}

/// Checks a semantic version with a leading `v`; a missing one is good.
pub(crate) fn version(version: &Field<'_>, words: &str, errors: &mut FieldErrors) {
    let text = version.text();
    if text.is_empty() {
        return;
    }
    if !text.starts_with('v') {
        errors.add(|| version.invalid("must start with v"));
    }
    if semver::Version::parse(text.strip_prefix('v').unwrap_or(text)).is_err() {
        errors.add(|| version.invalid(words));
    }
}

/// Checks that a Machine can get its bootstrap data: from a Secret or by a configuration.
pub(crate) fn bootstrap(spec: &Field<'_>, errors: &mut FieldErrors) {
    let bootstrap = spec.child("bootstrap");
    if bootstrap.child("configRef").is_set() || bootstrap.child("dataSecretName").is_set() {
        return;
    }
    errors.add(|| {
        bootstrap.required(format!(
            "expected either {0}.dataSecretName or {0}.configRef to be populated",
            bootstrap.path()
        ))
    });
}

/// Checks that the cluster of an object stays the same.
pub(crate) fn same_cluster(old: &Value, new: &Value, errors: &mut FieldErrors) {
    let name = |object| Field::of(object).child("spec.clusterName");
    if !old.is_null() && name(old).value() != name(new).value() {
        errors.add(|| name(new).forbidden("field is immutable"));
    }
}

/// Checks that a set and its Machines belong to the same cluster.
pub(crate) fn cluster_of_template(spec: &Field<'_>, errors: &mut FieldErrors) {
    let name = spec.child("clusterName");
    if name.text() != spec.child("template.spec.clusterName").text() {
        errors
            .add(|| name.invalid("spec.clusterName and spec.template.spec.clusterName must be set to the same value"));
    }
}

/// Checks taints. Those of the control plane belong to its Machines only.
pub(crate) fn taints(taints: &Field<'_>, of_workers: bool, errors: &mut FieldErrors) {
    for taint in taints.items() {
        let key = taint.child("key");
        let reserved = match key.text() {
            "node.cluster.x-k8s.io/uninitialized" | "node.cluster.x-k8s.io/outdated-revision" => {
                "taint key is not allowed"
            }
            "node.kubernetes.io/out-of-service" => "",
            text if text.starts_with("node.kubernetes.io/") => {
                "taint key must not have the prefix node.kubernetes.io/, except for node.kubernetes.io/out-of-service"
            }
            text if text.starts_with("node.cloudprovider.kubernetes.io/") => {
                "taint key must not have the prefix node.cloudprovider.kubernetes.io/"
            }
            "node-role.kubernetes.io/master" => "taint is deprecated since 1.24 and should not be used anymore",
            _ => "",
        };
        if !reserved.is_empty() {
            errors.add(|| key.invalid(reserved));
        }
        for problem in label_key_problems(key.text()) {
            errors.add(|| key.invalid(problem));
        }
        if of_workers && key.text() == "node-role.kubernetes.io/control-plane" {
            errors.add(|| key.invalid("taint is not allowed for worker Machines"));
        }
    }
}

/// Checks a number, or a percentage as text.
pub(crate) fn number_or_percentage(field: &Field<'_>, errors: &mut FieldErrors) {
    let Value::String(text) = field.value() else {
        return;
    };
    let why = match text.strip_suffix('%') {
        None => "invalid type: string is not a percentage".to_owned(),
        Some(number) if number.parse::<i64>().is_ok() => return,
        Some(number) => format!(
            "invalid value {}: strconv.Atoi: parsing {}: invalid syntax",
            quoted(text),
            quoted(number)
        ),
    };
    errors.add(|| {
        field.invalid(format!(
            "must be either an int or a percentage: invalid value for IntOrString: {why}"
        ))
    });
}

/// Checks a rolling update: it must be able to make or to remove a Machine.
pub(crate) fn rolling_update(strategy: &Field<'_>, errors: &mut FieldErrors) {
    let rolling = strategy.child("rollingUpdate");
    let (unavailable, surge) = (rolling.child("maxUnavailable"), rolling.child("maxSurge"));
    number_or_percentage(&unavailable, errors);
    number_or_percentage(&surge, errors);
    if (unavailable.number(), surge.number()) == (Some(0), Some(0)) {
        errors.add(|| {
            FieldError::invalid(
                rolling.path(),
                "0".into(),
                "maxUnavailable and maxSurge cannot both be 0",
            )
        });
    }
}

/// Checks a health check, of its own or of a class or topology.
pub(crate) fn health_check(check: &Field<'_>, errors: &mut FieldErrors) {
    const LEAST: i64 = 30;
    let startup = check.child("checks.nodeStartupTimeoutSeconds");
    if startup.number().is_some_and(|seconds| seconds != 0 && seconds < LEAST) {
        errors.add(|| startup.invalid("must be at least 30s"));
    }
    number_or_percentage(&check.child("remediation.triggerIf.unhealthyLessThanOrEqualTo"), errors);
}

/// Checks a label selector.
pub(crate) fn selector(selector: &Field<'_>, errors: &mut FieldErrors) {
    selector::errors(selector.value(), &selector.path(), errors);
}

/// Checks the selector of a set. Gives the labels of its template, and why they are wrong, if it does not select them.
pub(crate) fn selector_of_template<'a>(spec: &Field<'a>, errors: &mut FieldErrors) -> Option<(Field<'a>, String)> {
    let by = spec.child("selector");
    let before = errors.len();
    selector(&by, errors);
    let labels = spec.child("template.metadata.labels");
    if errors.len() > before || LabelSelector::from_object(by.value()).matches_map(Some(labels.value())) {
        return None;
    }
    let text = quoted(&selector_text(by.value()));
    Some((labels, format!("must match spec.selector {text}")))
}

/// A selector as `kubectl -l` takes it.
fn selector_text(selector: &Value) -> String {
    let mut parts: Vec<(&str, String)> = Vec::new();
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        parts.push((key, format!("{key}={}", value.as_str().unwrap_or_default())));
    }
    for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
        let key = expression["key"].as_str().unwrap_or_default();
        let mut values: Vec<&str> = windlass_objects::metadata::strings(expression.get("values"));
        values.sort_unstable();
        let values = values.join(",");
        let text = match expression["operator"].as_str().unwrap_or_default() {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        };
        parts.push((key, text));
    }
    parts.sort_by_key(|(key, _)| *key);
    let texts: Vec<String> = parts.into_iter().map(|(_, text)| text).collect();
    texts.join(",")
}

/// What a naming template can name: the Cluster, the random characters, and the owner under its name in templates.
pub(crate) fn naming_data(owner: Option<(&str, &str)>) -> Value {
    let mut data = Map::new();
    data.insert("cluster".to_owned(), json!({"name": "cluster"}));
    data.insert("random".to_owned(), SAMPLE.into());
    if let Some((owner, field)) = owner {
        data.insert(owner.to_owned(), json!({field: owner.to_ascii_lowercase()}));
    }
    Value::Object(data)
}

/// What the naming templates of an object may cost together.
pub(crate) fn naming_budget() -> Budget {
    Budget::of(NAME_COST)
}

/// The name that a naming template makes for a sample, or the reason why it makes none.
fn sample_name(template: &str, data: &Value, budget: &mut Budget) -> Result<String, String> {
    let name = windlass_gotemplate::render_strict_within(template, data, budget);
    let mut name = name.map_err(|error| error.to_string())?;
    if name.len() > LONGEST_NAME {
        name.truncate(name.floor_char_boundary(LONGEST_NAME - SAMPLE.len()));
        name.push_str(SAMPLE);
    }
    Ok(name)
}

/// Checks a naming template of Machines; a missing one is good.
pub(crate) fn machine_naming(naming: &Field<'_>, data: &Value, errors: &mut FieldErrors) {
    let template = naming.child("template");
    if template.text().is_empty() {
        return;
    }
    if !template.text().contains(RANDOM) {
        errors.add(|| template.invalid(format!("invalid template, {RANDOM} is missing")));
    }
    match sample_name(template.text(), data, &mut naming_budget()) {
        Err(why) => errors.add(|| template.invalid(format!("invalid template: {why}"))),
        Ok(name) => {
            let words = "invalid template, generated names would not be valid Kubernetes object names";
            let problems = subdomain_problems(&name).into_iter();
            errors.extend(problems.map(|problem| template.invalid(format!("{words}: {problem}"))));
        }
    }
}

/// Checks a naming template of an object that there is one of; a missing one is good.
pub(crate) fn naming(naming: &Field<'_>, what: &str, (data, budget): (&Value, &mut Budget), errors: &mut FieldErrors) {
    let template = naming.child("template");
    if template.text().is_empty() || errors.is_full() {
        return;
    }
    match sample_name(template.text(), data, budget) {
        Err(why) => errors.add(|| template.invalid(format!("invalid {what} name template: {why}"))),
        Ok(name) => errors.extend(
            subdomain_problems(&name)
                .into_iter()
                .map(|problem| template.invalid(problem)),
        ),
    }
}

/// Checks the annotation that skips preflight checks.
pub(crate) fn skipped_preflight_checks(object: &Value, errors: &mut FieldErrors) {
    const KNOWN: [&str; 5] = [
        "All",
        "ControlPlaneIsStable",
        "ControlPlaneVersionSkew",
        "KubeadmVersionSkew",
        "KubernetesVersionSkew",
    ];
    let annotation = Field::of(object)
        .child("metadata.annotations")
        .entry(windlass_api::annotations::SKIP_PREFLIGHT_CHECKS);
    if annotation.text().is_empty() {
        return;
    }
    let named = annotation.text().split(',').map(str::trim);
    let unknown: Vec<&str> = named.filter(|name| !KNOWN.contains(name)).collect();
    if !unknown.is_empty() {
        let detail = format!("skipped preflight check(s) must be among: [{}]", KNOWN.join(" "));
        errors.add(|| FieldError::invalid(annotation.path(), json!(unknown), detail));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_reads_as_kubectl_takes_it() {
        let selector = json!({
            "matchLabels": {"b": "1"},
            "matchExpressions": [
                {"key": "c", "operator": "NotIn", "values": ["z", "y"]}, {"key": "a", "operator": "Exists"},
                {"key": "d", "operator": "DoesNotExist"}, {"key": "e", "operator": "In", "values": ["x"]},
            ],
        });
        assert_eq!(selector_text(&selector), "a,b=1,c notin (y,z),!d,e in (x)");
    }

    #[test]
    fn a_name_that_is_too_long_is_cut_before_it_is_checked() {
        let data = naming_data(Some(("machineSet", "name")));
        let check = |template: &str, expect: usize| {
            let template = json!({"template": template});
            let mut errors = FieldErrors::new();
            machine_naming(&Field::at("spec.machineNaming", &template), &data, &mut errors);
            assert_eq!(errors.len(), expect, "{errors:?}");
        };
        check("{{ .machineSet.name }}-{{ .random }}", 0);
        check(&format!("{}-{{{{ .random }}}}", "a".repeat(80)), 0);
        check("{{ .machineSet.name }}", 1);
        check("{{ .machineDeployment.name }}-{{ .random }}", 1);
        check("A_{{ .random }}", 1);
        check("{{ .oops", 2);
    }
}
