//! Infrastructure whose provider is unknown: other clients write it, in any order and as far as they like.

use serde_json::{Value, json};
use windlass_contract::ContractVersion::{self, V1Beta1, V1Beta2};
use windlass_controller_runtime::{Moment, Seen};

use super::{Observed, check, get, in_phase, now, object, planned, referencing, reported};
use crate::cluster::plan::{Action, External};
use crate::cluster::status::status;
use crate::shared::read::{Referenced, unless_foreign, unless_taken};

/// An infrastructure cluster that no Cluster has adopted yet.
fn written(contract: ContractVersion, spec: Value, status: Value) -> Option<Seen<Referenced>> {
    Some(Seen::Found(Referenced::by(
        contract,
        json!({
            "apiVersion": "acme.io/v1", "kind": "AcmeCluster",
            "metadata": {"name": "infra", "namespace": "ns", "uid": "uid-i",
                "annotations": {"cluster.x-k8s.io/managed-by": "terraform"}},
            "spec": spec, "status": status,
        }),
    )))
}

/// A Cluster that looks at such an object.
fn looking_at(contract: ContractVersion, spec: Value, status: Value) -> Observed {
    let mut seen = in_phase(referencing(), "Provisioning");
    seen.infrastructure = written(contract, spec, status);
    seen
}

fn with_endpoint() -> Value {
    json!({"controlPlaneEndpoint": {"host": "10.0.0.1", "port": 6443}})
}

fn done() -> Value {
    json!({"initialization": {"provisioned": true}, "failureDomains": [{"name": "b"}, {"name": "a", "controlPlane": true}]})
}

/// The Cluster after it has written what it reported.
fn later(seen: &Observed) -> Observed {
    let mut next = seen.clone();
    let cluster = std::sync::Arc::make_mut(&mut next.cluster);
    let plan = planned(seen);
    for action in &plan.actions {
        if let Action::SetEndpoint(endpoint) = action {
            cluster.spec.control_plane_endpoint = Some(endpoint.clone());
        }
    }
    cluster.status = Some(status(seen, &plan, &Moment::at(now())));
    next
}

// EX-043, EX-047, EX-048, EX-051, EX-056: what is ready before the Cluster looks is adopted and taken over in one pass.
#[test]
fn everything_is_taken_over_in_one_pass() {
    let mut seen = referencing();
    seen.infrastructure = written(V1Beta2, with_endpoint(), done());
    let (plan, status) = reported(&seen);
    assert_eq!(plan.actions[0], Action::Own(External::Infrastructure));
    assert!(
        matches!(&plan.actions[1], Action::SetEndpoint(endpoint) if endpoint.host.as_deref() == Some("10.0.0.1")),
        "{:?}",
        plan.actions
    );
    assert_eq!(status.phase.as_deref(), Some("Provisioned"));
    assert_eq!(
        status.initialization.as_ref().unwrap().infrastructure_provisioned,
        Some(true)
    );
    let names: Vec<&str> = status
        .failure_domains
        .iter()
        .map(|domain| domain.name.as_str())
        .collect();
    assert_eq!(names, ["a", "b"]);
    check(&status, "InfrastructureReady", ("True", "Ready", ""));
    assert_eq!(plan.requeue, None);
}

// EX-044, EX-045, CL-064: the contract of the kind says where readiness is, not the fields that happen to be there.
#[test]
fn the_contract_decides_which_field_counts() {
    let check = |contract, status: Value, expect: bool| {
        let seen = looking_at(contract, with_endpoint(), status);
        let (plan, status) = reported(&seen);
        let found = status.initialization.and_then(|done| done.infrastructure_provisioned);
        assert_eq!(found, expect.then_some(true));
        let takes = plan
            .actions
            .iter()
            .any(|action| matches!(action, Action::SetEndpoint(_)));
        assert_eq!(takes, expect);
    };
    check(V1Beta2, json!({"ready": true}), false);
    check(V1Beta2, json!({"initialization": {"provisioned": true}}), true);
    check(
        V1Beta2,
        json!({"ready": false, "initialization": {"provisioned": true}}),
        true,
    );
    check(V1Beta1, json!({"ready": true}), true);
    check(V1Beta1, json!({"initialization": {"provisioned": true}}), false);
    check(V1Beta1, json!({"ready": "true"}), false);
}

