//! Cases for the plan and the status of Clusters, and for the order in which a Cluster goes.

mod external;
mod hook;

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use windlass_api::core::{Cluster, ClusterStatus, Machine, MachineDeployment, MachinePool};
use windlass_cluster_cache::{GracePeriods, Outage, Workload};
use windlass_conditions::get;
use windlass_controller_runtime::{Decision, Moment, Plan as _, Seen};
use windlass_pki::KeyMaterial;

use super::observe::{Credentials, Observed};
use super::plan::{Action, Descendant, External, Plan, plan};
use super::status::status;
use crate::shared::read::{Referenced, unless_taken};

fn now() -> Timestamp {
    "2026-03-01T10:00:00Z".parse().unwrap()
}

fn from<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn cluster(spec: Value) -> Observed {
    let cluster: Cluster = from(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": "c", "namespace": "ns", "uid": "uid-c", "generation": 1}, "spec": spec,
    }));
    Observed {
        cluster: Arc::new(cluster),
        class: None,
        infrastructure: None,
        control_plane: None,
        deployments: Vec::new(),
        pools: Vec::new(),
        sets: Vec::new(),
        control_plane_machines: Vec::new(),
        worker_machines: Vec::new(),
        credentials: None,
        probe: Workload::NotTried("no attempt was made yet".to_owned()),
        refused: None,
        before_delete: None,
    }
}

fn planned(seen: &Observed) -> Plan {
    match plan(seen) {
        Decision::Plan(plan) => plan,
        Decision::Ask(question) => panic!("it asks for {question:?}"),
    }
}

fn object(kind: &str, spec: Value, status: Value) -> Option<Seen<Referenced>> {
    Some(Seen::Found(Referenced::of(json!({
        "apiVersion": "x/v1beta2", "kind": kind,
        "metadata": {
            "name": "c-x", "namespace": "ns", "uid": format!("uid-{kind}"), "labels": {"cluster.x-k8s.io/cluster-name": "c"},
            "ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c", "uid": "uid-c"}],
        },
        "spec": spec, "status": status,
    }))))
}

fn referencing() -> Observed {
    cluster(json!({
        "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevCluster", "name": "c-x"},
        "controlPlaneRef": {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "c-x"},
    }))
}

fn in_phase(mut seen: Observed, phase: &str) -> Observed {
    Arc::make_mut(&mut seen.cluster).status = from(json!({"phase": phase}));
    seen
}

fn deployment(replicas: i32) -> Arc<MachineDeployment> {
    Arc::new(from(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment",
        "metadata": {"name": "c-md", "namespace": "ns", "uid": "uid-md",
            "ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c", "uid": "uid-c"}]},
        "spec": {"clusterName": "c", "replicas": replicas, "selector": {}, "template": {"spec": {"clusterName": "c", "bootstrap": {},
            "infrastructureRef": {"apiGroup": "g", "kind": "K", "name": "n"}}}},
        "status": {"replicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas, "upToDateReplicas": replicas,
            "versions": [{"version": "v1.35.0", "replicas": replicas}],
            "conditions": [
                {"type": "Available", "status": "True", "reason": "Available", "message": "", "lastTransitionTime": "2026-03-01T09:00:00Z"},
                {"type": "ScalingUp", "status": "True", "reason": "ScalingUp", "message": "Scaling up from 1 to 2 replicas", "lastTransitionTime": "2026-03-01T09:00:00Z"},
                {"type": "ScalingDown", "status": "False", "reason": "NotScalingDown", "message": "", "lastTransitionTime": "2026-03-01T09:00:00Z"},
                {"type": "RollingOut", "status": "False", "reason": "NotRollingOut", "message": "", "lastTransitionTime": "2026-03-01T09:00:00Z"}]},
    })))
}

fn reported(seen: &Observed) -> (Plan, ClusterStatus) {
    let plan = planned(seen);
    let status = status(seen, &plan, &Moment::at(now()));
    (plan, status)
}

