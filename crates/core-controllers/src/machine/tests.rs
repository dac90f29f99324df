//! Cases for the plan and the status of Machines.

mod deletion;
mod in_place;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_api::core::{Machine, MachineStatus};
use windlass_api::k8s::Node;
use windlass_cluster_cache::{GracePeriods, Outage, Workload};
use windlass_conditions::get;
use windlass_controller_runtime::{Decision, Moment, Note, Seen};

use super::apply::Done;
use super::drain::rules::Rules;
use super::observe::{Observed, Remote};
use super::plan::{Action, External, Plan, plan};
use super::status::status;
use crate::shared::read::Referenced;

fn now() -> Timestamp {
    "2026-03-01T10:00:00Z".parse().unwrap()
}

fn from<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn machine() -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": {
            "name": "m", "namespace": "ns", "uid": "uid-m", "generation": 2, "labels": {"cluster.x-k8s.io/cluster-name": "c"},
            "creationTimestamp": "2026-03-01T09:00:00Z",
            "ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineSet", "name": "set", "uid": "uid-s", "controller": true}],
        },
        "spec": {
            "clusterName": "c", "version": "v1.35.0",
            "bootstrap": {"configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": "m"}},
            "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": "m"},
        },
    })
}

fn external(kind: &str, status: Value) -> Value {
    json!({
        "apiVersion": "x/v1beta2", "kind": kind,
        "metadata": {
            "name": "m", "namespace": "ns", "uid": format!("uid-{kind}"),
            "labels": {"cluster.x-k8s.io/cluster-name": "c"},
            "ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": "m", "uid": "uid-m", "controller": true}],
        },
        "status": status,
    })
}

fn cluster() -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "c", "namespace": "ns", "uid": "uid-c"},
        "spec": {},
        "status": {
            "initialization": {"infrastructureProvisioned": true, "controlPlaneInitialized": true},
            "conditions": [{"type": "ControlPlaneInitialized", "status": "True", "reason": "Initialized", "message": "", "lastTransitionTime": "2026-03-01T09:00:00Z"}],
        },
    })
}

fn node() -> Node {
    from(json!({
        "metadata": {"name": "node-m", "resourceVersion": "5"},
        "spec": {"providerID": "in-memory://m", "taints": [{"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule"}]},
        "status": {
            "nodeInfo": {"architecture": "", "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "", "kubeProxyVersion": "",
                "kubeletVersion": "v1.35.0", "machineID": "", "operatingSystem": "", "osImage": "", "systemUUID": ""},
            "conditions": [
                {"type": "Ready", "status": "True"}, {"type": "MemoryPressure", "status": "False"},
                {"type": "DiskPressure", "status": "False"}, {"type": "PIDPressure", "status": "False"},
            ],
        },
    }))
}

/// A worker whose providers have reported nothing yet.
fn pending() -> Observed {
    Observed {
        machine: Arc::new(from(machine())),
        cluster: Seen::Found(Arc::new(from(cluster()))),
        bootstrap: Some(Seen::Found(Referenced::of(external("KubeadmConfig", json!({}))))),
        infrastructure: Seen::Found(Referenced::of(external("DevMachine", json!({})))),
        control_plane: Seen::NotFound,
        control_plane_machines: Vec::new(),
        machine_set: None,
        machine_deployment: None,
        drain_rules: Ok(Rules::default()),
        remote: Workload::Up(Remote::default()),
        sync: Arc::default(),
        update: None,
    }
}

/// The workload cluster's side, to be changed.
fn remote(seen: &mut Observed) -> &mut Remote {
    match &mut seen.remote {
        Workload::Up(remote) => remote,
        other => panic!("{other:?}"),
    }
}

fn at(time: &str) -> Timestamp {
    time.parse().unwrap()
}

/// A workload cluster that does not answer.
fn down(since: &str, last_success: Option<&str>) -> Workload<Remote> {
    Workload::Down(Outage {
        since: at(since),
        last_success: last_success.map(at),
        why: "connection refused".to_owned(),
        grace: GracePeriods::default(),
    })
}

