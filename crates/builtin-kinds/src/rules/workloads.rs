//! Workloads with a pod template: Deployment, ReplicaSet, StatefulSet, DaemonSet, ReplicationController, PodTemplate,
//! ControllerRevision.

use serde_json::{Value, json};

use windlass_schema::Kind;

use super::field::{
    Errors, Field, immutable, is_none_of, items_mut, non_negative, not_over_all, number_or_percent, one_of, or_set,
    printed, set, strategy as shown,
};
use super::{pods, selectors};
use windlass_objects::metadata::{meta_mut, meta_value};

const TEMPLATE: &str = "/spec/template";
/// The annotation of a DaemonSet that counts the changes of its template.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

pub(crate) fn default_deployment(object: &mut Value) {
    pods::default_template(object, TEMPLATE);
    let Some(spec) = object.get_mut("spec") else { return };
    or_set(spec, "replicas", 1);
    or_set(spec, "strategy", json!({}));
    let strategy = &mut spec["strategy"];
    or_set(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate" {
        or_set(strategy, "rollingUpdate", json!({}));
        or_set(&mut strategy["rollingUpdate"], "maxUnavailable", "25%");
        or_set(&mut strategy["rollingUpdate"], "maxSurge", "25%");
    }
    or_set(spec, "revisionHistoryLimit", 10);
    or_set(spec, "progressDeadlineSeconds", 600);
}

pub(crate) fn default_replica_set(object: &mut Value) {
    pods::default_template(object, TEMPLATE);
    if let Some(spec) = object.get_mut("spec") {
        or_set(spec, "replicas", 1);
    }
}

pub(crate) fn default_replication_controller(object: &mut Value) {
    default_replica_set(object);
    let labels = object.pointer("/spec/template/metadata/labels").cloned();
    if let Some(labels) = labels.filter(|l| l.as_object().is_some_and(|l| !l.is_empty())) {
        if let Some(spec) = object.get_mut("spec") {
            or_set(spec, "selector", labels.clone());
        }
        if meta_value(object, "labels").is_none() {
            meta_mut(object).insert("labels".to_owned(), labels);
        }
    }
}

pub(crate) fn default_stateful_set(object: &mut Value) {
    pods::default_template(object, TEMPLATE);
    let Some(spec) = object.get_mut("spec") else { return };
    or_set(spec, "podManagementPolicy", "OrderedReady");
    or_set(spec, "updateStrategy", json!({}));
    let strategy = &mut spec["updateStrategy"];
    or_set(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate" {
        or_set(strategy, "rollingUpdate", json!({}));
        or_set(&mut strategy["rollingUpdate"], "partition", 0);
    }
    or_set(spec, "persistentVolumeClaimRetentionPolicy", json!({}));
    for key in ["whenDeleted", "whenScaled"] {
        or_set(&mut spec["persistentVolumeClaimRetentionPolicy"], key, "Retain");
    }
    or_set(spec, "replicas", 1);
    or_set(spec, "revisionHistoryLimit", 10);
    for claim in items_mut(spec, "/volumeClaimTemplates") {
        or_set(claim, "apiVersion", "v1");
        or_set(claim, "kind", "PersistentVolumeClaim");
        super::storage::default_claim(claim);
    }
}

pub(crate) fn default_daemon_set(object: &mut Value) {
    pods::default_template(object, TEMPLATE);
    let Some(spec) = object.get_mut("spec") else { return };
    or_set(spec, "updateStrategy", json!({}));
    let strategy = &mut spec["updateStrategy"];
    if strategy["type"].as_str().is_none_or(str::is_empty) {
        set(strategy, "type", "RollingUpdate");
    }
    if strategy["type"] == "RollingUpdate" {
        or_set(strategy, "rollingUpdate", json!({}));
        or_set(&mut strategy["rollingUpdate"], "maxUnavailable", 1);
        or_set(&mut strategy["rollingUpdate"], "maxSurge", 0);
    }
    or_set(spec, "revisionHistoryLimit", 10);
    let annotations = meta_mut(object).entry("annotations").or_insert_with(|| json!({}));
    or_set(annotations, TEMPLATE_GENERATION, "0");
}