fn at(time: &str) -> Timestamp {
    time.parse().unwrap()
}

/// The status, and the time at which it changes by itself.
fn status_at(seen: &Observed, now: Timestamp) -> (ClusterStatus, Option<Timestamp>) {
    let moment = Moment::at(now);
    let status = status(seen, &planned(seen), &moment);
    (status, moment.next_deadline())
}

fn check(status: &ClusterStatus, type_: &str, expect: (&str, &str, &str)) {
    let found = get(&status.conditions, type_).unwrap_or_else(|| panic!("{type_} is missing"));
    assert_eq!(
        (found.status.as_str(), found.reason.as_str(), found.message.as_str()),
        expect,
        "{type_}"
    );
}

// CL-087
#[test]
fn a_managed_topology_is_waited_for() {
    let (plan, status) = reported(&cluster(
        json!({"topology": {"classRef": {"name": "q"}, "version": "v1.35.0"}}),
    ));
    assert!(plan.actions.is_empty());
    assert_eq!(status.phase.as_deref(), Some("Pending"));
    check(
        &status,
        "InfrastructureReady",
        (
            "False",
            "ObjectDoesNotExist",
            "Waiting for cluster topology to be reconciled",
        ),
    );
    check(
        &status,
        "ControlPlaneInitialized",
        (
            "Unknown",
            "ObjectDoesNotExist",
            "Waiting for cluster topology to be reconciled",
        ),
    );
    check(&status, "WorkersAvailable", ("True", "NoWorkers", ""));
}

#[test]
fn the_endpoint_is_taken_over_when_the_infrastructure_is_provisioned() {
    let mut seen = in_phase(referencing(), "Provisioning");
    let endpoint = json!({"controlPlaneEndpoint": {"host": "127.0.0.1", "port": 20000}});
    seen.infrastructure = object("DevCluster", endpoint.clone(), json!({}));
    assert!(reported(&seen).0.actions.is_empty(), "not before it says so");
    seen.infrastructure = object("DevCluster", endpoint, json!({"initialization": {"provisioned": true}}));
    seen.control_plane = Some(Seen::NotFound);
    let (plan, status) = reported(&seen);
    assert!(
        matches!(&plan.actions[0], Action::SetEndpoint(endpoint) if endpoint.port == Some(20000)),
        "{:?}",
        plan.actions
    );
    assert_eq!(status.phase.as_deref(), Some("Provisioned"));
    check(&status, "InfrastructureReady", ("True", "Ready", ""));
    check(
        &status,
        "ControlPlaneInitialized",
        ("Unknown", "ObjectDoesNotExist", "KubeadmControlPlane does not exist"),
    );
    check(
        &status,
        "ControlPlaneAvailable",
        ("False", "ObjectDoesNotExist", "KubeadmControlPlane does not exist"),
    );
    // Gone before the Cluster, which is being deleted.
    Arc::make_mut(&mut seen.cluster).metadata.deletion_timestamp = from(json!("2026-03-01T09:59:00Z"));
    Arc::make_mut(&mut seen.cluster).status = from(json!({"initialization": {"infrastructureProvisioned": true}}));
    seen.infrastructure = Some(Seen::NotFound);
    let status = reported(&seen).1;
    let gone = ("False", "ObjectDeleted", "DevCluster has been deleted");
    check(&status, "InfrastructureReady", gone);
}

#[test]
fn provisioned_once_stays_so() {
    let mut seen = referencing();
    Arc::make_mut(&mut seen.cluster).status =
        from(json!({"initialization": {"infrastructureProvisioned": true, "controlPlaneInitialized": true}}));
    seen.infrastructure = Some(Seen::NotFound);
    seen.control_plane = object("KubeadmControlPlane", json!({}), json!({}));
    let (_, status) = reported(&seen);
    assert_eq!(
        status.initialization.as_ref().unwrap().infrastructure_provisioned,
        Some(true)
    );
    check(
        &status,
        "InfrastructureReady",
        (
            "False",
            "ObjectDeleted",
            "DevCluster has been deleted while the cluster still exists",
        ),
    );
    check(&status, "ControlPlaneInitialized", ("True", "Initialized", ""));
}

