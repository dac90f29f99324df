//! Cases for the plan and the status of simulated machines.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_api::core::{Cluster, Machine};
use windlass_api_kubeadm::annotations::PRE_TERMINATE_CLEANUP;
use windlass_conditions::get;
use windlass_controller_runtime::{Blocked, Decision, Moment, Plan as _, ReconcileError};
use windlass_pki::{CaRequest, CertificateAuthority, KeyAlgorithm, PrivateKey};

use super::observe::{Observed, Question};
use super::plan::{self, Action, Plan, before};
use super::status::{Report, status};
use crate::backend::{Authorities, Authority, Before, Endpoint, Trouble, VmState};

/// The plan, with its deadline, where no question is expected.
fn plan_and_deadline(seen: &Observed, now: Timestamp) -> (Plan, Option<Timestamp>) {
    let now = Moment::at(now);
    match plan::plan(seen, &now) {
        Decision::Plan(plan) => (plan, now.next_deadline()),
        Decision::Ask(question) => panic!("{question:?}"),
    }
}

fn plan(seen: &Observed, now: Timestamp) -> Plan {
    plan_and_deadline(seen, now).0
}

fn authorities() -> Authorities {
    let authority = |name: &str| {
        let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
        let authority = CertificateAuthority::self_signed(&CaRequest::new(name), key, second(0));
        Arc::new(Authority::alone(authority.unwrap()))
    };
    Authorities {
        cluster: authority("kubernetes"),
        etcd: Some(authority("etcd-ca")),
    }
}

fn second(number: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + number).unwrap()
}

fn at(host: &str, port: u16) -> Endpoint {
    Endpoint {
        host: host.to_owned(),
        port,
    }
}

fn from<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn part(duration: &str) -> Value {
    json!({"provisioning": {"startupDuration": duration}})
}

fn owner(control_plane: bool, data: bool) -> Machine {
    let mut machine = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": {"name": "m", "namespace": "ns", "uid": "uid-m", "labels": {}},
        "spec": {"clusterName": "c", "version": "v1.35.0", "bootstrap": {},
            "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": "m"}},
    });
    if control_plane {
        machine["metadata"]["labels"]["cluster.x-k8s.io/control-plane"] = json!("");
    }
    if data {
        machine["spec"]["bootstrap"]["dataSecretName"] = json!("m");
    }
    from(machine)
}

fn cluster(initialized: bool) -> Cluster {
    let state = if initialized { "True" } else { "False" };
    from(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "c", "namespace": "ns"},
        "spec": {"controlPlaneEndpoint": {"host": "127.0.0.1", "port": 20000}},
        "status": {"initialization": {"infrastructureProvisioned": true}, "conditions": [
            {"type": "ControlPlaneInitialized", "status": state, "reason": "X", "message": "", "lastTransitionTime": "1970-01-01T00:00:00Z"}]},
    }))
}

fn seen(control_plane: bool, data: bool, durations: [&str; 4]) -> Observed {
    let [vm, node, etcd, api_server] = durations.map(part);
    let machine = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DevMachine",
        "metadata": {"name": "m", "namespace": "ns", "uid": "uid-dev", "generation": 1},
        "spec": {"backend": {"inMemory": {"vm": vm, "node": node, "etcd": etcd, "apiServer": api_server}}},
    });
    Observed {
        machine: Arc::new(from(machine)),
        owner: Some(Arc::new(owner(control_plane, data))),
        cluster: Some(Arc::new(cluster(false))),
        vm: None,
        troubles: BTreeSet::new(),
        api_server_up: false,
        balanced: true,
        infrastructure: None,
        authorities: Some(Ok(authorities())),
        external_etcd: false,
        prepared: false,
        others: BTreeSet::new(),
        pins: Some(Vec::new()),
    }
}

const INSTANT: [&str; 4] = ["0s"; 4];
const SLOW: [&str; 4] = ["10s", "2s", "2s", "3s"];

fn stages(plan: &Plan) -> Vec<(&'static str, Option<&'static str>)> {
    plan.stages.iter().map(|stage| (stage.type_, stage.waiting)).collect()
}

#[test]
fn nothing_starts_without_bootstrap_data() {
    let plan = plan(&seen(true, false, INSTANT), second(0));
    assert!(plan.actions.is_empty());
    assert_eq!(
        stages(&plan),
        [
            ("VMProvisioned", Some("WaitingForBootstrapData")),
            ("NodeProvisioned", Some("WaitingForVMProvisioned")),
            ("EtcdProvisioned", Some("WaitingForVMProvisioned")),
            ("APIServerProvisioned", Some("WaitingForVMProvisioned")),
        ]
    );
}