/// The same one when everything runs.
fn running() -> Observed {
    let mut seen = pending();
    let bootstrap = external(
        "KubeadmConfig",
        json!({"dataSecretName": "m", "initialization": {"dataSecretCreated": true},
        "conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-03-01T09:00:00Z"}]}),
    );
    let mut infrastructure = external(
        "DevMachine",
        json!({"initialization": {"provisioned": true}, "failureDomain": "a",
        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}),
    );
    infrastructure["spec"] = json!({"providerID": "in-memory://m"});
    seen.bootstrap = Some(Seen::Found(Referenced::of(bootstrap)));
    seen.infrastructure = Seen::Found(Referenced::of(infrastructure));
    remote(&mut seen).node = Some(Arc::new(node()));
    let mut machine = machine();
    machine["spec"]["providerID"] = json!("in-memory://m");
    machine["spec"]["bootstrap"]["dataSecretName"] = json!("m");
    machine["status"] = json!({"nodeRef": {"name": "node-m"}});
    seen.machine = Arc::new(from(machine));
    seen
}

fn change(seen: &mut Observed, edit: impl FnOnce(&mut Machine)) {
    edit(Arc::make_mut(&mut seen.machine));
}

fn deleting(seen: &mut Observed) {
    change(seen, |machine| {
        machine.metadata.deletion_timestamp = Some(from(json!("2026-03-01T09:59:00Z")));
    });
    let other: Machine = from(json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": {"name": "cp", "namespace": "ns"}, "spec": machine()["spec"]}));
    seen.control_plane_machines = vec![Arc::new(other)];
    remote(seen).pods = Seen::Found(Vec::new());
    remote(seen).attachments = Seen::Found(Vec::new());
}

fn planned(seen: &Observed, moment: &Moment) -> Plan {
    match plan(seen, moment) {
        Decision::Plan(plan) => plan,
        Decision::Ask(question) => panic!("it asks for {question:?}"),
    }
}

fn reported(seen: &Observed) -> (Plan, MachineStatus) {
    let (plan, status, _) = reported_at(seen, now());
    (plan, status)
}

/// The plan, the status, and the time at which one of them changes by itself.
fn reported_at(seen: &Observed, now: Timestamp) -> (Plan, MachineStatus, Option<Timestamp>) {
    let moment = Moment::at(now);
    let plan = planned(seen, &moment);
    let status = status(seen, &plan.after(&Done::default()), &moment);
    (plan, status, moment.next_deadline())
}

fn check_condition(status: &MachineStatus, type_: &str, expect: (&str, &str, &str)) {
    let found = get(&status.conditions, type_).unwrap_or_else(|| panic!("{type_} is missing"));
    assert_eq!(
        (found.status.as_str(), found.reason.as_str(), found.message.as_str()),
        expect,
        "{type_}"
    );
}

/// The failure that a status of the previous API generation reports.
fn failure_of(seen: &Observed) -> (Option<String>, Option<String>) {
    let status = reported(seen).1;
    let old = status.deprecated.and_then(|old| old.v1beta1).unwrap();
    (old.failure_reason, old.failure_message)
}

#[test]
fn failures_of_the_previous_api_generation_are_reported_and_outlast_an_outage() {
    let mut seen = running();
    assert_eq!(failure_of(&seen), (None, None));
    let broken = external(
        "DevMachine",
        json!({"initialization": {"provisioned": true}, "failureReason": "CreateError", "failureMessage": "no quota"}),
    );
    seen.infrastructure = Seen::Found(Referenced::of(broken));
    let (reason, message) = failure_of(&seen);
    assert_eq!(reason.as_deref(), Some("CreateError"));
    assert_eq!(
        message.as_deref(),
        Some("Failure detected from referenced resource x/v1beta2, Kind=DevMachine with name \"m\": no quota")
    );
    let (_, status) = reported(&seen);
    change(&mut seen, |machine| machine.status = Some(status));
    seen.infrastructure = Seen::Failed("timeout".to_owned());
    assert_eq!(failure_of(&seen), (reason, message), "cannot tell is not gone");
    change(&mut seen, |machine| {
        let done = json!({"infrastructureProvisioned": true});
        machine.status.get_or_insert_default().initialization = Some(from(done));
    });
    seen.infrastructure = Seen::NotFound;
    let (reason, message) = failure_of(&seen);
    assert_eq!(reason.as_deref(), Some("InvalidConfiguration"));
    assert_eq!(
        message.as_deref(),
        Some("Machine infrastructure resource DevMachine ns/m has been deleted after provisioning was completed")
    );
}

#[test]
fn a_new_machine_says_what_it_waits_for() {
    let (plan, status) = reported(&pending());
    assert!(plan.actions.is_empty(), "{:?}", plan.actions);
    assert_eq!(status.phase.as_deref(), Some("Pending"));
    check_condition(
        &status,
        "Ready",
        (
            "False",
            "NotReady",
            "* BootstrapConfigReady: KubeadmConfig status.initialization.dataSecretCreated is false\n* InfrastructureReady: DevMachine status.initialization.provisioned is false\n* NodeHealthy: Waiting for DevMachine to report spec.providerID",
        ),
    );
    check_condition(&status, "Available", ("False", "NotReady", ""));
    check_condition(&status, "Deleting", ("False", "NotDeleting", ""));
    assert!(status.initialization.is_none());
}

#[test]
fn a_running_machine_is_ready_and_names_its_node() {
    let (_, status) = reported(&running());
    assert_eq!(status.phase.as_deref(), Some("Running"));
    assert_eq!(status.node_ref.as_ref().map(|node| node.name.as_str()), Some("node-m"));
    assert_eq!(status.failure_domain.as_deref(), Some("a"));
    assert_eq!(status.addresses.len(), 1);
    check_condition(&status, "Ready", ("True", "Ready", ""));
    check_condition(&status, "Available", ("True", "Available", ""));
    check_condition(&status, "NodeHealthy", ("True", "NodeHealthy", ""));
    let legacy = status.deprecated.unwrap().v1beta1.unwrap().conditions;
    let names: Vec<&str> = legacy.iter().map(|condition| condition.type_.as_str()).collect();
    assert_eq!(names, ["Ready", "BootstrapReady", "InfrastructureReady", "NodeHealthy"]);
    assert!(legacy.iter().all(|condition| condition.status == "True"));
}

#[test]
fn the_old_infrastructure_condition_keeps_the_providers_own_reason() {
    let check = |conditions: Value, expect: (&str, Option<&str>)| {
        let mut seen = running();
        let report = json!({"initialization": {"provisioned": true}, "conditions": conditions});
        seen.infrastructure = Seen::Found(Referenced::of(external("DevMachine", report)));
        let (_, status) = reported(&seen);
        let legacy = status.deprecated.unwrap().v1beta1.unwrap().conditions;
        let found = legacy.iter().find(|old| old.type_ == "InfrastructureReady").unwrap();
        assert_eq!((found.status.as_str(), found.reason.as_deref()), expect);
    };
    let ready = |status: &str, reason: &str| json!([{"type": "Ready", "status": status, "reason": reason, "message": "", "lastTransitionTime": "2026-03-01T09:00:00Z"}]);
    check(json!([]), ("True", None));
    check(ready("True", "Fine"), ("True", Some("Fine")));
    check(ready("False", "NotReady"), ("False", Some("NotReady")));
}

#[test]
fn the_old_condition_says_how_far_a_remediation_is() {
    let check = |is_control_plane: bool, have: (&str, &str, &str), expect: (&str, Option<&str>, Option<&str>)| {
        let mut seen = running();
        change(&mut seen, |machine| {
            let labels = machine.metadata.labels.get_or_insert_default();
            if is_control_plane {
                labels.insert("cluster.x-k8s.io/control-plane".to_owned(), String::new());
            }
            let (status, reason, message) = have;
            let condition = serde_json::from_value(json!({
                "type": "OwnerRemediated", "status": status, "reason": reason, "message": message,
                "lastTransitionTime": "2026-03-01T09:00:00Z",
            }));
            let status = machine.status.get_or_insert_default();
            status.conditions.push(condition.unwrap());
        });
        let (_, status) = reported(&seen);
        let legacy = status.deprecated.unwrap().v1beta1.unwrap().conditions;
        let found = legacy.iter().find(|old| old.type_ == "OwnerRemediated").unwrap();
        let found = (
            found.status.as_str(),
            found.severity.as_deref(),
            found.reason.as_deref(),
        );
        assert_eq!(found, expect, "{have:?}");
        let ready = legacy.iter().find(|old| old.type_ == "Ready").unwrap();
        assert_eq!(ready.status, expect.0, "{have:?}");
    };
    let waiting = ("False", Some("Warning"), Some("WaitingForRemediation"));
    for is_control_plane in [false, true] {
        check(
            is_control_plane,
            ("False", "WaitingForRemediation", "Waiting for remediation"),
            waiting,
        );
        check(is_control_plane, ("False", "RemediationDeferred", "too many"), waiting);
        check(is_control_plane, ("False", "CannotBeRemediated", "quorum"), waiting);
        let failed = ("False", Some("Error"), Some("RemediationFailed"));
        check(is_control_plane, ("False", "InternalError", "no"), failed);
        check(is_control_plane, ("True", "Done", ""), ("True", None, None));
    }
    check(
        false,
        ("False", "MachineDeleting", "Machine is deleting"),
        ("True", None, None),
    );
    let under_way = ("False", Some("Warning"), Some("RemediationInProgress"));
    check(true, ("False", "MachineDeleting", "Machine is deleting"), under_way);
    let legacy = reported(&running()).1.deprecated.unwrap().v1beta1.unwrap().conditions;
    assert!(legacy.iter().all(|old| old.type_ != "OwnerRemediated"));
}

#[test]
fn the_old_conditions_of_pods_and_members_have_their_own_reasons() {
    let check = |type_: &str, reason: &str, expect: (&str, &str)| {
        let mut seen = running();
        change(&mut seen, |machine| {
            let condition = serde_json::from_value(json!({
                "type": type_, "status": "False", "reason": reason, "message": "words", "lastTransitionTime": "2026-03-01T09:00:00Z",
            }));
            let status = machine.status.get_or_insert_default();
            status.conditions.push(condition.unwrap());
        });
        let (_, status) = reported(&seen);
        let legacy = status.deprecated.unwrap().v1beta1.unwrap().conditions;
        let found = legacy.into_iter().find(|old| old.type_ == type_).unwrap();
        assert_eq!(found.status, "False");
        let found = (found.severity.unwrap(), found.reason.unwrap());
        assert_eq!((found.0.as_str(), found.1.as_str()), expect, "{type_} {reason}");
    };
    for pod in ["APIServerPodHealthy", "EtcdPodHealthy"] {
        check(pod, "Deleting", ("Info", "Deleting"));
        check(pod, "Provisioning", ("Info", "PodProvisioning"));
        check(pod, "DoesNotExist", ("Error", "PodMissing"));
        check(pod, "Failed", ("Error", "PodFailed"));
    }
    check("EtcdMemberHealthy", "Deleting", ("Info", "Deleting"));
    check("EtcdMemberHealthy", "NotHealthy", ("Error", "EtcdMemberUnhealthy"));
}

#[test]
fn what_providers_report_is_taken_over_once() {
    let mut seen = running();
    change(&mut seen, |machine| {
        machine.spec.provider_id = None;
        machine.spec.bootstrap.data_secret_name = None;
    });
    let (plan, _) = reported(&seen);
    let taken = json!({"bootstrap": {"dataSecretName": "m"}, "providerID": "in-memory://m"});
    assert!(plan.actions.contains(&Action::TakeOver(taken)), "{:?}", plan.actions);
    let (settled, _) = reported(&running());
    assert!(
        !settled
            .actions
            .iter()
            .any(|action| matches!(action, Action::TakeOver(_)))
    );
}

#[test]
fn a_node_gets_annotations_and_loses_the_uninitialized_taint() {
    let (plan, _) = reported(&running());
    let Some(Action::PatchNode { patch, .. }) = plan.actions.first() else {
        panic!("{:?}", plan.actions)
    };
    assert_eq!(patch["metadata"]["annotations"]["cluster.x-k8s.io/machine"], "m");
    assert_eq!(
        patch["metadata"]["annotations"]["cluster.x-k8s.io/owner-kind"],
        "MachineSet"
    );
    assert_eq!(patch["spec"]["taints"], json!([]));
    assert_eq!(patch["metadata"]["resourceVersion"], "5");
}

#[test]
fn an_object_without_owner_is_adopted() {
    let mut seen = pending();
    let mut config = external("KubeadmConfig", json!({}));
    config["metadata"]["ownerReferences"] = json!([]);
    seen.bootstrap = Some(Seen::Found(Referenced::of(config)));
    assert_eq!(reported(&seen).0.actions, [Action::Own(External::Bootstrap)]);
}

/// What a Machine with these labels and owners is given: nothing, the label, or the label with its Cluster as the owner.
fn joins(labels: Value, owners: Value, cluster: bool) -> Option<bool> {
    let mut seen = pending();
    change(&mut seen, |machine| {
        machine.metadata.labels = from(labels);
        machine.metadata.owner_references = from(owners);
    });
    if !cluster {
        seen.cluster = Seen::NotFound;
    }
    let (plan, _) = reported(&seen);
    plan.actions.iter().find_map(|action| match action {
        Action::Join(owner) => Some(
            owner
                .as_ref()
                .is_some_and(|owner| owner.uid == "uid-c" && owner.controller.is_none()),
        ),
        _ => None,
    })
}

#[test]
fn a_machine_that_nothing_controls_belongs_to_its_cluster() {
    let named = |key: &str, value: &str| json!({ (key): value, "cluster.x-k8s.io/cluster-name": "c" });
    let member = || json!({"cluster.x-k8s.io/cluster-name": "c"});
    let owner = |version: &str, kind: &str, name: &str, uid: &str, controller: bool| json!({"apiVersion": format!("cluster.x-k8s.io/{version}"), "kind": kind, "name": name, "uid": uid, "controller": controller});
    let of_cluster = || owner("v1beta2", "Cluster", "c", "uid-c", false);
    let of_set = || owner("v1beta2", "MachineSet", "s", "uid-s", true);
    assert_eq!(joins(json!({}), json!([]), true), Some(true));
    assert_eq!(joins(member(), json!([]), true), Some(true));
    assert_eq!(joins(member(), json!([of_cluster()]), true), None);
    assert_eq!(
        joins(json!({}), json!([of_set()]), true),
        Some(false),
        "the label is for all"
    );
    assert_eq!(
        joins(json!({"cluster.x-k8s.io/cluster-name": "old"}), json!([of_set()]), true),
        Some(false)
    );
    assert_eq!(joins(json!({}), json!([]), false), Some(false), "there is no owner yet");
    // Those that a MachineSet, MachinePool or control plane made are adopted again by that, not by the Cluster.
    for key in ["set-name", "pool-name", "control-plane-name"] {
        assert_eq!(
            joins(named(&format!("cluster.x-k8s.io/{key}"), "x"), json!([]), true),
            None
        );
    }
    // A restored Cluster has another uid, and a reference may have an old version.
    assert_eq!(
        joins(member(), json!([owner("v1beta2", "Cluster", "c", "old", false)]), true),
        Some(true)
    );
    assert_eq!(
        joins(
            member(),
            json!([owner("v1beta1", "Cluster", "c", "uid-c", false)]),
            true
        ),
        Some(true)
    );
    assert_eq!(
        joins(
            member(),
            json!([owner("v1beta2", "Cluster", "d", "uid-d", false)]),
            true
        ),
        None
    );
    // What was joined stays so when a MachineSet adopts the Machine afterwards.
    assert_eq!(joins(json!({}), json!([of_cluster(), of_set()]), true), Some(true));
}

#[test]
fn a_lost_node_is_trouble() {
    let mut seen = running();
    remote(&mut seen).node = None;
    let (_, status) = reported(&seen);
    check_condition(
        &status,
        "NodeHealthy",
        (
            "False",
            "NodeDeleted",
            "Node node-m has been deleted while the Machine still exists",
        ),
    );
    check_condition(
        &status,
        "Ready",
        (
            "False",
            "NotReady",
            "* NodeHealthy: Node node-m has been deleted while the Machine still exists",
        ),
    );
}

#[test]
fn a_silent_cluster_keeps_the_last_word_for_a_while() {
    let mut seen = running();
    let (_, before) = reported(&seen);
    change(&mut seen, |machine| machine.status = Some(before));
    seen.remote = down("2026-03-01T09:58:10Z", Some("2026-03-01T09:58:00Z"));
    let (_, status, deadline) = reported_at(&seen, now());
    check_condition(&status, "NodeReady", ("True", "NodeReady", ""));
    assert_eq!(deadline, Some(at("2026-03-01T10:03:00Z")));
    let (_, status, deadline) = reported_at(&seen, at("2026-03-01T10:03:00Z"));
    check_condition(
        &status,
        "NodeReady",
        (
            "Unknown",
            "ConnectionDown",
            "Last successful probe at 2026-03-01T09:58:00Z",
        ),
    );
    assert_eq!(deadline, None);
}

/// A process that has just started knows nothing: the last report stays, until attempts to connect have failed for long enough.
#[test]
fn after_a_restart_the_last_word_is_kept_until_the_outage_is_known() {
    let mut seen = running();
    let (_, before) = reported(&seen);
    change(&mut seen, |machine| machine.status = Some(before));
    seen.remote = Workload::NotTried("no attempt was made yet".to_owned());
    let (plan, status) = reported(&seen);
    check_condition(&status, "NodeReady", ("True", "NodeReady", ""));
    assert!(plan.requeue.is_some(), "no event says that an attempt has failed");
    seen.remote = down("2026-03-01T09:59:00Z", None);
    let (plan, status, deadline) = reported_at(&seen, now());
    check_condition(&status, "NodeReady", ("True", "NodeReady", ""));
    assert_eq!((plan.requeue, deadline), (None, Some(at("2026-03-01T10:04:00Z"))));
    let (_, status, _) = reported_at(&seen, at("2026-03-01T10:04:00Z"));
    check_condition(
        &status,
        "NodeReady",
        ("Unknown", "ConnectionDown", "Remote connection not established yet"),
    );
}

#[test]
fn a_machine_is_available_only_after_its_time() {
    let mut seen = running();
    change(&mut seen, |machine| machine.spec.min_ready_seconds = Some(60));
    let (_, fresh, deadline) = reported_at(&seen, now());
    check_condition(&fresh, "Available", ("False", "WaitingForMinReadySeconds", ""));
    let due = at("2026-03-01T10:01:00Z");
    assert_eq!(deadline, Some(due));
    change(&mut seen, |machine| machine.status = Some(fresh));
    let (_, later, deadline) = reported_at(&seen, due);
    check_condition(&later, "Available", ("True", "Available", ""));
    assert_eq!(deadline, None);
}

#[test]
fn a_machine_becomes_outdated_when_the_time_of_its_rollout_comes() {
    let template = json!({"spec": machine()["spec"]});
    let set = json!({"metadata": {"name": "set", "namespace": "ns", "creationTimestamp": "2026-03-01T09:00:00Z"},
        "spec": {"clusterName": "c", "selector": {}, "template": template}});
    let deployment = json!({"metadata": {"name": "md", "namespace": "ns"},
        "spec": {"clusterName": "c", "selector": {}, "template": template, "rollout": {"after": "2026-03-01T10:30:00Z"}}});
    let mut seen = running();
    seen.machine_set = Some(Arc::new(from(set.clone())));
    seen.machine_deployment = Some(Arc::new(from(deployment)));
    let (_, status, deadline) = reported_at(&seen, now());
    check_condition(&status, "UpToDate", ("True", "UpToDate", ""));
    let due = at("2026-03-01T10:30:00Z");
    assert_eq!(deadline, Some(due));
    let (_, status, deadline) = reported_at(&seen, due);
    let expired = "* MachineDeployment spec.rolloutAfter expired";
    check_condition(&status, "UpToDate", ("False", "NotUpToDate", expired));
    assert_eq!(deadline, None);
    // A set of a later rollout is not affected.
    let mut newer = set;
    newer["metadata"]["creationTimestamp"] = json!("2026-03-01T10:30:00Z");
    seen.machine_set = Some(Arc::new(from(newer)));
    assert_eq!(reported_at(&seen, now()).2, None);
}

#[test]
fn a_node_that_was_found_is_an_event_once() {
    let mut seen = running();
    change(&mut seen, |machine| machine.status = None);
    let events = |seen: &Observed| -> Vec<Note> {
        let notes = reported(seen).0.notes;
        notes.into_iter().filter(|note| note.event.is_some()).collect()
    };
    let found = events(&seen);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].message, "node-m");
    assert_eq!(
        found[0].event.as_ref().map(|event| event.reason),
        Some("SuccessfulSetNodeRef")
    );
    assert_eq!(events(&running()), []);
}