#[test]
fn workers_are_added_up_and_what_is_under_way_is_gathered() {
    let mut seen = referencing();
    seen.deployments = vec![deployment(2), deployment(3)];
    let (_, status) = reported(&seen);
    let workers = status.workers.clone().unwrap();
    assert_eq!(
        (workers.desired_replicas, workers.available_replicas),
        (Some(5), Some(5))
    );
    assert_eq!(workers.versions.len(), 1);
    assert_eq!(workers.versions[0].replicas, Some(5));
    check(&status, "WorkersAvailable", ("True", "Available", ""));
    check(&status, "RollingOut", ("False", "NotRollingOut", ""));
    let scaling = get(&status.conditions, "ScalingUp").unwrap();
    assert_eq!(
        (scaling.status.as_str(), scaling.reason.as_str()),
        ("True", "ScalingUp")
    );
}

#[test]
fn a_silent_cluster_is_reported_after_the_grace_period() {
    let mut seen = referencing();
    seen.probe = down(Some("2026-03-01T09:59:30Z"));
    let (status, deadline) = status_at(&seen, now());
    check(&status, "RemoteConnectionProbe", ("True", "ProbeSucceeded", ""));
    let due = at("2026-03-01T10:00:20Z");
    assert_eq!(deadline, Some(due));
    let message = "Remote connection probe failed, probe last succeeded at 2026-03-01T09:59:30Z";
    let (status, deadline) = status_at(&seen, due);
    check(&status, "RemoteConnectionProbe", ("False", "ProbeFailed", message));
    assert_eq!(deadline, None);
    if let Workload::Down(outage) = &mut seen.probe {
        outage.grace.connection = SignedDuration::from_mins(2);
    }
    let (status, deadline) = status_at(&seen, due);
    check(&status, "RemoteConnectionProbe", ("True", "ProbeSucceeded", ""));
    assert_eq!(deadline, Some(at("2026-03-01T10:01:30Z")));
}

fn down(last_success: Option<&str>) -> Workload<()> {
    Workload::Down(Outage {
        since: at("2026-03-01T09:59:40Z"),
        last_success: last_success.map(at),
        why: "connection refused".to_owned(),
        grace: GracePeriods::default(),
    })
}

#[test]
fn a_refused_server_is_reported_at_once() {
    let mut seen = referencing();
    let why = "the API server sent an event of more than 16 MiB";
    seen.refused = Some(why.to_owned());
    for probe in [Workload::Up(()), down(Some("2026-03-01T09:59:59Z")), down(None)] {
        seen.probe = probe;
        let (status, _) = status_at(&seen, now());
        check(&status, "RemoteConnectionProbe", ("False", "ProbeFailed", why));
    }
}

#[test]
fn after_a_restart_a_good_probe_stands_until_the_outage_is_known() {
    let missing = ("False", "ProbeFailed", "Remote connection not established yet");
    let mut seen = referencing();
    check(&reported(&seen).1, "RemoteConnectionProbe", missing);
    seen.probe = Workload::Up(());
    let (_, before) = reported(&seen);
    Arc::make_mut(&mut seen.cluster).status = Some(before);
    seen.probe = Workload::NotTried("no attempt was made yet".to_owned());
    let (plan, status) = reported(&seen);
    check(&status, "RemoteConnectionProbe", ("True", "ProbeSucceeded", ""));
    assert!(plan.requeue.is_some(), "no event says that an attempt has failed");
    seen.probe = down(None);
    let (status, deadline) = status_at(&seen, now());
    check(&status, "RemoteConnectionProbe", ("True", "ProbeSucceeded", ""));
    let due = at("2026-03-01T10:00:30Z");
    assert_eq!((reported(&seen).0.requeue, deadline), (None, Some(due)));
    check(&status_at(&seen, due).0, "RemoteConnectionProbe", missing);
}

