//! Cases of the plan and the status of a MachineHealthCheck.

use std::sync::Arc;

use windlass_api::core::Machine;
use windlass_api::k8s::Node;

use super::*;
use crate::machine_health_check::status::status;
use crate::shared::testing::{self, annotate, now, set};

fn health_check(spec: &Value) -> MachineHealthCheck {
    serde_json::from_value(json!({
        "metadata": { "name": "check", "namespace": "ns", "generation": 1,
            "labels": { "cluster.x-k8s.io/cluster-name": "c" },
            "ownerReferences": [{ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c", "uid": "cluster" }] },
        "spec": spec,
    }))
    .unwrap()
}

fn usual() -> MachineHealthCheck {
    health_check(&json!({
        "clusterName": "c", "selector": { "matchLabels": { "role": "worker" } },
        "checks": {
            "nodeStartupTimeoutSeconds": 600,
            "unhealthyNodeConditions": [{ "type": "Ready", "status": "False", "timeoutSeconds": 300 }],
            "unhealthyMachineConditions": [{ "type": "NodeReady", "status": "False", "timeoutSeconds": 300 }],
        },
    }))
}

fn node(ready: &str, since: &str) -> Seen<Arc<Node>> {
    let value = json!({ "metadata": { "name": "n" },
        "status": { "conditions": [{ "type": "Ready", "status": ready, "lastTransitionTime": since }] } });
    Seen::Found(Arc::new(serde_json::from_value(value).unwrap()))
}

fn well() -> Option<Seen<Arc<Node>>> {
    Some(node("True", "2026-01-01T11:30:00Z"))
}

fn target(machine: Machine, node: Option<Seen<Arc<Node>>>) -> Target {
    Target {
        machine: Arc::new(machine),
        node,
        request: None,
    }
}

fn machine(name: &str) -> Machine {
    testing::machine(&set("s", 1, "v1.35.0"), name)
}

fn seen(check: MachineHealthCheck, targets: Vec<Target>) -> Observed {
    let mut cluster = (*testing::cluster()).clone();
    cluster.status = serde_json::from_value(json!({
        "initialization": { "infrastructureProvisioned": true, "controlPlaneInitialized": true },
    }))
    .unwrap();
    Observed {
        check: Arc::new(check),
        cluster: Seen::Found(Arc::new(cluster)),
        targets,
        request_template: None,
    }
}

fn told(plan: &Plan) -> Vec<String> {
    let tell = |action: &Action| match action {
        Action::Say(saying) => {
            let asked = saying.owner_remediated.as_ref().map_or("", |_| ", owner asked");
            let external = saying
                .externally_remediated
                .as_ref()
                .map_or(String::new(), |one| format!(", {}", one.reason));
            format!("{} {}{asked}{external}", saying.machine, saying.health.reason)
        }
        Action::Request { machine, .. } => format!("request {machine}"),
        Action::Withdraw { machine } => format!("withdraw {machine}"),
        Action::Restricted(_) => "restricted".to_owned(),
        Action::ApplySelf(_) => "apply self".to_owned(),
    };
    plan.actions.iter().map(tell).collect()
}

fn check(seen: &Observed, want: &[&str]) -> Plan {
    let plan = plan(seen, now());
    assert_eq!(told(&plan), want);
    plan
}

#[test]
fn a_healthy_machine_is_told_so_once() {
    let plan = check(
        &seen(usual(), vec![target(machine("a"), well())]),
        &["a HealthCheckSucceeded"],
    );
    assert_eq!((plan.healthy, plan.requeue), (1, None));
    let mut known = machine("a");
    testing::condition(&mut known, "HealthCheckSucceeded", "True", "HealthCheckSucceeded", "");
    check(&seen(usual(), vec![target(known, well())]), &[]);
}

#[test]
fn a_node_that_is_not_ready_for_too_long_makes_its_machine_unhealthy() {
    let recent = node("False", "2026-01-01T11:58:00Z");
    let plan = check(&seen(usual(), vec![target(machine("a"), Some(recent))]), &[]);
    assert_eq!((plan.healthy, plan.requeue), (0, Some(Duration::from_secs(181))));
    let long = node("False", "2026-01-01T11:50:00Z");
    let plan = check(
        &seen(usual(), vec![target(machine("a"), Some(long))]),
        &["a UnhealthyNode, owner asked"],
    );
    let Action::Say(saying) = &plan.actions[0] else {
        panic!("{plan:?}")
    };
    assert_eq!(
        saying.health.message,
        "Health check failed: Condition Ready on Node is reporting status False for more than 5m0s"
    );
}

#[test]
fn a_condition_of_the_machine_counts_too() {
    let mut sick = machine("a");
    testing::condition(&mut sick, "NodeReady", "False", "NodeNotReady", "");
    check(
        &seen(usual(), vec![target(sick, well())]),
        &["a UnhealthyMachine, owner asked"],
    );
}

#[test]
fn a_deleted_node_and_a_node_that_never_came_are_unhealthy() {
    check(
        &seen(usual(), vec![target(machine("a"), Some(Seen::NotFound))]),
        &["a NodeDeleted, owner asked"],
    );
    let mut young = machine("a");
    check(
        &seen(usual(), vec![target(young.clone(), None)]),
        &["a NodeStartupTimeout, owner asked"],
    );
    young.metadata.creation_timestamp = serde_json::from_value(json!("2026-01-01T11:55:00Z")).unwrap();
    let plan = check(&seen(usual(), vec![target(young, None)]), &[]);
    assert_eq!(plan.requeue, Some(Duration::from_secs(301)));
}

#[test]
fn nothing_is_concluded_before_the_cluster_is_up_or_without_a_connection() {
    let mut early = seen(usual(), vec![target(machine("a"), None)]);
    early.cluster = Seen::Found(testing::cluster());
    check(&early, &[]);
    let lost = seen(
        usual(),
        vec![target(machine("a"), Some(Seen::Failed("no connection".to_owned())))],
    );
    let plan = check(&lost, &[]);
    assert!(plan.disconnected);
    assert_eq!(status(&lost, &plan, now()), None);
}

#[test]
fn an_annotation_makes_a_machine_unhealthy_at_once() {
    let mut marked = machine("a");
    annotate(&mut marked.metadata, "cluster.x-k8s.io/remediate-machine", "");
    check(
        &seen(usual(), vec![target(marked, well())]),
        &["a HasRemediateAnnotation, owner asked"],
    );
}

#[test]
fn an_owner_at_work_is_left_alone() {
    let mut known = machine("a");
    testing::condition(&mut known, "OwnerRemediated", "False", "RemediationDeferred", "later");
    check(
        &seen(usual(), vec![target(known, Some(Seen::NotFound))]),
        &["a NodeDeleted"],
    );
}

#[test]
fn too_many_unhealthy_machines_stop_everything() {
    let mut limited = usual();
    limited.spec.remediation =
        serde_json::from_value(json!({ "triggerIf": { "unhealthyLessThanOrEqualTo": 1 } })).unwrap();
    let targets = vec![
        target(machine("a"), Some(Seen::NotFound)),
        target(machine("b"), Some(Seen::NotFound)),
    ];
    let seen = seen(limited, targets);
    let plan = check(&seen, &["restricted", "a NodeDeleted", "b NodeDeleted"]);
    let status = status(&seen, &plan, now()).unwrap();
    assert_eq!(
        (
            status.expected_machines,
            status.current_healthy,
            status.remediations_allowed
        ),
        (Some(2), Some(0), Some(0))
    );
    assert_eq!(
        (
            status.conditions[0].status.as_str(),
            status.conditions[0].reason.as_str()
        ),
        ("False", "TooManyUnhealthy")
    );
}

#[test]
fn a_settled_check_counts_its_machines() {
    let targets = vec![target(machine("b"), well()), target(machine("a"), well())];
    let seen = seen(usual(), targets);
    let status = status(&seen, &plan(&seen, now()), now()).unwrap();
    assert_eq!(status.targets, ["a", "b"]);
    assert_eq!(
        (status.current_healthy, status.remediations_allowed),
        (Some(2), Some(2))
    );
    assert_eq!(status.conditions[0].reason, "RemediationAllowed");
    assert_eq!(status.deprecated.unwrap().v1beta1.unwrap().conditions[0].status, "True");
}

#[test]
fn external_remediation_is_requested_once_and_withdrawn_when_healthy() {
    let mut external = usual();
    external.spec.remediation = serde_json::from_value(json!({
        "templateRef": { "apiVersion": "r.io/v1", "kind": "FixRemediationTemplate", "name": "fix" } }))
    .unwrap();
    let mut sick = target(machine("a"), Some(Seen::NotFound));
    sick.request = Some(Seen::NotFound);
    let mut seen = seen(external, vec![sick]);
    seen.request_template = Some(Seen::NotFound);
    check(&seen, &["a NodeDeleted, RemediationTemplateNotFound"]);
    seen.request_template = Some(Seen::Found(testing::provider_template(
        "r.io",
        "FixRemediationTemplate",
        "fix",
    )));
    let plan = check(&seen, &["request a", "a NodeDeleted, WaitingForRemediation"]);
    let Action::Request { object, .. } = &plan.actions[0] else {
        panic!("{plan:?}")
    };
    assert_eq!(
        (object["kind"].as_str(), object["metadata"]["name"].as_str()),
        (Some("FixRemediation"), Some("a"))
    );
    let request = testing::clone("r.io", "FixRemediation", "a", json!({}));
    seen.targets[0].request = Some(Seen::Found(request));
    check(&seen, &["a NodeDeleted, WaitingForRemediation"]);
    seen.targets[0].node = well();
    check(&seen, &["withdraw a", "a HealthCheckSucceeded"]);
}
