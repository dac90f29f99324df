//! Cases for the plan and the status of DevClusters.

use std::net::SocketAddr;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_api_ext::infrastructure::DevCluster;
use windlass_kit::{Blocked, Decision, ObjectKey, ReconcileError, Seen};

use super::apply::{Done, cloud_error};
use super::observe::{Observed, Question};
use super::plan::{Action, Plan, plan};
use super::status::status;
use crate::backend::{Call, Cloud, CloudError};

fn seen(metadata: &Value, port: Option<u16>) -> Observed {
    let mut object = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DevCluster",
        "metadata": {"name": "a", "namespace": "n"}, "spec": {"backend": {"inMemory": {}}},
    });
    for (key, value) in metadata.as_object().unwrap() {
        object["metadata"][key] = value.clone();
    }
    if let Some(port) = port {
        object["spec"]["controlPlaneEndpoint"] = json!({"host": "127.0.0.1", "port": port});
    }
    let object: DevCluster = serde_json::from_value(object).unwrap();
    Observed::new(&Cloud::new(), Arc::new(object))
}

fn owned() -> Value {
    json!({"ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c", "uid": "u"}]})
}

fn decided(seen: &Observed) -> Plan {
    match plan(seen) {
        Decision::Plan(plan) => plan,
        Decision::Ask(question) => panic!("{question:?}"),
    }
}

fn check_listens(seen: &Observed, expect: SocketAddr, new: bool) {
    let cluster = ObjectKey::new("n", "c");
    let create = Action::CreateLoadBalancer {
        cluster: cluster.clone(),
        address: expect,
        is_new: new,
    };
    let port = expect.port();
    assert_eq!(decided(seen).actions, [create, Action::SetEndpoint { cluster, port }]);
}

#[test]
fn it_waits_for_its_cluster() {
    assert_eq!(decided(&seen(&json!({}), None)).actions, []);
}

#[test]
fn it_keeps_the_port_it_has() {
    let mut seen = seen(&owned(), Some(20007));
    check_listens(&seen, ([127, 0, 0, 1], 20007).into(), false);
    let elsewhere: SocketAddr = ([127, 0, 0, 2], 20008).into();
    seen.address = Some(elsewhere);
    check_listens(&seen, elsewhere, false);
}

#[test]
fn a_cluster_without_a_port_gets_one_that_is_free() {
    let mut seen = seen(&owned(), None);
    assert_eq!(plan(&seen), Decision::Ask(Question::FreePort));
    seen.free = Some(Seen::Found(20003));
    check_listens(&seen, ([127, 0, 0, 1], 20003).into(), true);
    assert_eq!(decided(&seen).notes.len(), 1);
    seen.free = Some(Seen::NotFound);
    let none = decided(&seen);
    let message = "no free port from 20000 upward on 127.0.0.1 for cluster n/c";
    assert_eq!(none.actions, []);
    assert_eq!(none.blocked, Some(Blocked::failed("PortUnavailable", message)));
    let ready = &status(&seen, &none, &Done::default(), Timestamp::UNIX_EPOCH).conditions[0];
    assert_eq!(
        (ready.status.as_str(), ready.reason.as_str(), ready.message.as_str()),
        ("False", "PortUnavailable", message)
    );
}

#[test]
fn a_label_is_enough_to_find_the_cluster_when_it_goes() {
    let deleted = json!({
        "deletionTimestamp": "2026-01-01T00:00:00Z", "labels": {"cluster.x-k8s.io/cluster-name": "c"},
    });
    let delete = Action::DeleteLoadBalancer(ObjectKey::new("n", "c"));
    assert_eq!(
        decided(&seen(&deleted, Some(20007))).actions,
        [delete, Action::RemoveFinalizer]
    );
    let alone = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
    assert_eq!(decided(&seen(&alone, Some(20007))).actions, [Action::RemoveFinalizer]);
}

// EX-007: missing privileges are reported, with the system that could manage the infrastructure instead.
#[test]
fn a_refusal_of_the_cloud_is_reported_until_it_ends() {
    let seen = seen(&json!({}), None);
    let now = Timestamp::UNIX_EPOCH;
    let refused = CloudError::Refused {
        call: Call::CreateLoadBalancer,
        cluster: ObjectKey::new("n", "c"),
        caller: "windlass",
    };
    let failed = |error: ReconcileError, is_reported| Done {
        failed: Some(error),
        is_reported,
        ..Done::default()
    };
    let status = |done: &Done| status(&seen, &Plan::default(), done, now);
    let reported = status(&failed(cloud_error(&refused), true));
    let ready = &reported.conditions[0];
    assert_eq!(
        (ready.type_.as_str(), ready.status.as_str(), ready.reason.as_str()),
        ("Ready", "False", "NotAllowed")
    );
    assert!(
        ready.message.contains("CreateLoadBalancer for cluster n/c is refused"),
        "{}",
        ready.message
    );
    assert_eq!(reported.initialization, None);
    let other = ReconcileError::new("Conflict", "another field manager was faster");
    assert!(status(&failed(other, false)).conditions.is_empty());
    let done = Done {
        provisioned: true,
        ..Done::default()
    };
    assert!(status(&done).conditions.is_empty());
}