// EX-012, EX-055, EX-061, CL-064: as long as nothing or half of it is written the Cluster waits for events, and says for what.
#[test]
fn what_is_missing_is_named_while_the_cluster_waits() {
    let waits = |contract, spec: Value, status: Value, expect: &str| {
        let seen = later(&looking_at(contract, spec, status));
        let (plan, status) = reported(&seen);
        assert_eq!(status.phase.as_deref(), Some("Provisioning"));
        assert_eq!(status.initialization, None);
        super::check(&status, "InfrastructureReady", ("False", "NotReady", expect));
        assert_eq!(plan.actions, [Action::Own(External::Infrastructure)]);
        assert_eq!(plan.requeue, None, "only an event ends the wait");
        assert!(status.failure_domains.is_empty());
        let deprecated = status.deprecated.unwrap().v1beta1.unwrap();
        assert_eq!((deprecated.failure_reason, deprecated.failure_message), (None, None));
    };
    let flag = "AcmeCluster infra: status.initialization.provisioned is false";
    waits(V1Beta2, json!(null), json!(null), flag);
    waits(V1Beta2, json!({}), json!({"ready": true}), flag);
    waits(
        V1Beta2,
        with_endpoint(),
        json!({"failureDomains": [{"name": "a"}]}),
        flag,
    );
    waits(
        V1Beta2,
        json!({"controlPlaneEndpoint": {"host": "10.0.0.1"}}),
        json!({}),
        &format!("{flag}, spec.controlPlaneEndpoint.port is not set"),
    );
    waits(
        V1Beta2,
        json!({"controlPlaneEndpoint": {"port": 6443}}),
        json!({"initialization": {"provisioned": "yes"}}),
        "AcmeCluster infra: status.initialization.provisioned is not a boolean, spec.controlPlaneEndpoint.host is not set",
    );
    waits(
        V1Beta2,
        json!({"controlPlaneEndpoint": "10.0.0.1:6443"}),
        json!("odd"),
        &format!("{flag}, spec.controlPlaneEndpoint is not an object with host and port"),
    );
    waits(
        V1Beta1,
        with_endpoint(),
        json!({}),
        "AcmeCluster infra: status.ready is false",
    );
}

// EX-040, EX-047: provisioned without an endpoint is provisioned, but the control plane cannot begin, and the Cluster says why.
#[test]
fn a_missing_endpoint_is_named_once_the_infrastructure_is_provisioned() {
    let check = |spec: Value, why: &str| {
        let seen = later(&looking_at(V1Beta2, spec, done()));
        let (plan, status) = reported(&seen);
        assert_eq!(status.phase.as_deref(), Some("Provisioning"));
        super::check(&status, "InfrastructureReady", ("True", "Ready", ""));
        let message = format!(
            "Control plane not yet initialized\nCluster spec.controlPlaneEndpoint is not set, AcmeCluster infra: {why}"
        );
        let mut with_control_plane = seen;
        with_control_plane.control_plane = object("KubeadmControlPlane", json!({}), json!({}));
        let (_, status) = reported(&with_control_plane);
        super::check(
            &status,
            "ControlPlaneInitialized",
            ("False", "NotInitialized", &message),
        );
        assert_eq!((plan.actions.len(), plan.requeue), (1, None));
    };
    check(json!({}), "spec.controlPlaneEndpoint is not set");
    check(
        json!({"controlPlaneEndpoint": {"host": "10.0.0.1"}}),
        "spec.controlPlaneEndpoint.port is not set",
    );
    check(
        json!({"controlPlaneEndpoint": {"port": 6443}}),
        "spec.controlPlaneEndpoint.host is not set",
    );
    check(
        json!({"controlPlaneEndpoint": {"host": {"ip": "10.0.0.1"}, "port": "6443"}}),
        "spec.controlPlaneEndpoint.host is not a text, spec.controlPlaneEndpoint.port is not a number from 1 to 65535",
    );
    // It comes later, even while the flag says something else by then.
    let mut seen = later(&looking_at(V1Beta2, json!({}), done()));
    seen.infrastructure = written(V1Beta2, with_endpoint(), json!({}));
    let (plan, status) = reported(&seen);
    assert!(
        plan.actions
            .iter()
            .any(|action| matches!(action, Action::SetEndpoint(_)))
    );
    assert_eq!(status.phase.as_deref(), Some("Provisioned"));
}