#[test]
fn the_annotation_of_a_machine_about_its_certificates_counts_more_than_that_of_its_bootstrap_object() {
    let annotation = "machine.cluster.x-k8s.io/certificates-expiry";
    let mut seen = running();
    let mut config = external("KubeadmConfig", json!({"initialization": {"dataSecretCreated": true}}));
    config["metadata"]["annotations"] = json!({ annotation: "2027-01-01T00:00:00Z" });
    seen.bootstrap = Some(Seen::Found(Referenced::of(config)));
    let expiry = |seen: &Observed| reported(seen).1.certificates_expiry_date.map(|time| time.0.to_string());
    assert_eq!(expiry(&seen).as_deref(), Some("2027-01-01T00:00:00Z"));
    change(&mut seen, |machine| {
        machine.metadata.annotations = Some(from(json!({ annotation: "2028-01-01T00:00:00Z" })));
    });
    assert_eq!(expiry(&seen).as_deref(), Some("2028-01-01T00:00:00Z"));
    // What is announced no longer is taken back, unless it cannot be known.
    let (_, before) = reported(&seen);
    change(&mut seen, |machine| {
        machine.metadata.annotations = None;
        machine.status = Some(before);
    });
    seen.bootstrap = Some(Seen::Failed("no answer".to_owned()));
    assert_eq!(expiry(&seen).as_deref(), Some("2028-01-01T00:00:00Z"));
    seen.bootstrap = Some(Seen::Found(Referenced::of(external("KubeadmConfig", json!({})))));
    assert_eq!(expiry(&seen), None);
}