#[test]
fn after_a_restart_the_words_of_an_outage_stand_until_there_is_a_connection() {
    let mut seen = referencing();
    seen.probe = down(Some("2026-03-01T09:59:30Z"));
    let (before, _) = status_at(&seen, at("2026-03-01T10:10:00Z"));
    let message = "Remote connection probe failed, probe last succeeded at 2026-03-01T09:59:30Z";
    check(&before, "RemoteConnectionProbe", ("False", "ProbeFailed", message));
    Arc::make_mut(&mut seen.cluster).status = Some(before);
    for probe in [Workload::NotTried("no attempt was made yet".to_owned()), down(None)] {
        seen.probe = probe;
        let (status, _) = status_at(&seen, at("2026-03-01T10:20:00Z"));
        check(&status, "RemoteConnectionProbe", ("False", "ProbeFailed", message));
    }
    seen.probe = Workload::Up(());
    check(
        &reported(&seen).1,
        "RemoteConnectionProbe",
        ("True", "ProbeSucceeded", ""),
    );
}

#[test]
fn a_machine_that_is_not_compared_in_time_counts_as_unknown() {
    let mut seen = referencing();
    let machine = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": {"name": "m", "namespace": "ns", "creationTimestamp": "2026-03-01T09:59:55Z"},
        "spec": {"clusterName": "c", "bootstrap": {}, "infrastructureRef": {"apiGroup": "g", "kind": "K", "name": "n"}}});
    seen.worker_machines = vec![Arc::new(from(machine))];
    let (status, deadline) = status_at(&seen, now());
    check(&status, "WorkerMachinesUpToDate", ("True", "NoReplicas", ""));
    let due = at("2026-03-01T10:00:05Z");
    assert_eq!(deadline, Some(due));
    let (status, deadline) = status_at(&seen, due);
    let message = "* Machine m: Condition UpToDate not yet reported";
    check(
        &status,
        "WorkerMachinesUpToDate",
        ("Unknown", "UpToDateUnknown", message),
    );
    assert_eq!(deadline, None);
}

#[test]
fn a_control_plane_that_cannot_be_read_keeps_its_numbers() {
    let mut seen = referencing();
    let numbers = json!({"controlPlane": {"desiredReplicas": 3, "replicas": 3, "readyReplicas": 2}});
    Arc::make_mut(&mut seen.cluster).status = from(numbers.clone());
    seen.control_plane = Some(Seen::Failed("timeout".to_owned()));
    let kept = serde_json::to_value(reported(&seen).1).unwrap();
    assert_eq!(kept["controlPlane"], numbers["controlPlane"]);
    seen.control_plane = Some(Seen::NotFound);
    assert_eq!(reported(&seen).1.control_plane, None);
    // One without numbers: nothing is applied, as the topology controller owns the rest of the object.
    seen.control_plane = object("HostedControlPlane", json!({}), json!({}));
    assert_eq!(reported(&seen).1.control_plane, None);
}

#[test]
fn a_control_plane_that_cannot_be_read_is_not_reported_as_deleted() {
    let mut seen = referencing();
    Arc::make_mut(&mut seen.cluster).metadata.deletion_timestamp = from(json!("2026-03-01T09:59:00Z"));
    let reason = |seen: &Observed| {
        let conditions = reported(seen).1.deprecated.unwrap().v1beta1.unwrap().conditions;
        let found = conditions.into_iter().find(|old| old.type_ == "ControlPlaneReady");
        found.unwrap().reason
    };
    seen.control_plane = Some(Seen::Failed("timeout".to_owned()));
    assert_eq!(reason(&seen).as_deref(), Some("WaitingForControlPlane"));
    seen.control_plane = Some(Seen::NotFound);
    assert_eq!(reason(&seen).as_deref(), Some("Deleted"));
}

