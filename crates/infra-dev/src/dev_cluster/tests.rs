//! Cases for the plan and the status of DevClusters.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_api_ext::infrastructure::DevCluster;
use windlass_controller_runtime::{Decision, ObjectKey, ReconcileError};

use super::apply::{Done, cloud_error, create_load_balancer};
use super::observe::{Observed, Question};
use super::plan::{Action, Address, Plan, plan};
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
    let mut seen = Observed::new(&Cloud::new(), Arc::new(object));
    seen.has_cluster = true;
    seen
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

fn check_endpoint(seen: &Observed, address: Address) {
    let cluster = ObjectKey::new("n", "c");
    assert_eq!(decided(seen).actions, [Action::ProvideEndpoint { cluster, address }]);
}

// CL-043: what counts as the owner is a Cluster of Cluster API, in any version.
#[test]
fn it_waits_for_its_cluster() {
    let labelled = json!({"labels": {"cluster.x-k8s.io/cluster-name": "c"}});
    let of_another_group =
        json!({"ownerReferences": [{"apiVersion": "x.io/v1", "kind": "Cluster", "name": "c", "uid": "u"}]});
    for metadata in [json!({}), labelled, of_another_group] {
        assert_eq!(decided(&seen(&metadata, None)).actions, [], "{metadata}");
    }
    let mut older = owned();
    older["ownerReferences"][0]["apiVersion"] = "cluster.x-k8s.io/v1alpha3".into();
    let mut seen = seen(&older, Some(20007));
    assert_eq!(decided(&seen).actions.len(), 1);
    seen.has_cluster = false;
    assert_eq!(decided(&seen).actions, [], "an owner that does not exist");
}

#[test]
fn it_keeps_the_port_it_has() {
    let mut seen = seen(&owned(), Some(20007));
    check_endpoint(&seen, Address::At(([127, 0, 0, 1], 20007).into()));
    let elsewhere: SocketAddr = ([127, 0, 0, 2], 20008).into();
    seen.address = Some(elsewhere);
    check_endpoint(&seen, Address::At(elsewhere));
}

#[test]
fn a_cluster_without_a_port_gets_one_that_is_free() {
    let mut seen = seen(&owned(), None);
    assert_eq!(plan(&seen), Decision::Ask(Question::TakenPorts));
    let taken = BTreeSet::from([20003]);
    seen.taken = Some(taken.clone());
    check_endpoint(&seen, Address::FreePort { taken });
    assert_eq!(decided(&seen).notes.len(), 1);
}

#[test]
fn it_is_reported_that_all_ports_are_taken() {
    let error = cloud_error(&CloudError::NoPort(ObjectKey::new("n", "c")));
    let done = Done {
        failed: Some(error),
        is_reported: true,
        ..Done::default()
    };
    let ready = &status(&seen(&owned(), None), &done, Timestamp::UNIX_EPOCH).conditions[0];
    assert_eq!(
        (ready.status.as_str(), ready.reason.as_str(), ready.message.as_str()),
        (
            "False",
            "PortUnavailable",
            "no free port from 20000 upward on 127.0.0.1 for cluster n/c"
        )
    );
}

// All workers may plan before the first of them has a port.
#[tokio::test]
async fn clusters_that_are_planned_from_the_same_observation_all_get_a_port_at_the_first_try() {
    const CLUSTERS: usize = 40;
    let cloud = Cloud::new();
    let planned = |index: usize| {
        let mut seen = seen(&owned(), None);
        seen.cluster = Some(ObjectKey::new("n", format!("c{index}")));
        seen.taken = Some(BTreeSet::new());
        decided(&seen).actions
    };
    let plans: Vec<_> = (0..CLUSTERS).map(planned).collect();
    let create = async |actions: Vec<Action>| {
        let [Action::ProvideEndpoint { cluster, address }] = &actions[..] else {
            panic!("{actions:?}")
        };
        create_load_balancer(&cloud, cluster, address).await.unwrap()
    };
    let made = futures::future::join_all(plans.into_iter().map(create)).await;
    assert_eq!(BTreeSet::from_iter(made).len(), CLUSTERS);
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

// EX-007, CL-055: missing privileges are reported, with the system that could manage the infrastructure instead.
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
    let status = |done: &Done| status(&seen, done, now);
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