/// Counts the changes of a DaemonSet's template in an annotation.
pub(crate) fn count_template(object: &mut Value, old: Option<&Value>) {
    let count = match old {
        None => 1,
        Some(old) => {
            let was = old
                .pointer("/metadata/annotations")
                .and_then(|a| a[TEMPLATE_GENERATION].as_str()?.parse::<i64>().ok())
                .unwrap_or(0);
            was + i64::from(old.pointer(TEMPLATE) != object.pointer(TEMPLATE))
        }
    };
    let annotations = meta_mut(object).entry("annotations").or_insert_with(|| json!({}));
    set(annotations, TEMPLATE_GENERATION, count.to_string());
}

pub(crate) fn deployment(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = Field::of(object, "spec");
    non_negative(&spec.get("replicas"), errors);
    of_replicas(&spec, errors);
    let strategy = spec.get("strategy");
    let rolling = strategy.get("rollingUpdate");
    match strategy.get("type").text() {
        "Recreate" if rolling.is_set() => {
            errors.push(rolling.forbidden("may not be specified when strategy `type` is 'Recreate'"));
        }
        "Recreate" => {}
        "RollingUpdate" => {
            let (unavailable, surge) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
            number_or_percent(&unavailable, errors);
            number_or_percent(&surge, errors);
            if is_none_of(&unavailable) && is_none_of(&surge) {
                errors.push(unavailable.invalid("may not be 0 when `maxSurge` is 0"));
            }
            not_over_all(&unavailable, errors);
        }
        other => errors.push(printed(
            &strategy.path,
            Kind::NotSupported,
            &shown(other),
            "supported values: \"Recreate\", \"RollingUpdate\"",
        )),
    }
    non_negative(&spec.get("minReadySeconds"), errors);
    non_negative(&spec.get("revisionHistoryLimit"), errors);
    let deadline = spec.get("progressDeadlineSeconds");
    non_negative(&deadline, errors);
    if deadline
        .int()
        .is_some_and(|d| d <= spec.get("minReadySeconds").int().unwrap_or(0))
    {
        errors.push(deadline.invalid("must be greater than minReadySeconds"));
    }
    if let Some(old) = old {
        immutable(object, old, "spec.selector", errors);
    }
}

pub(crate) fn replica_set(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = Field::of(object, "spec");
    non_negative(&spec.get("replicas"), errors);
    non_negative(&spec.get("minReadySeconds"), errors);
    of_replicas(&spec, errors);
    if let Some(old) = old {
        immutable(object, old, "spec.selector", errors);
    }
}

/// Validates the selector and the template of a workload with replicas.
fn of_replicas(spec: &Field<'_>, errors: &mut Errors) {
    let template = spec.get("template");
    let of = selectors::Of {
        selector: spec.get("selector"),
        labels: template.get("metadata").get("labels"),
        kind: "deployment",
        required: true,
    };
    if selectors::workload(&of, errors) {
        let labels = template_labels(&template);
        errors.extend(selectors::mismatch(&of.selector, &labels));
        pods::check_template(&template, errors);
        always(&template, "ReplicaSet", errors);
    }
}

fn template_labels<'a>(template: &Field<'a>) -> Field<'a> {
    template.get("metadata").get("labels")
}

/// Checks that pods are always restarted and have no deadline.
fn always(template: &Field<'_>, kind: &str, errors: &mut Errors) {
    let policy = template.get("spec").get("restartPolicy");
    if policy.text() != "Always" {
        errors.push(policy.unsupported(&["Always"]));
    }
    let deadline = template.get("spec").get("activeDeadlineSeconds");
    if deadline.is_set() {
        errors.push(deadline.forbidden(format!("activeDeadlineSeconds in {kind} is not Supported")));
    }
}

pub(crate) fn replication_controller(object: &Value, _: Option<&Value>, errors: &mut Errors) {
    let spec = Field::of(object, "spec");
    non_negative(&spec.get("minReadySeconds"), errors);
    let (selector, template) = (spec.get("selector"), spec.get("template"));
    if selector.is_empty() {
        errors.push(selector.required(""));
    }
    non_negative(&spec.get("replicas"), errors);
    if !template.is_set() {
        errors.push(template.required(""));
        return;
    }
    let labels = template_labels(&template);
    let matches = selector
        .entries()
        .all(|(key, value)| labels.value.get(key) == Some(value.value));
    if !selector.is_empty() && !matches {
        errors.push(labels.invalid("`selector` does not match template `labels`"));
    }
    pods::check_template(&template, errors);
    always(&template, "ReplicationController", errors);
}

