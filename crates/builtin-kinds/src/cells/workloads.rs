//! Table cells of the kinds of apps and batch.

use serde_json::Value;
use windlass_objects::metadata::text as field;
use windlass_objects::names::qualified;

use super::NONE;
use super::text::{self, age, containers, images, list, number, or, pairs, selector, short_duration, string};

pub(super) fn replicas(o: &Value, old: Value, selector: &str) -> Vec<Value> {
    vec![
        number(o, "/spec/replicas").into(),
        number(o, "/status/replicas").into(),
        number(o, "/status/readyReplicas").into(),
        old,
        containers(o, "/spec/template").into(),
        images(o, "/spec/template").into(),
        selector.into(),
    ]
}

/// The cells of a Deployment.
pub(crate) fn deployment(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let n = |p: &str| number(o, p);
    let old = age(o, now);
    let ready = format!("{}/{}", n("/status/readyReplicas"), n("/spec/replicas"));
    let names = containers(o, "/spec/template");
    let pictures = images(o, "/spec/template");
    vec![
        ready.into(),
        n("/status/updatedReplicas").into(),
        n("/status/availableReplicas").into(),
        old,
        names.into(),
        pictures.into(),
        selector(o.pointer("/spec/selector")).into(),
    ]
}

/// The cells of a ReplicaSet.
pub(crate) fn replica_set(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let old = age(o, now);
    replicas(o, old, &selector(o.pointer("/spec/selector")))
}

/// The cells of a StatefulSet.
pub(crate) fn stateful_set(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let n = |p: &str| number(o, p);
    let old = age(o, now);
    let ready = format!("{}/{}", n("/status/readyReplicas"), n("/spec/replicas"));
    let names = containers(o, "/spec/template");
    let pictures = images(o, "/spec/template");
    vec![ready.into(), old, names.into(), pictures.into()]
}

/// The cells of a DaemonSet.
pub(crate) fn daemon_set(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let n = |p: &str| number(o, p);
    let old = age(o, now);
    let names = containers(o, "/spec/template");
    let pictures = images(o, "/spec/template");
    vec![
        n("/status/desiredNumberScheduled").into(),
        n("/status/currentNumberScheduled").into(),
        n("/status/numberReady").into(),
        n("/status/updatedNumberScheduled").into(),
        n("/status/numberAvailable").into(),
        or(&pairs(o.pointer("/spec/template/spec/nodeSelector")), NONE),
        old,
        names.into(),
        pictures.into(),
        selector(o.pointer("/spec/selector")).into(),
    ]
}

/// The cells of a ControllerRevision.
pub(crate) fn controller_revision(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let n = |p: &str| number(o, p);
    let old = age(o, now);
    let owner = list(o, "/metadata/ownerReferences")
        .iter()
        .find(|r| r["controller"] == Value::Bool(true));
    let owner = owner.map(|r| {
        let group = field(r, "apiVersion").split_once('/').map_or("", |(g, _)| g);
        qualified(group, &field(r, "kind").to_lowercase()) + "/" + field(r, "name")
    });
    vec![or(&owner.unwrap_or_default(), NONE), n("/revision").into(), old]
}

/// The cells of a Job.
pub(crate) fn job(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let old = age(o, now);
    let (done, all) = (number(o, "/status/succeeded"), o.pointer("/spec/completions"));
    let completions = match (all.and_then(Value::as_i64), number(o, "/spec/parallelism")) {
        (Some(all), _) => format!("{done}/{all}"),
        (None, parallel) if parallel > 1 => format!("{done}/1 of {parallel}"),
        (None, _) => format!("{done}/1"),
    };
    let time = |p: &str| string(o, p).parse::<jiff::Timestamp>().ok();
    let duration = time("/status/startTime").map(|start| {
        let end = time("/status/completionTime").unwrap_or(now);
        short_duration(end.as_second() - start.as_second())
    });
    vec![
        text::job_status(o).into(),
        completions.into(),
        duration.unwrap_or_default().into(),
        old,
        containers(o, "/spec/template").into(),
        images(o, "/spec/template").into(),
        selector(o.pointer("/spec/selector")).into(),
    ]
}

/// The cells of a CronJob.
pub(crate) fn cron_job(o: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let old = age(o, now);
    let template = "/spec/jobTemplate/spec/template";
    let suspended = o.pointer("/spec/suspend") == Some(&Value::Bool(true));
    let last = o.pointer("/status/lastScheduleTime").and_then(Value::as_str);
    let last = last.map_or_else(|| NONE.into(), |time| text::since(time, now));
    vec![
        string(o, "/spec/schedule").into(),
        or(string(o, "/spec/timeZone"), NONE),
        if suspended { "True" } else { "False" }.into(),
        list(o, "/status/active").len().into(),
        last,
        old,
        containers(o, template).into(),
        images(o, template).into(),
        or(
            &o.pointer("/spec/jobTemplate/spec/selector")
                .map(|s| selector(Some(s)))
                .unwrap_or_default(),
            NONE,
        ),
    ]
}