#[test]
fn a_cluster_goes_workers_first_infrastructure_last() {
    let mut seen = in_phase(referencing(), "Deleting");
    Arc::make_mut(&mut seen.cluster).metadata.deletion_timestamp = from(json!("2026-03-01T09:59:00Z"));
    let machine: Machine = from(
        json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": {"name": "m", "namespace": "ns",
            "ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineSet", "name": "s", "uid": "uid-s", "controller": true}]},
        "spec": {"clusterName": "c", "bootstrap": {}, "infrastructureRef": {"apiGroup": "g", "kind": "K", "name": "n"}}}),
    );
    seen.deployments = vec![deployment(1)];
    seen.worker_machines = vec![Arc::new(machine)];
    let pool: MachinePool = from(json!({
        "metadata": {"name": "mp", "namespace": "ns", "ownerReferences": [
            {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c", "uid": "uid-c"}]},
        "spec": {"clusterName": "c", "template": {"spec": {
            "clusterName": "c", "bootstrap": {}, "infrastructureRef": {"apiGroup": "g", "kind": "K", "name": "n"}}}},
    }));
    let pool = Arc::new(pool);
    seen.pools = vec![pool.clone()];
    seen.infrastructure = object("DevCluster", json!({}), json!({}));
    seen.control_plane = object("KubeadmControlPlane", json!({}), json!({}));
    let mut lost = seen.clone();
    Arc::make_mut(&mut lost.worker_machines[0]).metadata.owner_references = None;
    let is_machine = |action: &Action| matches!(action, Action::Delete(Descendant::Machine(_)));
    assert!(planned(&lost).actions.iter().any(is_machine), "nothing else deletes it");
    let (workers, status) = reported(&seen);
    assert_eq!(
        workers.actions,
        [
            Action::Delete(Descendant::Deployment(deployment(1))),
            Action::Delete(Descendant::Pool(pool))
        ]
    );
    check(
        &status,
        "Deleting",
        (
            "True",
            "WaitingForWorkersDeletion",
            "* MachineDeployments: c-md\n* MachinePools: mp\n* Worker Machines: m",
        ),
    );

    seen.deployments.clear();
    seen.pools.clear();
    seen.worker_machines.clear();
    let (control_plane, _) = reported(&seen);
    assert_eq!(control_plane.actions, [Action::DeleteExternal(External::ControlPlane)]);

    seen.control_plane = Some(Seen::NotFound);
    assert_eq!(
        reported(&seen).0.actions,
        [Action::DeleteExternal(External::Infrastructure)]
    );

    seen.infrastructure = Some(Seen::NotFound);
    let (last, status) = reported(&seen);
    assert!(last.actions.contains(&Action::RemoveFinalizer));
    check(&status, "Deleting", ("True", "DeletionCompleted", "Deletion completed"));
}

#[test]
fn a_kubeconfig_is_made_once_from_the_authority() {
    let endpoint = json!({"controlPlaneEndpoint": {"host": "fd00::1", "port": 6443}});
    let material = |key: &str| {
        let (crt, key) = ("certificate".to_owned(), key.to_owned());
        Seen::Found(KeyMaterial { crt, key })
    };
    let check = |spec: &Value, kubeconfig: bool, authority: Seen<KeyMaterial>, expect: Option<&str>, note: &str| {
        let mut seen = cluster(spec.clone());
        seen.credentials = Some(Credentials { kubeconfig, authority });
        let (plan, _) = reported(&seen);
        let expect: Vec<Action> = expect
            .map(|server| Action::WriteKubeconfig(server.to_owned()))
            .into_iter()
            .collect();
        assert_eq!(plan.actions, expect);
        let said = plan.notes.iter().any(|one| one.message.contains("c-kubeconfig"));
        assert_eq!(said, !note.is_empty());
        assert!(
            plan.notes.iter().any(|one| one.message.contains(note)) || note.is_empty(),
            "{:?}",
            plan.notes
        );
    };
    check(&endpoint, false, material("key"), Some("https://[fd00::1]:6443"), "");
    check(&endpoint, true, material("key"), None, "");
    check(&endpoint, false, Seen::NotFound, None, "it waits for Secret c-ca");
    check(&endpoint, false, material(""), None, "Secret c-ca has no private key");
    check(&endpoint, false, Seen::Failed("no PEM".to_owned()), None, "no PEM");
    check(&json!({}), false, material("key"), None, "");
    let mut going = cluster(endpoint);
    Arc::make_mut(&mut going.cluster).metadata.deletion_timestamp = from(json!("2026-03-01T09:59:00Z"));
    going.credentials = Some(Credentials {
        kubeconfig: false,
        authority: material("key"),
    });
    assert_eq!(reported(&going).0.actions, [Action::RemoveFinalizer]);
}

#[test]
fn a_settled_cluster_plans_nothing_and_its_status_rests() {
    let mut seen = referencing();
    seen.infrastructure = object("DevCluster", json!({}), json!({}));
    let (_, first) = reported(&seen);
    Arc::make_mut(&mut seen.cluster).status = Some(first.clone());
    let (plan, second) = reported(&seen);
    assert!(plan.actions.is_empty(), "{:?}", plan.actions);
    assert_eq!(second, first);
}

#[test]
fn phases_that_are_written_at_once_are_announced_once() {
    let check = |seen: &Observed, expect: Option<&'static str>| {
        let (plan, _) = reported(seen);
        let reported = plan.notes.iter().find_map(|note| match &note.event {
            Some(event) if note.message.contains(" is ") && !note.message.contains("now") => Some(event.reason),
            _ => None,
        });
        assert_eq!(reported, expect, "{:?}", plan.notes);
    };
    check(&cluster(json!({})), None);
    check(&referencing(), None);
    let mut seen = in_phase(referencing(), "Provisioning");
    let endpoint = json!({"controlPlaneEndpoint": {"host": "127.0.0.1", "port": 20000}});
    seen.infrastructure = object("DevCluster", endpoint, json!({"initialization": {"provisioned": true}}));
    check(&seen, Some("Provisioned"));
    check(&in_phase(seen.clone(), "Provisioned"), None);
    Arc::make_mut(&mut seen.cluster).metadata.deletion_timestamp = from(json!("2026-03-01T09:59:00Z"));
    check(&seen, Some("Deleting"));
}

// CL-049
#[test]
fn what_another_cluster_controls_is_neither_taken_nor_deleted() {
    let mut seen = referencing();
    let found = || object("DevCluster", json!({}), json!({})).unwrap();
    assert!(
        unless_taken(found(), "Cluster", &seen.cluster.metadata)
            .found()
            .is_some()
    );
    let other = Arc::make_mut(&mut seen.cluster);
    other.metadata.name = Some("d".to_owned());
    let Seen::Failed(why) = unless_taken(found(), "Cluster", &other.metadata) else {
        panic!("it was taken")
    };
    assert_eq!(why, "DevCluster c-x belongs to Cluster c: refer to another object");
    other.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now()));
    assert!(unless_taken(found(), "Cluster", &other.metadata).is_not_found());
}

#[test]
fn what_cannot_be_read_is_read_again() {
    let mut seen = referencing();
    seen.infrastructure = Some(Seen::Failed("not synced".to_owned()));
    seen.control_plane = Some(Seen::NotFound);
    let again = Some(Duration::from_secs(10));
    assert_eq!(planned(&seen).requeue, again);
    Arc::make_mut(&mut seen.cluster).metadata.deletion_timestamp = from(json!("2026-03-01T09:59:00Z"));
    assert_eq!(
        planned(&seen).requeue,
        again,
        "no event comes about an object that is gone"
    );
    seen.infrastructure = Some(Seen::NotFound);
    assert_eq!(planned(&seen).requeue, None);
}