pub(crate) fn stateful_set(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = Field::of(object, "spec");
    let policy = spec.get("podManagementPolicy");
    match policy.text() {
        "OrderedReady" | "Parallel" => {}
        "" => errors.push(policy.required("")),
        _ => errors.push(policy.invalid("must be 'OrderedReady' or 'Parallel'")),
    }
    let strategy = spec.get("updateStrategy");
    let rolling = strategy.get("rollingUpdate");
    match strategy.get("type").text() {
        "OnDelete" if rolling.is_set() => {
            errors.push(rolling.invalid("only allowed for updateStrategy 'RollingUpdate'"));
        }
        "OnDelete" => {}
        "RollingUpdate" => non_negative(&rolling.get("partition"), errors),
        "" => errors.push(strategy.required("")),
        other => errors.push(printed(
            &strategy.path,
            Kind::Invalid,
            &shown(other),
            "must be 'RollingUpdate' or 'OnDelete'",
        )),
    }
    let retention = spec.get("persistentVolumeClaimRetentionPolicy");
    for key in ["whenDeleted", "whenScaled"].map(|k| retention.get(k)) {
        one_of(&key, &["Retain", "Delete"], errors);
    }
    non_negative(&spec.get("replicas"), errors);
    non_negative(&spec.get("minReadySeconds"), errors);
    non_negative(&spec.get("ordinals").get("start"), errors);
    let template = spec.get("template");
    let of = selectors::Of {
        selector: spec.get("selector"),
        labels: template_labels(&template),
        kind: "statefulset",
        required: true,
    };
    if selectors::workload(&of, errors) {
        errors.extend(selectors::mismatch(&of.selector, &of.labels));
        pods::check_template(&template, errors);
        always(&template, "StatefulSet", errors);
    }
    if let Some(old) = old {
        let fixed = |object: &Value| {
            let mut spec = object["spec"].clone();
            if let Some(map) = spec.as_object_mut() {
                for key in [
                    "replicas",
                    "ordinals",
                    "template",
                    "updateStrategy",
                    "minReadySeconds",
                    "persistentVolumeClaimRetentionPolicy",
                    "revisionHistoryLimit",
                ] {
                    map.remove(key);
                }
            }
            spec
        };
        if fixed(object) != fixed(old) {
            errors.push(spec.forbidden("updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"));
        }
    }
}

pub(crate) fn daemon_set(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = Field::of(object, "spec");
    let template = spec.get("template");
    let of = selectors::Of {
        selector: spec.get("selector"),
        labels: template_labels(&template),
        kind: "daemonset",
        required: false,
    };
    if selectors::workload(&of, errors) {
        errors.extend(selectors::mismatch(&of.selector, &of.labels));
    }
    pods::check_template(&template, errors);
    always(&template, "DaemonSet", errors);
    non_negative(&spec.get("minReadySeconds"), errors);
    let strategy = spec.get("updateStrategy");
    let rolling = strategy.get("rollingUpdate");
    match strategy.get("type").text() {
        "OnDelete" => {}
        "RollingUpdate" => {
            let (unavailable, surge) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
            for share in [&unavailable, &surge] {
                number_or_percent(share, errors);
                not_over_all(share, errors);
            }
            if is_none_of(&unavailable) && is_none_of(&surge) {
                errors.push(unavailable.required("cannot be 0 when maxSurge is 0"));
            } else if !is_none_of(&unavailable) && !is_none_of(&surge) {
                errors.push(surge.invalid("may not be set when maxUnavailable is non-zero"));
            }
        }
        other => errors.push(printed(
            &strategy.path,
            Kind::NotSupported,
            &shown(other),
            "supported values: \"RollingUpdate\", \"OnDelete\"",
        )),
    }
    non_negative(&spec.get("revisionHistoryLimit"), errors);
    if let Some(old) = old {
        immutable(object, old, "spec.selector", errors);
    }
}

pub(crate) fn pod_template(object: &Value, _: Option<&Value>, errors: &mut Errors) {
    pods::check_template(&Field::of(object, "template"), errors);
}

pub(crate) fn controller_revision(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    non_negative(&Field::of(object, "revision"), errors);
    let data = Field::of(object, "data");
    if !data.is_set() {
        errors.push(data.required("data is mandatory"));
    }
    if let Some(old) = old {
        immutable(object, old, "data", errors);
    }
}