// EX-046, EX-047: what was taken over once is the Cluster's own.
#[test]
fn what_was_taken_over_stays_and_trouble_is_shown() {
    let mut seen = later(&looking_at(V1Beta2, with_endpoint(), done()));
    let other = json!({"controlPlaneEndpoint": {"host": "10.9.9.9", "port": 443}});
    seen.infrastructure = written(V1Beta2, other, json!({"initialization": {"provisioned": false}}));
    let (plan, status) = reported(&seen);
    assert_eq!(plan.actions, [Action::Own(External::Infrastructure)]);
    assert!(
        plan.notes.iter().any(|note| note.message.contains("10.9.9.9:443")),
        "{:?}",
        plan.notes
    );
    assert_eq!(status.phase.as_deref(), Some("Provisioned"));
    assert_eq!(
        status.initialization.as_ref().unwrap().infrastructure_provisioned,
        Some(true)
    );
    let message = "AcmeCluster infra: status.initialization.provisioned is false";
    check(&status, "InfrastructureReady", ("False", "NotReady", message));
    assert!(
        status.failure_domains.is_empty(),
        "the infrastructure offers none any more"
    );

    let mut seen = later(&looking_at(V1Beta2, with_endpoint(), done()));
    seen.infrastructure = Some(Seen::NotFound);
    let (plan, status) = reported(&seen);
    assert_eq!((plan.actions.len(), plan.requeue), (0, None), "nothing is made again");
    assert_eq!(status.failure_domains.len(), 2);
    let message = "DevCluster has been deleted while the cluster still exists";
    check(&status, "InfrastructureReady", ("False", "ObjectDeleted", message));
}

// EX-049: the object's own Ready counts, and without one the flag.
#[test]
fn ready_is_mirrored_with_its_reason_and_message() {
    let told = |ready: Value| {
        let status = json!({"initialization": {"provisioned": true}, "conditions": [ready]});
        reported(&looking_at(V1Beta2, with_endpoint(), status)).1
    };
    let status = told(
        json!({"type": "Ready", "status": "False", "reason": "NoRoute", "message": "the router is down",
        "lastTransitionTime": "2026-02-01T00:00:00Z"}),
    );
    check(
        &status,
        "InfrastructureReady",
        ("False", "NoRoute", "the router is down"),
    );
    let since = get(&status.conditions, "InfrastructureReady").unwrap();
    assert_eq!(since.last_transition_time.0.to_string(), "2026-02-01T00:00:00Z");
    assert_eq!(status.phase.as_deref(), Some("Provisioned"));
    check(
        &told(json!({"type": "Ready", "status": "Unknown"})),
        "InfrastructureReady",
        ("Unknown", "NoReasonReported", ""),
    );
    check(
        &told(json!({"type": "Ready", "status": "True"})),
        "InfrastructureReady",
        ("True", "Ready", ""),
    );
    check(
        &told(json!({"type": "Healthy", "status": "False", "reason": "X"})),
        "InfrastructureReady",
        ("True", "Ready", ""),
    );
    // What no API server would take as a condition of the Cluster is reported in words.
    let status = told(json!({"type": "Ready", "status": "False", "reason": "not one word"}));
    let condition = get(&status.conditions, "InfrastructureReady").unwrap();
    assert_eq!(
        (condition.status.as_str(), condition.reason.as_str()),
        ("Unknown", "InvalidConditionReported")
    );
    assert!(condition.message.contains("not one word"), "{}", condition.message);
}

// EX-049: terminal failures of the older contract are shown where they were shown before, and nothing follows from them.
#[test]
fn failures_of_the_older_contract_are_reported_in_the_deprecated_status() {
    let failed = json!({"ready": true, "failureReason": "CreateError", "failureMessage": "no quota",
        "conditions": [{"type": "Ready", "status": "False", "severity": "Error", "reason": "NoQuota", "message": "ask for more"}]});
    let seen = looking_at(V1Beta1, with_endpoint(), failed);
    let (_, status) = reported(&seen);
    assert_eq!(status.phase.as_deref(), Some("Provisioned"));
    let deprecated = status.deprecated.clone().unwrap().v1beta1.unwrap();
    assert_eq!(deprecated.failure_reason.as_deref(), Some("CreateError"));
    assert_eq!(
        deprecated.failure_message.as_deref(),
        Some("Failure detected from referenced resource acme.io/v1, Kind=AcmeCluster with name \"infra\": no quota")
    );
    check(&status, "InfrastructureReady", ("False", "NoQuota", "ask for more"));
    for type_ in ["InfrastructureReady", "Ready"] {
        let old = deprecated.conditions.iter().find(|old| old.type_ == type_).unwrap();
        assert_eq!(
            (old.severity.as_deref(), old.reason.as_deref(), old.message.as_deref()),
            (Some("Error"), Some("NoQuota"), Some("ask for more")),
            "{type_}"
        );
    }
    let mut mended = later(&seen);
    mended.infrastructure = written(V1Beta1, with_endpoint(), json!({"ready": true}));
    let deprecated = reported(&mended).1.deprecated.unwrap().v1beta1.unwrap();
    assert_eq!((deprecated.failure_reason, deprecated.failure_message), (None, None));
}