#[test]
fn workers_wait_for_the_control_plane_first() {
    let plan = plan(&seen(false, false, INSTANT), second(0));
    assert_eq!(
        stages(&plan)[0],
        ("VMProvisioned", Some("WaitingForControlPlaneInitialized"))
    );
}

#[test]
fn an_instant_control_plane_machine_comes_up_in_one_pass() {
    let plan = plan(&seen(true, true, INSTANT), second(0));
    assert_eq!(
        plan.actions,
        [
            Action::StartVm { started: second(0) },
            Action::SetProviderId("in-memory://m".to_owned()),
            Action::StartControlPlane(at("127.0.0.1", 20_000)),
            Action::RegisterNode,
            Action::MarkBootstrapped,
        ]
    );
    assert!(plan.stages.iter().all(|stage| stage.waiting.is_none()));
}

#[test]
fn parts_start_one_after_another_and_etcd_beside_the_api_server() {
    let mut seen = seen(true, true, SLOW);
    assert_eq!(plan_and_deadline(&seen, second(0)).1, Some(second(10)));
    seen.vm = Some(VmState {
        started: second(0),
        ..VmState::default()
    });
    let booted = plan(&seen, second(10));
    assert_eq!(stages(&booted)[0].1, None);
    assert_eq!(stages(&booted)[1].1, Some("WaitingForStartupTimeout"));
    assert_eq!(stages(&booted)[2].1, Some("WaitingForNodeProvisioned"));
    let (kubelet, deadline) = plan_and_deadline(&seen, second(12));
    assert_eq!(stages(&kubelet)[2].1, Some("WaitingForStartupTimeout"));
    assert_eq!(deadline, Some(second(14)), "the next part, not the last");
    let etcd = plan(&seen, second(14));
    assert_eq!(
        (stages(&etcd)[2].1, stages(&etcd)[3].1),
        (None, Some("WaitingForStartupTimeout"))
    );
    let (last, deadline) = plan_and_deadline(&seen, second(15));
    assert!(
        last.actions
            .contains(&Action::StartControlPlane(at("127.0.0.1", 20_000)))
    );
    assert_eq!(deadline, None);
}

#[test]
fn the_authorities_are_asked_for_when_the_control_plane_is_to_start() {
    let mut seen = seen(true, true, SLOW);
    seen.authorities = None;
    assert!(!plan(&seen, second(0)).actions.is_empty());
    seen.vm = Some(VmState {
        started: second(0),
        ..VmState::default()
    });
    assert_eq!(
        plan::plan(&seen, &Moment::at(second(15))),
        Decision::Ask(Question::Authorities)
    );
    let vm = seen.vm.as_mut().unwrap();
    vm.api_server = true;
    assert!(!plan(&seen, second(15)).actions.is_empty(), "it runs already");
}

#[test]
fn the_pins_are_asked_for_when_a_node_is_to_register() {
    let mut seen = seen(false, true, SLOW);
    (seen.pins, seen.authorities) = (None, None);
    seen.api_server_up = true;
    let started = second(0);
    seen.vm = Some(VmState {
        started,
        ..VmState::default()
    });
    let asked = |seen: &Observed, at| plan::plan(seen, &Moment::at(at)) == Decision::Ask(Question::Pins);
    assert!(!asked(&seen, second(11)) && asked(&seen, second(12)));
    seen.pins = Some(vec!["sha256:aa".to_owned()]);
    assert!(plan(&seen, second(12)).actions.contains(&Action::RegisterNode));
    seen.pins = None;
    let vm = seen.vm.as_mut().unwrap();
    vm.node = true;
    assert!(!asked(&seen, second(12)), "it is registered");
    // The authorities of a control plane machine are read with them.
    seen.owner = Some(Arc::new(owner(true, true)));
    assert_eq!(
        plan::plan(&seen, &Moment::at(second(15))),
        Decision::Ask(Question::Authorities)
    );
}

#[test]
fn without_authorities_the_control_plane_does_not_start_and_no_node_registers() {
    let mut seen = seen(true, true, INSTANT);
    let missing = ReconcileError::new("SecretNotFound", "Secret ns/c-ca does not exist");
    seen.authorities = Some(Err(missing));
    seen.api_server_up = true;
    let plan = plan(&seen, second(0));
    let started = second(0);
    assert_eq!(
        plan.actions,
        [
            Action::StartVm { started },
            Action::SetProviderId("in-memory://m".to_owned())
        ]
    );
    let message = "Secret ns/c-ca does not exist";
    assert_eq!(plan.blocked(), Some(Blocked::failed("SecretNotFound", message)));
    let status = status(&seen, &plan, Report::default(), second(0));
    let condition = get(&status.conditions, "APIServerProvisioned").unwrap();
    assert_eq!(
        (condition.reason.as_str(), condition.message.as_str()),
        ("Failed", message)
    );
}