#[test]
fn an_older_provider_chooses_the_failure_domain_of_the_machine() {
    let mut seen = running();
    let mut object = external("LegacyMachine", json!({"ready": true}));
    object["spec"] = json!({"providerID": "in-memory://m", "failureDomain": "b"});
    let legacy = |object: &Value| {
        Seen::Found(Referenced::by(
            windlass_contract::ContractVersion::V1Beta1,
            object.clone(),
        ))
    };
    seen.infrastructure = legacy(&object);
    let taken = |seen: &Observed| {
        let (plan, _) = reported(seen);
        plan.actions.iter().find_map(|action| match action {
            Action::TakeOver(spec) => Some(spec["failureDomain"].clone()),
            _ => None,
        })
    };
    assert_eq!(taken(&seen), Some(json!("b")));
    change(&mut seen, |machine| machine.spec.failure_domain = Some("b".to_owned()));
    assert_eq!(taken(&seen), None);
    // A provider that chooses none leaves the user's choice alone, and so does one that is not done.
    object["spec"]["failureDomain"] = Value::Null;
    seen.infrastructure = legacy(&object);
    assert_eq!(taken(&seen), None);
    object["spec"]["failureDomain"] = json!("c");
    object["status"] = json!({});
    seen.infrastructure = legacy(&object);
    assert_eq!(taken(&seen), None);
}