// EX-050, EX-085: the holder of the infrastructure is named while the Cluster waits.
#[test]
fn a_deletion_names_the_finalizers_that_hold_it() {
    let going = |finalizers: Value, deleting: bool| {
        let mut seen = in_phase(referencing(), "Deleting");
        let deleted = super::from(json!("2026-03-01T09:59:00Z"));
        std::sync::Arc::make_mut(&mut seen.cluster).metadata.deletion_timestamp = deleted;
        let mut value = json!({
            "apiVersion": "acme.io/v1", "kind": "AcmeCluster",
            "metadata": {"name": "infra", "namespace": "ns", "uid": "uid-i", "finalizers": finalizers},
        });
        if deleting {
            value["metadata"]["deletionTimestamp"] = json!("2026-03-01T09:59:30Z");
        }
        seen.infrastructure = Some(Seen::Found(Referenced::of(value)));
        seen
    };
    let check = |finalizers: Value, deleting: bool, message: &str| {
        let (plan, status) = reported(&going(finalizers, deleting));
        super::check(
            &status,
            "Deleting",
            ("True", "WaitingForInfrastructureDeletion", message),
        );
        let asks = plan.actions.contains(&Action::DeleteExternal(External::Infrastructure));
        assert_eq!(asks, !deleting, "it is asked to go once");
        assert_eq!(plan.requeue, None);
    };
    let waits = "Waiting for AcmeCluster infra to be deleted";
    check(json!(["acme.io/hold"]), false, waits);
    check(json!(null), true, waits);
    check(
        json!(["acme.io/hold"]),
        true,
        &format!("{waits}, it is held by finalizer acme.io/hold"),
    );
    check(
        json!(["z.io/e", "b.io/b", "a.io/a", "c.io/c", "d.io/d"]),
        true,
        &format!("{waits}, it is held by finalizers a.io/a, b.io/b, c.io/c, ... (2 more)"),
    );
}

// CL-101: the external side may take its object away before it was ever ready.
#[test]
fn what_is_going_away_is_not_taken_over() {
    let mut seen = in_phase(referencing(), "Provisioning");
    let value = json!({
        "apiVersion": "acme.io/v1", "kind": "AcmeCluster",
        "metadata": {"name": "infra", "namespace": "ns", "uid": "uid-i", "finalizers": ["acme.io/hold"],
            "deletionTimestamp": "2026-03-01T09:59:30Z"},
        "spec": with_endpoint(), "status": done(),
    });
    seen.infrastructure = Some(Seen::Found(Referenced::of(value)));
    let (plan, status) = reported(&seen);
    assert!(plan.actions.is_empty(), "{:?}", plan.actions);
    assert_eq!(status.initialization, None);
    assert_eq!(status.phase.as_deref(), Some("Provisioning"));
}

// EX-013, EX-032, EX-054, EX-058: the annotation changes nothing here, wherever it is.
#[test]
fn the_annotation_makes_no_difference() {
    let annotated = |object: &Referenced, contract| {
        let mut value = object.value().clone();
        value["metadata"]["annotations"] = json!({"cluster.x-k8s.io/managed-by": ""});
        Seen::Found(Referenced::by(contract, value))
    };
    let managed = |object: &Referenced, contract| {
        let mut value = object.value().clone();
        value["metadata"].as_object_mut().unwrap().remove("annotations");
        Seen::Found(Referenced::by(contract, value))
    };
    for contract in [V1Beta1, V1Beta2] {
        for spec in [json!({}), with_endpoint()] {
            for status in [json!({}), json!({"ready": true}), done()] {
                for going in [false, true] {
                    let mut seen = looking_at(contract, spec.clone(), status.clone());
                    if going {
                        let deleted = super::from(json!("2026-03-01T09:59:00Z"));
                        std::sync::Arc::make_mut(&mut seen.cluster).metadata.deletion_timestamp = deleted;
                    }
                    let object = seen.infrastructure().unwrap().clone();
                    let (mut with, mut without) = (seen.clone(), seen.clone());
                    with.infrastructure = Some(annotated(&object, contract));
                    without.infrastructure = Some(managed(&object, contract));
                    let key = [("cluster.x-k8s.io/managed-by".to_owned(), "x".to_owned())];
                    std::sync::Arc::make_mut(&mut with.cluster).metadata.annotations = Some(key.into());
                    assert_eq!(reported(&with), reported(&without));
                }
            }
        }
    }
}