#[test]
fn a_plan_that_was_carried_out_leaves_nothing_to_do() {
    for control_plane in [true, false] {
        let mut seen = seen(control_plane, true, INSTANT);
        seen.api_server_up = !control_plane;
        let actions = plan(&seen, second(0)).actions;
        assert!(actions.contains(&Action::RegisterNode) && actions.contains(&Action::MarkBootstrapped));
        assert_eq!(
            actions
                .iter()
                .any(|action| matches!(action, Action::StartControlPlane(_))),
            control_plane
        );
        seen.api_server_up = true;
        seen.vm = Some(VmState {
            started: second(0),
            node: true,
            api_server: control_plane,
            ..VmState::default()
        });
        let mut machine = (*seen.machine).clone();
        machine.spec.as_mut().unwrap().provider_id = Some("in-memory://m".to_owned());
        seen.machine = Arc::new(machine);
        let mut owner = owner(control_plane, true);
        let marked = (
            windlass_api_ext::annotations::MACHINE_BOOTSTRAPPED.to_owned(),
            String::new(),
        );
        owner.metadata.annotations = Some([marked].into());
        seen.owner = Some(Arc::new(owner));
        let (next, deadline) = plan_and_deadline(&seen, second(0));
        assert_eq!((next.actions, next.notes, deadline), (Vec::new(), Vec::new(), None));
    }
}

#[test]
fn a_worker_registers_when_an_api_server_answers() {
    let mut seen = seen(false, true, INSTANT);
    seen.cluster = Some(Arc::new(cluster(true)));
    assert!(!plan(&seen, second(0)).actions.contains(&Action::RegisterNode));
    seen.api_server_up = true;
    assert!(plan(&seen, second(0)).actions.contains(&Action::RegisterNode));
}

