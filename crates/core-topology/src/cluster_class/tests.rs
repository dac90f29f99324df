//! What is decided and reported about a class.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_api::core::ClusterClass;
use windlass_controller_runtime::{Blocked, Dynamic, Plan as _, Seen};
use windlass_topology::blueprint::references;
use windlass_topology::model::{ClassSpec, read};

use super::observe::{Observed, Template};
use super::{plan, status};

const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io/v1beta2";

fn seen(found: bool, newest: &str, spec: Value) -> Observed {
    let reference = |kind: &str| json!({"templateRef": {"apiVersion": INFRASTRUCTURE, "kind": kind, "name": "t"}});
    let mut value = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass",
        "metadata": {"name": "c", "namespace": "bar", "uid": "u", "generation": 2},
        "spec": {"infrastructure": reference("DevClusterTemplate"), "controlPlane": reference("DevClusterTemplate")},
        "status": {"observedGeneration": 1},
    });
    value["spec"]
        .as_object_mut()
        .unwrap()
        .extend(spec.as_object().unwrap().clone());
    let class: ClusterClass = serde_json::from_value(value.clone()).unwrap();
    let spec: ClassSpec = read(&value, "/spec").unwrap();
    let template = || Template {
        object: if found {
            let object = json!({
                "apiVersion": INFRASTRUCTURE, "kind": "DevClusterTemplate",
                "metadata": {"name": "t", "namespace": "bar", "uid": "t-uid"},
            });
            Seen::Found(Arc::new(Dynamic::new(object).unwrap()))
        } else {
            Seen::NotFound
        },
        newest: Some(newest.to_owned()),
    };
    let templates: BTreeMap<_, _> = references(&spec)
        .iter()
        .map(|r| (r.template.clone(), template()))
        .collect();
    Observed {
        class: Arc::new(class),
        value,
        templates,
        discovered: Vec::new(),
    }
}

fn run(seen: &Observed) -> (plan::Plan, Value) {
    let plan = plan::plan(seen);
    let status = status::status(seen, &plan, Timestamp::UNIX_EPOCH).unwrap();
    (plan, status)
}

fn owned(plan: &plan::Plan) -> &Value {
    let plan::Action::Own(intent) = &plan.actions[0];
    intent
}

/// Type, status and reason of the conditions of the previous API generation.
fn old(status: &Value) -> Vec<(&str, &str, Option<&str>)> {
    let list = status["deprecated"]["v1beta1"]["conditions"].as_array().unwrap();
    list.iter()
        .map(|c| {
            (
                c["type"].as_str().unwrap(),
                c["status"].as_str().unwrap(),
                c["reason"].as_str(),
            )
        })
        .collect()
}

fn reasons(status: &Value) -> Vec<&str> {
    status["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["reason"].as_str().unwrap())
        .collect()
}

// TO-032: each template once, beside its other owners, and not as controller.
#[test]
fn templates_belong_to_their_class() {
    let (plan, status) = run(&seen(true, INFRASTRUCTURE, json!({})));
    assert_eq!((plan.actions.len(), plan.notes.len()), (1, 1));
    assert_eq!(
        owned(&plan)["metadata"]["ownerReferences"],
        json!([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass", "name": "c", "uid": "u"}])
    );
    assert_eq!(reasons(&status), ["RefVersionsUpToDate", "VariablesReady"]);
    assert_eq!(
        old(&status),
        [
            ("RefVersionsUpToDate", "True", None),
            ("VariablesReconciled", "True", None)
        ]
    );
    assert_eq!(status["observedGeneration"], 2);
    assert_eq!(status.get("variables"), None);
}

// TO-032: what one class leaves out, the server takes away from the other.
#[test]
fn classes_that_share_a_template_repeat_each_other() {
    let mut seen = seen(true, INFRASTRUCTURE, json!({}));
    let reference = |api: &str, kind: &str, name: &str, uid: &str| json!({"apiVersion": api, "kind": kind, "name": name, "uid": uid});
    let core = "cluster.x-k8s.io/v1beta2";
    let other = reference(core, "ClusterClass", "d", "other");
    let object = json!({
        "apiVersion": INFRASTRUCTURE, "kind": "DevClusterTemplate",
        "metadata": {"name": "t", "namespace": "bar", "uid": "t-uid", "ownerReferences": [
            other, reference(core, "ClusterClass", "c", "of a class that is gone"), reference("v1", "ConfigMap", "x", "x"),
        ]},
    });
    for template in seen.templates.values_mut() {
        template.object = Seen::Found(Arc::new(Dynamic::new(object.clone()).unwrap()));
    }
    let (plan, _) = run(&seen);
    let own = reference(core, "ClusterClass", "c", "u");
    assert_eq!(owned(&plan)["metadata"]["ownerReferences"], json!([other, own]));
}

// TO-031, TO-032
#[test]
fn a_missing_template_keeps_the_class_from_being_observed() {
    let (_, status) = run(&seen(false, INFRASTRUCTURE, json!({})));
    assert_eq!(status["observedGeneration"], 1);
    let message = status["conditions"][0]["message"].as_str().unwrap();
    assert!(
        message.contains("spec.infrastructure.templateRef: DevClusterTemplate bar/t does not exist"),
        "{message}"
    );
}

#[test]
fn a_template_that_cannot_be_read_is_read_again() {
    let mut seen = seen(true, INFRASTRUCTURE, json!({}));
    for template in seen.templates.values_mut() {
        template.object = Seen::Failed("informer not synced".to_owned());
    }
    let (plan, status) = run(&seen);
    assert_eq!(
        plan.blocked(),
        Some(Blocked::failed("Unreadable", "informer not synced"))
    );
    assert_eq!(status["conditions"][0]["status"], "Unknown");
    assert_eq!(status["observedGeneration"], 1);
}

// TO-033
#[test]
fn older_versions_of_kinds_are_reported() {
    let (_, status) = run(&seen(true, "infrastructure.cluster.x-k8s.io/v1beta3", json!({})));
    assert_eq!(reasons(&status)[0], "RefVersionsNotUpToDate");
    assert_eq!(
        old(&status)[0],
        ("RefVersionsUpToDate", "False", Some("OutdatedRefVersions"))
    );
    assert_eq!(status["observedGeneration"], 2);
}

// TO-031
#[test]
fn variables_are_listed_by_name_and_bad_ones_named() {
    let variable =
        |name: &str, schema: Value| json!({"name": name, "required": true, "schema": {"openAPIV3Schema": schema}});
    let good =
        json!({"variables": [variable("b", json!({"type": "string"})), variable("a", json!({"type": "string"}))]});
    let (_, status) = run(&seen(true, INFRASTRUCTURE, good));
    let names: Vec<&Value> = status["variables"]
        .as_array()
        .unwrap()
        .iter()
        .map(|v| &v["name"])
        .collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(status["variables"][0]["definitions"][0]["from"], "inline");
    let bad = json!({"variables": [variable("a", json!({"type": "integer", "default": "x"}))]});
    let (_, status) = run(&seen(true, INFRASTRUCTURE, bad));
    assert_eq!(reasons(&status)[1], "VariableDiscoveryFailed");
    assert_eq!(status["observedGeneration"], 1);
}
