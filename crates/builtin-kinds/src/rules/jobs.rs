//! Job and CronJob.

use serde_json::{Value, json};

use super::field::{Errors, Field, immutable, non_negative, one_of, or_set, present, set};
use super::{pods, selectors};
use windlass_objects::metadata::{meta, meta_mut, meta_value};

const TEMPLATE: &str = "/spec/template";
const UID: &str = "batch.kubernetes.io/controller-uid";
const NAME: &str = "batch.kubernetes.io/job-name";

pub(crate) fn default_job(object: &mut Value) {
    pods::default_template(object, TEMPLATE);
    let labels = object.pointer("/spec/template/metadata/labels").cloned();
    let Some(spec) = object.get_mut("spec") else { return };
    if spec.get("completions").is_none() && spec.get("parallelism").is_none() {
        or_set(spec, "completions", 1);
    }
    or_set(spec, "parallelism", 1);
    let per_index = spec.get("backoffLimitPerIndex").is_some();
    or_set(spec, "backoffLimit", if per_index { i32::MAX } else { 6 });
    or_set(spec, "completionMode", "NonIndexed");
    or_set(spec, "suspend", false);
    or_set(spec, "manualSelector", false);
    let policy = spec.get("podFailurePolicy").is_some();
    or_set(
        spec,
        "podReplacementPolicy",
        if policy { "Failed" } else { "TerminatingOrFailed" },
    );
    for rule in super::field::items_mut(spec, "/podFailurePolicy/rules") {
        for pattern in super::field::items_mut(rule, "/onPodConditions") {
            if pattern["status"].as_str().is_none_or(str::is_empty) {
                set(pattern, "status", "True");
            }
        }
    }
    if let Some(labels) = labels.filter(|l| l.as_object().is_some_and(|l| !l.is_empty()))
        && meta_value(object, "labels").is_none()
    {
        meta_mut(object).insert("labels".to_owned(), labels);
    }
}

pub(crate) fn default_cron_job(object: &mut Value) {
    pods::default_template(object, "/spec/jobTemplate/spec/template");
    let Some(spec) = object.get_mut("spec") else { return };
    or_set(spec, "concurrencyPolicy", "Allow");
    or_set(spec, "suspend", false);
    or_set(spec, "successfulJobsHistoryLimit", 3);
    or_set(spec, "failedJobsHistoryLimit", 1);
}

/// Sets the selector of a new job to its own pods, unless it has a manual selector.
pub(crate) fn on_create(object: &mut Value) {
    if object.pointer("/spec/manualSelector") == Some(&Value::Bool(true)) {
        return;
    }
    let (uid, name) = (meta(object, "uid").to_owned(), meta(object, "name").to_owned());
    let Some(spec) = object.get_mut("spec") else { return };
    or_set(spec, "selector", json!({}));
    or_set(&mut spec["selector"], "matchLabels", json!({}));
    set(&mut spec["selector"]["matchLabels"], UID, uid.clone());
    or_set(spec, "template", json!({}));
    let metadata = spec["template"]
        .as_object_mut()
        .map(|t| t.entry("metadata").or_insert_with(|| json!({})));
    let Some(metadata) = metadata else { return };
    or_set(metadata, "labels", json!({}));
    for (key, value) in [
        (UID, &uid),
        (NAME, &name),
        ("controller-uid", &uid),
        ("job-name", &name),
    ] {
        set(&mut metadata["labels"], key, value.clone());
    }
}

