//! Cases for the plan and the status of simulated machines.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_api::core::{Cluster, Machine};
use windlass_conditions::get;

use super::observe::Observed;
use super::plan::{Action, Plan, plan};
use super::status::status;
use crate::backend::VmState;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
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
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "c", "namespace": "ns"}, "spec": {},
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
        api_server_up: false,
    }
}

const INSTANT: [&str; 4] = ["0s"; 4];
const SLOW: [&str; 4] = ["10s", "2s", "2s", "3s"];

fn stages(plan: &Plan) -> Vec<(&'static str, Option<&'static str>)> {
    plan.stages.iter().map(|stage| (stage.type_, stage.waiting)).collect()
}

#[test]
fn nothing_starts_without_bootstrap_data() {
    let plan = plan(&seen(true, false, INSTANT), at(0));
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
    let plan = plan(&seen(false, false, INSTANT), at(0));
    assert_eq!(
        stages(&plan)[0],
        ("VMProvisioned", Some("WaitingForControlPlaneInitialized"))
    );
}

#[test]
fn an_instant_control_plane_machine_comes_up_in_one_pass() {
    let plan = plan(&seen(true, true, INSTANT), at(0));
    assert_eq!(
        plan.actions,
        [
            Action::StartVm { again: false },
            Action::SetProviderId("in-memory://m".to_owned()),
            Action::StartControlPlane,
            Action::RegisterNode,
            Action::MarkBootstrapped,
        ]
    );
    assert!(plan.stages.iter().all(|stage| stage.waiting.is_none()));
}

#[test]
fn parts_start_one_after_another_and_etcd_beside_the_api_server() {
    let mut seen = seen(true, true, SLOW);
    assert_eq!(plan(&seen, at(0)).requeue, Some(Duration::from_secs(10)));
    seen.vm = Some(VmState {
        started: at(0),
        ..VmState::default()
    });
    let booted = plan(&seen, at(10));
    assert_eq!(stages(&booted)[0].1, None);
    assert_eq!(stages(&booted)[1].1, Some("WaitingForStartupTimeout"));
    assert_eq!(stages(&booted)[2].1, Some("WaitingForNodeProvisioned"));
    let kubelet = plan(&seen, at(12));
    assert_eq!(stages(&kubelet)[2].1, Some("WaitingForStartupTimeout"));
    assert_eq!(
        kubelet.requeue,
        Some(Duration::from_secs(2)),
        "the next part, not the last"
    );
    let etcd = plan(&seen, at(14));
    assert_eq!(
        (stages(&etcd)[2].1, stages(&etcd)[3].1),
        (None, Some("WaitingForStartupTimeout"))
    );
    assert!(plan(&seen, at(15)).actions.contains(&Action::StartControlPlane));
}

#[test]
fn a_worker_registers_when_an_api_server_answers() {
    let mut seen = seen(false, true, INSTANT);
    seen.cluster = Some(Arc::new(cluster(true)));
    assert!(!plan(&seen, at(0)).actions.contains(&Action::RegisterNode));
    seen.api_server_up = true;
    assert!(plan(&seen, at(0)).actions.contains(&Action::RegisterNode));
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
    let plan = plan(&seen, at(0));
    assert!(plan.actions.contains(&Action::StartVm { again: true }));
    assert!(plan.actions.contains(&Action::StartControlPlane));
}

#[test]
fn another_backend_is_refused_by_name() {
    let mut seen = seen(false, true, INSTANT);
    let mut machine = (*seen.machine).clone();
    machine.spec = from(json!({"backend": {"docker": {}}}));
    seen.machine = Arc::new(machine);
    let plan = plan(&seen, at(0));
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
    assert_eq!(plan(&seen, at(0)).actions, [Action::DeleteVm, Action::RemoveFinalizer]);
}

#[test]
fn the_status_sums_up_by_reason_and_is_provisioned_with_the_machine() {
    let mut seen = seen(false, true, SLOW);
    let waiting = status(&seen, &plan(&seen, at(0)), None, at(0));
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
        started: at(0),
        ..VmState::default()
    });
    let booted = status(&seen, &plan(&seen, at(10)), None, at(10));
    assert_eq!(booted.initialization.unwrap().provisioned, Some(true));
}
