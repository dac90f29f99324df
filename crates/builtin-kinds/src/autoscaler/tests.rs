//! Conversion in both directions.

#![allow(clippy::needless_pass_by_value, reason = "cases read best with values")]

use super::*;

fn v1(mut object: Value) -> Value {
    to_v1(&mut object);
    object
}

fn v2(mut object: Value) -> Value {
    to_v2(&mut object);
    object
}

#[test]
fn the_use_of_processors_is_a_field() {
    let new = json!({
        "metadata": {"name": "a"},
        "spec": {"minReplicas": 1, "metrics": [
            {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}},
        ]},
        "status": {"desiredReplicas": 2, "currentMetrics": null},
    });
    let old = json!({
        "metadata": {"name": "a"},
        "spec": {"minReplicas": 1, "targetCPUUtilizationPercentage": 50},
        "status": {"currentReplicas": 0, "desiredReplicas": 2},
    });
    assert_eq!(v1(new.clone()), old);
    assert_eq!(v2(old), new);
}

#[test]
fn without_a_metric_it_is_the_usual_one() {
    let new = v2(json!({"metadata": {}, "spec": {}}));
    assert_eq!(
        new.pointer("/spec/metrics/0/resource/target/averageUtilization"),
        Some(&80.into())
    );
}

#[test]
fn everything_else_is_in_annotations_and_comes_back() {
    let target = |kind: &str, key: &str, value: &str| json!({"type": kind, key: value});
    let new = json!({
        "metadata": {"annotations": {"x": "y"}},
        "spec": {"minReplicas": 1,
            "behavior": {"scaleDown": {"selectPolicy": "Max", "policies": [{"type": "Pods", "value": 4, "periodSeconds": 60}]}},
            "metrics": [
                {"type": "Pods", "pods": {
                    "metric": {"name": "a<b", "selector": {"matchLabels": {"kind": "k", "a": "b"}}},
                    "target": target("AverageValue", "averageValue", "1k"),
                }},
                {"type": "Object", "object": {
                    "metric": {"name": "rps"}, "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "s"},
                    "target": target("Value", "value", "10k"),
                }},
                {"type": "Object", "object": {
                    "metric": {"name": "rps"}, "describedObject": {"kind": "Service", "name": "s"},
                    "target": target("AverageValue", "averageValue", "10k"),
                }},
                {"type": "External", "external": {"metric": {"name": "q"}, "target": target("Value", "value", "30")}},
                {"type": "ContainerResource", "containerResource": {
                    "name": "cpu", "container": "c", "target": {"type": "Utilization", "averageUtilization": 60},
                }},
            ],
        },
        "status": {"currentReplicas": 1, "desiredReplicas": 2,
            "conditions": [{"type": "AbleToScale", "status": "True", "reason": "R"}],
            "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 4, "averageValue": "1m"}}}],
        },
    });
    let old = v1(new.clone());
    let note = |key: &str| old["metadata"]["annotations"][key].as_str().unwrap().to_owned();
    assert_eq!(old["spec"], json!({"minReplicas": 1}));
    assert_eq!(
        old["status"],
        json!({"currentReplicas": 1, "desiredReplicas": 2, "currentCPUUtilizationPercentage": 4})
    );
    assert!(
        note(METRICS).starts_with(
            r#"[{"type":"Pods","pods":{"metricName":"a\u003cb","targetAverageValue":"1k","selector":{"matchLabels":{"a":"b","kind":"k"}}}},{"type":"Object","object":{"target":{"kind":"Service","name":"s","apiVersion":"v1"},"metricName":"rps","targetValue":"10k"}}"#
        ),
        "{}",
        note(METRICS)
    );
    assert_eq!(
        note(BEHAVIOR),
        r#"{"ScaleUp":null,"ScaleDown":{"StabilizationWindowSeconds":null,"SelectPolicy":"Max","Policies":[{"Type":"Pods","Value":4,"PeriodSeconds":60}],"Tolerance":null}}"#
    );
    let mut back = v2(old);
    // Unset scale-up behavior gets the default.
    back["spec"]["behavior"].as_object_mut().unwrap().remove("scaleUp");
    assert_eq!(back, new);
}

#[test]
fn a_note_that_cannot_be_read_is_dropped() {
    let new = v2(json!({"metadata": {"annotations": {METRICS: "[{"}}, "spec": {}}));
    assert_eq!(new["metadata"], json!({}));
}