#[test]
fn a_settled_machine_plans_nothing() {
    let mut seen = running();
    let Some(Action::PatchNode { patch, .. }) = reported(&seen).0.actions.first().cloned() else {
        panic!("no patch")
    };
    let mut node = node();
    node.metadata.annotations = Some(from(patch["metadata"]["annotations"].clone()));
    node.spec.as_mut().unwrap().taints = None;
    remote(&mut seen).node = Some(Arc::new(node));
    let (plan, first) = reported(&seen);
    assert!(plan.actions.is_empty(), "{:?}", plan.actions);
    change(&mut seen, |machine| machine.status = Some(first.clone()));
    assert_eq!(reported(&seen).1, first, "the status settles");
}

#[test]
fn the_label_of_interruptible_machines_comes_and_goes() {
    let patch_with = |interruptible: Value, node: Node| {
        let mut seen = running();
        let mut infrastructure = external("DevMachine", json!({"interruptible": interruptible}));
        infrastructure["spec"] = json!({"providerID": "in-memory://m"});
        seen.infrastructure = Seen::Found(Referenced::of(infrastructure));
        remote(&mut seen).node = Some(Arc::new(node));
        let (plan, _) = reported(&seen);
        let event = plan.notes.iter().filter_map(|note| note.event.as_ref());
        let events = event
            .filter(|event| event.reason == "SuccessfulSetInterruptibleNodeLabel")
            .count();
        let patch = plan.actions.into_iter().find_map(|action| match action {
            Action::PatchNode { patch, .. } => Some(patch["metadata"].clone()),
            _ => None,
        });
        (patch.unwrap(), events)
    };
    let (patch, events) = patch_with(json!(true), node());
    assert_eq!(patch["labels"], json!({"cluster.x-k8s.io/interruptible": ""}));
    assert_eq!(
        patch["annotations"]["cluster.x-k8s.io/labels-from-machine"],
        "cluster.x-k8s.io/interruptible"
    );
    assert_eq!(events, 1);
    let mut marked = node();
    marked.metadata.labels = Some(from(json!({"cluster.x-k8s.io/interruptible": ""})));
    marked.metadata.annotations = Some(from(
        json!({"cluster.x-k8s.io/labels-from-machine": "cluster.x-k8s.io/interruptible"}),
    ));
    let (patch, events) = patch_with(json!(true), marked.clone());
    assert_eq!((&patch["labels"], events), (&Value::Null, 0));
    let (patch, events) = patch_with(json!(false), marked);
    assert_eq!(patch["labels"], json!({"cluster.x-k8s.io/interruptible": null}));
    assert_eq!(events, 0);
}