#[test]
fn a_machine_that_ran_before_a_restart_runs_again_at_once() {
    let mut seen = seen(true, true, SLOW);
    let mut machine = (*seen.machine).clone();
    machine.status = from(
        json!({"conditions": [{"type": "VMProvisioned", "status": "True", "reason": "Provisioned", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"}]}),
    );
    seen.machine = Arc::new(machine);
    let plan = plan(&seen, second(0));
    assert!(plan.actions.contains(&Action::StartVm {
        started: Timestamp::UNIX_EPOCH
    }));
    assert!(
        plan.actions
            .contains(&Action::StartControlPlane(at("127.0.0.1", 20_000)))
    );
}

#[test]
fn a_worker_that_had_joined_stays_so_while_its_api_server_starts_again() {
    let mut seen = seen(false, true, SLOW);
    let fresh = plan(&seen, second(60));
    assert_eq!(stages(&fresh)[1].1, Some("WaitingForVMProvisioned"));
    let mut machine = (*seen.machine).clone();
    let is_true = |type_: &str| json!({"type": type_, "status": "True", "reason": "Provisioned", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    machine.status = from(json!({"conditions": [is_true("VMProvisioned"), is_true("NodeProvisioned")]}));
    seen.machine = Arc::new(machine);
    let again = plan(&seen, second(60));
    assert_eq!(stages(&again), [("VMProvisioned", None), ("NodeProvisioned", None)]);
    assert!(!again.actions.contains(&Action::RegisterNode), "{:?}", again.actions);
    seen.api_server_up = true;
    assert!(plan(&seen, second(60)).actions.contains(&Action::RegisterNode));
    seen.troubles.insert(Trouble::JoinHangs);
    assert_eq!(
        stages(&plan(&seen, second(60)))[1].1,
        Some("WaitingControlPlaneInitialized")
    );
}

#[test]
fn another_backend_is_refused_by_name() {
    let mut seen = seen(false, true, INSTANT);
    let mut machine = (*seen.machine).clone();
    machine.spec = from(json!({"backend": {"docker": {}}}));
    seen.machine = Arc::new(machine);
    let plan = plan(&seen, second(0));
    assert!(plan.actions.is_empty());
    assert!(
        plan.stages[0].message.contains("spec.backend.inMemory"),
        "{}",
        plan.stages[0].message
    );
}

#[test]
fn deletion_switches_the_machine_off_before_it_lets_go() {
    let mut seen = seen(false, true, INSTANT);
    let mut machine = (*seen.machine).clone();
    machine.metadata.deletion_timestamp = from(json!("2026-01-01T00:00:00Z"));
    seen.machine = Arc::new(machine);
    seen.vm = Some(VmState::default());
    assert_eq!(
        plan(&seen, second(0)).actions,
        [Action::DeleteVm, Action::RemoveFinalizer]
    );
}

#[test]
fn the_status_sums_up_by_reason_and_is_provisioned_with_the_machine() {
    let mut seen = seen(false, true, SLOW);
    let waiting = status(&seen, &plan(&seen, second(0)), Report::default(), second(0));
    let ready = get(&waiting.conditions, "Ready").unwrap();
    assert_eq!(
        ready.message,
        "* VMProvisioned: WaitingForStartupTimeout\n* NodeProvisioned: WaitingForVMProvisioned"
    );
    assert!(waiting.initialization.is_none());
    let legacy = waiting.deprecated.unwrap().v1beta1.unwrap().conditions;
    assert_eq!(legacy[0].message.as_deref(), Some("0 of 2 completed"));
    let types: Vec<&str> = legacy.iter().map(|condition| condition.type_.as_str()).collect();
    assert_eq!(types, ["Ready", "VMProvisioned"], "the node's turn has not come");
    seen.vm = Some(VmState {
        started: second(0),
        ..VmState::default()
    });
    let booted = status(&seen, &plan(&seen, second(10)), Report::default(), second(10));
    assert_eq!(booted.initialization.unwrap().provisioned, Some(true));
}

#[test]
fn a_provisioned_machine_reports_the_failure_domain_of_its_machine_and_keeps_it_without_one() {
    let mut seen = seen(false, true, SLOW);
    let mut machine = owner(false, true);
    machine.spec.failure_domain = Some("a".to_owned());
    seen.owner = Some(Arc::new(machine));
    let at = |seen: &Observed, seconds| {
        let now = second(seconds);
        status(seen, &plan(seen, now), Report::default(), now).failure_domain
    };
    assert_eq!(at(&seen, 0), None, "the machine is not there yet");
    seen.vm = Some(VmState {
        started: second(0),
        ..VmState::default()
    });
    assert_eq!(at(&seen, 10).as_deref(), Some("a"));
    let mut before = (*seen.machine).clone();
    before.status.get_or_insert_default().failure_domain = Some("a".to_owned());
    seen.machine = Arc::new(before);
    seen.owner = None;
    assert_eq!(at(&seen, 10).as_deref(), Some("a"), "a lost owner moves no machine");
}

/// A control plane machine of a Cluster with such an endpoint, and what its DevCluster says.
fn at_endpoint(given: &Value, infrastructure: &Value) -> Observed {
    let mut seen = seen(true, true, INSTANT);
    let mut cluster = cluster(false);
    cluster.spec.control_plane_endpoint = from(given.clone());
    seen.cluster = Some(Arc::new(cluster));
    seen.balanced = false;
    seen.infrastructure = Some(Arc::new(from(json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DevCluster", "metadata": {"name": "d", "namespace": "ns"},
        "spec": {"backend": {"inMemory": {}}, "controlPlaneEndpoint": infrastructure},
    }))));
    seen
}

// EX-040, EX-061
#[test]
fn a_control_plane_machine_waits_for_the_endpoint_and_names_what_is_missing() {
    let check = |given: Value, infrastructure: Value, words: &[&str]| {
        let plan = plan(&at_endpoint(&given, &infrastructure), second(0));
        assert!(plan.actions.is_empty(), "{:?}", plan.actions);
        assert_eq!(
            stages(&plan)[0],
            ("VMProvisioned", Some("WaitingForControlPlaneEndpoint"))
        );
        let message = &plan.stages[0].message;
        for word in words {
            assert!(message.contains(word), "no {word:?} in {message:?}");
        }
    };
    let both = "spec.controlPlaneEndpoint.host and spec.controlPlaneEndpoint.port of";
    check(
        json!(null),
        json!(null),
        &[&format!("{both} DevCluster ns/d"), &format!("{both} Cluster ns/c")],
    );
    check(
        json!(null),
        json!({"host": "127.0.0.1"}),
        &["for spec.controlPlaneEndpoint.port of DevCluster ns/d"],
    );
    check(
        json!({"host": "127.0.0.1"}),
        json!({"port": 6443}),
        &[
            "for spec.controlPlaneEndpoint.host of DevCluster ns/d",
            "for spec.controlPlaneEndpoint.port of Cluster ns/c",
        ],
    );
    check(
        json!({"host": "", "port": 6443}),
        json!({"host": "127.0.0.1", "port": 6443}),
        &["Cluster ns/c to take spec.controlPlaneEndpoint over from DevCluster ns/d"],
    );
    check(
        json!({"host": "api.example.com", "port": 6443}),
        json!(null),
        &[
            "spec.controlPlaneEndpoint.host of Cluster ns/c",
            "\"api.example.com\"",
            "localhost",
        ],
    );
}

// EX-058, EX-059: the contract's fields are enough.
#[test]
fn a_control_plane_machine_serves_where_the_cluster_says() {
    let check = |host: &str, balanced: bool, expect: Endpoint| {
        let mut seen = at_endpoint(&json!({"host": host, "port": 6443}), &json!(null));
        seen.infrastructure = None;
        seen.balanced = balanced;
        assert!(
            plan(&seen, second(0))
                .actions
                .contains(&Action::StartControlPlane(expect))
        );
    };
    check("127.0.0.7", false, at("127.0.0.7", 6443));
    check("localhost", false, at("localhost", 6443));
    check("api.example.com", true, at("api.example.com", 6443));
}

// EX-060: workers need nothing of the endpoint.
#[test]
fn a_worker_starts_without_an_endpoint() {
    let mut seen = at_endpoint(&json!(null), &json!(null));
    seen.owner = Some(Arc::new(owner(false, true)));
    assert!(
        plan(&seen, second(0))
            .actions
            .contains(&Action::StartVm { started: second(0) })
    );
}

#[test]
fn a_machine_that_ran_before_waits_with_its_api_server_while_the_endpoint_is_unusable() {
    let mut seen = at_endpoint(&json!({"host": "10.0.0.1", "port": 6443}), &json!(null));
    let mut machine = (*seen.machine).clone();
    machine.status = from(
        json!({"conditions": [{"type": "VMProvisioned", "status": "True", "reason": "Provisioned", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"}]}),
    );
    seen.machine = Arc::new(machine);
    let plan = plan(&seen, second(0));
    assert_eq!(
        stages(&plan)[3],
        ("APIServerProvisioned", Some("WaitingForControlPlaneEndpoint"))
    );
    assert!(plan.stages[3].message.contains("10.0.0.1"));
}

#[test]
fn an_api_server_that_cannot_start_says_why() {
    let seen = seen(true, true, INSTANT);
    let report = Report {
        not_serving: Some("port 6443 is in use"),
        ..Report::default()
    };
    let status = status(&seen, &plan(&seen, second(0)), report, second(0));
    let condition = get(&status.conditions, "APIServerProvisioned").unwrap();
    assert_eq!(
        (condition.status.as_str(), condition.reason.as_str()),
        ("False", "Failed")
    );
    assert_eq!(condition.message, "port 6443 is in use");
    assert!(
        get(&status.conditions, "Ready")
            .unwrap()
            .message
            .contains("port 6443 is in use")
    );
    assert_eq!(get(&status.conditions, "VMProvisioned").unwrap().status, "True");
}

// EX-009, EX-058: who manages the infrastructure makes no difference to a machine.
#[test]
fn no_part_of_this_controller_asks_who_manages_the_infrastructure() {
    let sources = [
        include_str!("../dev_machine.rs"),
        include_str!("apply.rs"),
        include_str!("observe.rs"),
        include_str!("plan.rs"),
        include_str!("plan/endpoint.rs"),
        include_str!("status.rs"),
    ];
    for source in sources {
        assert!(!source.contains("MANAGED_BY") && !source.contains("externally_managed"));
    }
}

#[test]
fn a_member_that_was_removed_before_a_restart_does_not_join_again() {
    let mut seen = seen(true, true, INSTANT);
    assert_eq!(before(&seen), Before::Nothing);
    let mut machine = (*seen.machine).clone();
    machine.status = from(
        json!({"conditions": [{"type": "APIServerProvisioned", "status": "True", "reason": "Provisioned", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"}]}),
    );
    seen.machine = Arc::new(machine);
    assert_eq!(before(&seen), Before::Joined);
    let mut owner = owner(true, true);
    owner.metadata.deletion_timestamp = from(json!("2026-01-01T00:00:00Z"));
    seen.owner = Some(Arc::new(owner.clone()));
    assert_eq!(before(&seen), Before::Joined, "nothing removes members of its cluster");
    owner.metadata.owner_references = from(
        json!([{"apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlane", "name": "c", "uid": "u"}]),
    );
    seen.owner = Some(Arc::new(owner.clone()));
    assert_eq!(before(&seen), Before::Left);
    owner.metadata.annotations = from(json!({PRE_TERMINATE_CLEANUP: ""}));
    seen.owner = Some(Arc::new(owner));
    assert_eq!(before(&seen), Before::Joined);
}
