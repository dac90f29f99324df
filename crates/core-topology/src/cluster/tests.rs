//! What is decided and reported from what was seen.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_api::core::{Cluster, ClusterClass};
use windlass_kit::{ObjectKey, Seen};
use windlass_topology::blueprint::{Contract, references};
use windlass_topology::current::Current;
use windlass_topology::model::{ClassSpec, read};

use super::observe::{Managed, Observed};
use super::plan::{Plan, plan};
use super::{apply, status};

fn reference(kind: &str) -> Value {
    json!({"templateRef": {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": kind, "name": "t"}})
}

fn seen(change: impl FnOnce(&mut Managed, &mut Value)) -> Observed {
    let cluster: Cluster = serde_json::from_value(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": "foo", "namespace": "bar", "uid": "u", "generation": 4},
        "spec": {"topology": {"classRef": {"name": "c"}, "version": "v1.35.0"}},
    }))
    .unwrap();
    let mut class = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass",
        "metadata": {"name": "c", "namespace": "bar", "generation": 2},
        "spec": {"infrastructure": reference("DevClusterTemplate"), "controlPlane": reference("SomeControlPlaneTemplate")},
        "status": {"observedGeneration": 2},
    });
    let spec: ClassSpec = read(&class, "/spec").unwrap();
    let templates: BTreeMap<_, _> = references(&spec)
        .iter()
        .map(|r| {
            let object = json!({
                "apiVersion": r.template.api_version, "kind": r.template.kind,
                "metadata": {"name": "t", "namespace": "bar"}, "spec": {"template": {"spec": {}}},
            });
            (r.template.clone(), Seen::Found(Arc::new(object)))
        })
        .collect();
    let mut seen = Managed {
        value: serde_json::to_value(&cluster).unwrap(),
        cluster: Arc::new(cluster),
        class_key: ObjectKey::new("bar", "c"),
        class: None,
        templates,
        contract: Contract::default(),
        current: Ok(Current::default()),
        steps: None,
    };
    change(&mut seen, &mut class);
    if !class.is_null() {
        let class: ClusterClass = serde_json::from_value(class).unwrap();
        seen.class = Some(Arc::new(class));
    }
    Observed::Managed(Box::new(seen))
}

fn check(seen: &Observed, reason: &str, message: &str) {
    let plan = plan(seen);
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let status = status::status(seen, &plan, &apply::Done::default(), now).unwrap();
    let condition = &status["conditions"][0];
    assert_eq!(condition["type"], "TopologyReconciled");
    assert_eq!(condition["observedGeneration"], 4);
    assert_eq!(
        (
            condition["reason"].as_str().unwrap(),
            condition["message"].as_str().unwrap()
        ),
        (reason, message)
    );
    assert_eq!(
        condition["status"],
        if reason == "ReconcileSucceeded" {
            "True"
        } else {
            "False"
        }
    );
    assert_eq!(status["conditions"].as_array().unwrap().len(), 1);
}

#[test]
fn a_pass_that_goes_through_is_reported_as_succeeded() {
    let seen = seen(|_, _| {});
    assert!(matches!(plan(&seen), Plan::Steps(steps) if steps.changes().count() == 3));
    check(&seen, "ReconcileSucceeded", "");
}

// TO-034, TO-208, TO-240
#[test]
fn classes_that_are_missing_or_not_ready_are_named() {
    check(
        &seen(|_, class| *class = Value::Null),
        "ReconcileFailed",
        "Cluster bar/foo: spec.topology.classRef: ClusterClass bar/c does not exist",
    );
    let behind =
        "ClusterClass is not successfully reconciled: ClusterClass.status.observedGeneration must be 2, but is 1";
    check(
        &seen(|_, class| class["status"]["observedGeneration"] = 1.into()),
        "ReconcileFailed",
        behind,
    );
    let condition = |type_: &str, reason: &str, message: &str| {
        json!([{
            "type": type_, "status": "False", "reason": reason, "message": message, "observedGeneration": 2,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }])
    };
    check(
        &seen(|_, class| {
            class["status"]["conditions"] = condition("VariablesReady", "VariableDiscoveryFailed", "x is wrong");
        }),
        "ReconcileFailed",
        "ClusterClass is not successfully reconciled: x is wrong",
    );
    check(
        &seen(|_, class| {
            class["status"]["observedGeneration"] = 1.into();
            class["status"]["conditions"] = condition("RefVersionsUpToDate", "InternalError", "t does not exist");
        }),
        "ReconcileFailed",
        &format!("{behind}: t does not exist"),
    );
}

// TO-241, TO-318
#[test]
fn templates_that_are_missing_or_cannot_be_read_are_named() {
    let infrastructure = |seen: &mut Managed, found: Seen<Arc<Value>>| {
        let key = seen
            .templates
            .keys()
            .find(|k| k.kind == "DevClusterTemplate")
            .unwrap()
            .clone();
        seen.templates.insert(key, found);
    };
    check(
        &seen(|seen, _| infrastructure(seen, Seen::NotFound)),
        "ReconcileFailed",
        "ClusterClass bar/c: spec.infrastructure.templateRef: DevClusterTemplate bar/t does not exist",
    );
    let unreadable = seen(|seen, _| infrastructure(seen, Seen::Failed("no such kind".to_owned())));
    assert!(matches!(plan(&unreadable), Plan::Unreadable(_)));
    check(&unreadable, "ReconcileFailed", "no such kind");
}

// TO-042, TO-314
#[test]
fn clusters_without_topology_are_left_alone_and_deleted_ones_say_so() {
    let now = Timestamp::UNIX_EPOCH;
    let nothing = plan(&Observed::Unmanaged);
    assert_eq!(
        status::status(&Observed::Unmanaged, &nothing, &apply::Done::default(), now),
        None
    );
    let Observed::Managed(managed) = seen(|_, _| {}) else {
        panic!("a managed Cluster")
    };
    check(&Observed::Deleting(managed.cluster), "Deleting", "Cluster is deleting");
}