#[test]
fn a_node_that_only_has_the_recorded_name_is_of_another_machine() {
    let seen = running();
    let is_own = |spec: Value, claimed: Option<&str>| {
        let mut node = node();
        node.spec = from(spec);
        node.metadata.annotations = claimed.map(|machine| from(json!({"cluster.x-k8s.io/machine": machine})));
        super::facts::is_node_of(&node, &seen)
    };
    assert!(is_own(json!({"providerID": "in-memory://m"}), None));
    assert!(!is_own(json!({"providerID": "in-memory://other"}), Some("m")));
    assert!(is_own(json!({}), Some("m")));
    assert!(!is_own(json!({}), Some("other")));
    assert!(!is_own(json!({}), None));
}

#[test]
fn a_missing_bootstrap_configuration_is_gone_only_for_a_machine_that_goes() {
    let check = |done: bool, deleting: bool, expect: (&str, &str, &str)| {
        let mut seen = pending();
        seen.bootstrap = Some(Seen::NotFound);
        change(&mut seen, |machine| {
            machine.status = from(json!({"initialization": {"bootstrapDataSecretCreated": done}}));
            if deleting {
                machine.metadata.deletion_timestamp = from(json!("2026-03-01T09:59:00Z"));
            }
        });
        check_condition(&reported(&seen).1, "BootstrapConfigReady", expect);
    };
    let missing = ("False", "ObjectDoesNotExist", "KubeadmConfig does not exist");
    check(false, false, missing);
    check(true, false, missing);
    check(false, true, missing);
    check(true, true, ("False", "ObjectDeleted", "KubeadmConfig has been deleted"));
}

#[test]
fn a_host_is_provisioned_when_it_has_its_provider_id() {
    let provisioned = |spec: Value, meta: Value| {
        let mut seen = pending();
        let mut host = external("DevMachine", json!({"initialization": {"provisioned": true}}));
        host["spec"] = spec;
        host["metadata"]
            .as_object_mut()
            .unwrap()
            .extend(meta.as_object().unwrap().clone());
        seen.infrastructure = Seen::Found(Referenced::of(host));
        let moment = Moment::at(now());
        let told = status(&seen, &planned(&seen, &moment), &moment);
        told.initialization.and_then(|done| done.infrastructure_provisioned)
    };
    let id = json!({"providerID": "in-memory://m"});
    assert_eq!(provisioned(id.clone(), json!({})), Some(true));
    assert_eq!(provisioned(json!({}), json!({})), None);
    let deleting = json!({"deletionTimestamp": "2026-03-01T09:59:00Z", "finalizers": ["x"]});
    assert_eq!(provisioned(id, deleting), None);
}