pub(crate) fn job(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = Field::of(object, "spec");
    let selector = spec.get("selector");
    if old.is_none() {
        if !spec.get("manualSelector").is_true() {
            let own = selector
                .get("matchLabels")
                .value
                .as_object()
                .is_some_and(|l| l.len() == 1);
            if !own || !selector.get("matchExpressions").is_empty() {
                errors.push(selector.invalid("`selector` not auto-generated"));
            }
        } else if !selector.is_set() {
            errors.push(selector.required(""));
        }
    }
    job_spec(&spec, errors);
    if selector.is_set() && selectors::check(&selector, errors) {
        let labels = spec.get("template").get("metadata").get("labels");
        errors.extend(selectors::mismatch(&selector, &labels));
    }
    let Some(old) = old else { return };
    if spec.get("completionMode").text() != "Indexed" {
        immutable(object, old, "spec.completions", errors);
    }
    for path in [
        "spec.selector",
        "spec.podFailurePolicy",
        "spec.completionMode",
        "spec.backoffLimitPerIndex",
        "spec.managedBy",
        "spec.successPolicy",
    ] {
        immutable(object, old, path, errors);
    }
    let not_started = old.pointer("/status/startTime").is_none_or(Value::is_null);
    let suspended = old.pointer("/spec/suspend") == Some(&Value::Bool(true));
    let (mut is, mut was) = (object.pointer(TEMPLATE).cloned(), old.pointer(TEMPLATE).cloned());
    if suspended && not_started {
        for template in [&mut is, &mut was].into_iter().flatten() {
            forget_placement(template);
        }
    }
    if is != was {
        errors.push(spec.get("template").invalid("field is immutable"));
    }
}

/// Removes scheduling fields before comparison: they are mutable while a job is suspended and has never run.
fn forget_placement(template: &mut Value) {
    if let Some(metadata) = template.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("labels");
        metadata.remove("annotations");
    }
    if let Some(spec) = template.get_mut("spec").and_then(Value::as_object_mut) {
        for key in ["nodeSelector", "affinity", "tolerations", "schedulingGates"] {
            spec.remove(key);
        }
    }
}

fn job_spec(spec: &Field<'_>, errors: &mut Errors) {
    for key in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
    ] {
        non_negative(&spec.get(key), errors);
    }
    let mode = spec.get("completionMode");
    if mode.is_set() {
        if !matches!(mode.text(), "NonIndexed" | "Indexed") {
            errors.push(mode.unsupported(&["NonIndexed", "Indexed"]));
        }
        if mode.text() == "Indexed" && !spec.get("completions").is_set() {
            let completions = spec.get("completions");
            errors.push(completions.required("when completion mode is Indexed"));
        }
    }
    let template = spec.get("template");
    pods::check_template(&template, errors);
    let policy = template.get("spec").get("restartPolicy");
    match policy.text() {
        "OnFailure" | "Never" => {}
        "Always" => errors.push(policy.required("valid values: \"OnFailure\", \"Never\"")),
        _ => errors.push(policy.unsupported(&["OnFailure", "Never"])),
    }
}

pub(crate) fn cron_job(object: &Value, _: Option<&Value>, errors: &mut Errors) {
    let spec = Field::of(object, "spec");
    let name = meta(object, "name");
    if name.len() > 52 {
        errors.push(windlass_schema::FieldError::invalid(
            "metadata.name",
            name.into(),
            "must be no more than 52 characters",
        ));
    }
    let schedule = spec.get("schedule");
    present(&schedule, errors);
    if let Some(words) = schedule_problem(schedule.text()) {
        errors.push(schedule.invalid(words));
    }
    non_negative(&spec.get("startingDeadlineSeconds"), errors);
    one_of(&spec.get("concurrencyPolicy"), &["Allow", "Forbid", "Replace"], errors);
    job_spec(&spec.get("jobTemplate").get("spec"), errors);
    non_negative(&spec.get("successfulJobsHistoryLimit"), errors);
    non_negative(&spec.get("failedJobsHistoryLimit"), errors);
}

/// The problem of a cron schedule. Only the form is checked, not the values.
fn schedule_problem(text: &str) -> Option<String> {
    if text.is_empty() || text.starts_with('@') {
        return None;
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    (fields.len() != 5).then(|| {
        format!(
            "expected exactly 5 fields, found {}: [{}]",
            fields.len(),
            fields.join(" ")
        )
    })
}