// The external system may be a controller itself. A Cluster with a topology manages the object as a whole: two controllers are one too
// many, and the Cluster says so.
#[test]
fn what_something_else_controls_is_refused_by_a_topology_alone() {
    let mut seen = in_phase(referencing(), "Provisioning");
    let value = |controller: bool| {
        json!({
            "apiVersion": "acme.io/v1", "kind": "AcmeCluster",
            "metadata": {"name": "infra", "namespace": "ns", "uid": "uid-i", "ownerReferences": [
                {"apiVersion": "tool.io/v1", "kind": "Network", "name": "n", "uid": "uid-n", "controller": controller}]},
            "spec": with_endpoint(), "status": done(),
        })
    };
    let found = |controller| Seen::Found(Referenced::of(value(controller)));
    let mut metadata = seen.cluster.metadata.clone();
    let read = unless_foreign(found(false), "Cluster", &metadata);
    assert!(read.found().is_some(), "other owners are welcome");
    let read = unless_taken(found(true), "Cluster", &metadata);
    assert!(
        read.found().is_some(),
        "a Cluster without a topology need not be the controller"
    );
    seen.infrastructure = Some(unless_foreign(found(true), "Cluster", &metadata));
    let (plan, status) = reported(&seen);
    assert!(plan.actions.is_empty());
    let condition = get(&status.conditions, "InfrastructureReady").unwrap();
    assert_eq!(
        (condition.status.as_str(), condition.reason.as_str()),
        ("Unknown", "InternalError")
    );
    assert!(
        condition.message.contains("controlled by Network n"),
        "{}",
        condition.message
    );
    metadata.deletion_timestamp = super::from(json!("2026-03-01T09:59:00Z"));
    assert!(unless_foreign(found(true), "Cluster", &metadata).is_not_found());
    assert!(unless_taken(found(true), "Cluster", &metadata).found().is_some());
}

// CL-049: owners of the same kind do not share an object, whether they are its controller or not.
#[test]
fn an_object_of_another_cluster_is_refused_without_a_controller() {
    let mut seen = in_phase(referencing(), "Provisioning");
    let value = json!({
        "apiVersion": "acme.io/v1", "kind": "AcmeCluster",
        "metadata": {"name": "infra", "namespace": "ns", "uid": "uid-i", "ownerReferences": [
            {"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "name": "other", "uid": "uid-o"}]},
        "spec": with_endpoint(), "status": done(),
    });
    let found = Seen::Found(Referenced::of(value));
    seen.infrastructure = Some(unless_taken(found, "Cluster", &seen.cluster.metadata));
    let (plan, status) = reported(&seen);
    assert!(plan.actions.is_empty(), "{:?}", plan.actions);
    let why = "AcmeCluster infra belongs to Cluster other: refer to another object";
    assert_eq!(get(&status.conditions, "InfrastructureReady").unwrap().message, why);
}

// The role follows the topology, and an old version in the reference is renewed.
#[test]
fn the_reference_of_the_owner_is_kept_in_its_present_form() {
    let owned = |topology: bool, version: &str, controller: Value| {
        let mut seen = in_phase(referencing(), "Provisioning");
        if topology {
            let topology = json!({"classRef": {"name": "class"}, "version": "v1.35.0"});
            std::sync::Arc::make_mut(&mut seen.cluster).spec.topology = super::from(topology);
        }
        seen.infrastructure = Some(Seen::Found(Referenced::of(json!({
            "apiVersion": "acme.io/v1", "kind": "AcmeCluster",
            "metadata": {"name": "infra", "namespace": "ns", "uid": "uid-i", "labels": {"cluster.x-k8s.io/cluster-name": "c"},
                "ownerReferences": [{"apiVersion": format!("cluster.x-k8s.io/{version}"), "kind": "Cluster", "name": "c",
                    "uid": "uid-c", "controller": controller}]},
        }))));
        !reported(&seen)
            .0
            .actions
            .contains(&Action::Own(External::Infrastructure))
    };
    assert!(owned(false, "v1beta2", Value::Null));
    assert!(owned(false, "v1beta2", json!(false)));
    assert!(!owned(false, "v1beta2", json!(true)));
    assert!(!owned(false, "v1beta1", Value::Null));
    assert!(owned(true, "v1beta2", json!(true)));
    assert!(!owned(true, "v1beta2", Value::Null));
}
