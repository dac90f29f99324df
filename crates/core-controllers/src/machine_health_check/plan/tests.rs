//! Cases of the plan and the status of a MachineHealthCheck.

use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_api::core::Machine;
use windlass_api::k8s::Node;
use windlass_cluster_cache::GracePeriods;

use super::*;
use crate::machine_health_check::Done;
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
        "status": { "conditions": [{ "type": "Ready", "status": ready, "reason": "KubeletNotReady", "lastTransitionTime": since }] } });
    Seen::Found(Arc::new(serde_json::from_value(value).unwrap()))
}

fn well() -> Option<Seen<Arc<Node>>> {
    Some(node("True", "2026-01-01T11:30:00Z"))
}

/// A Machine and its Node: `None` when it has none yet, not found when it is gone.
type Case = (Target, Option<Seen<Arc<Node>>>);

fn target(mut machine: Machine, node: Option<Seen<Arc<Node>>>) -> Case {
    if node.is_none() {
        machine.status.as_mut().unwrap().node_ref = None;
    }
    let target = Target {
        machine: Arc::new(machine),
        request: None,
    };
    (target, node)
}

fn machine(name: &str) -> Machine {
    testing::machine(&set("s", 1, "v1.35.0"), name)
}

/// The status of a Cluster with these conditions, true since half an hour.
fn status_of_cluster(conditions: &[&str]) -> Option<windlass_api::core::v1beta2::ClusterStatus> {
    let conditions = conditions.iter().map(|type_| {
        json!({ "type": type_, "status": "True", "reason": type_, "lastTransitionTime": "2026-01-01T11:30:00Z" })
    });
    serde_json::from_value(json!({ "conditions": conditions.collect::<Vec<_>>() })).unwrap()
}

fn seen(check: MachineHealthCheck, cases: Vec<Case>) -> Observed {
    let mut cluster = (*testing::cluster()).clone();
    cluster.status = status_of_cluster(&["InfrastructureReady", "ControlPlaneInitialized"]);
    let (targets, nodes): (Vec<Target>, Vec<_>) = cases.into_iter().unzip();
    let names = targets.iter().map(|target| target.machine.metadata.name().to_owned());
    let found = names
        .zip(nodes)
        .filter_map(|(name, node)| Some((name, node?.found().cloned()?)));
    Observed {
        check: Arc::new(check),
        cluster: Seen::Found(Arc::new(cluster)),
        nodes: Workload::Up(found.collect()),
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
            let machine = saying.machine.metadata.name();
            format!("{machine} {}{asked}{external}", saying.health.reason)
        }
        Action::Request { object, saying } => {
            let name = object["metadata"]["name"].as_str().unwrap();
            let external = saying.externally_remediated.as_ref().unwrap();
            format!("request {name} {} {}", saying.health.reason, external.reason)
        }
        Action::Withdraw(request) => format!("withdraw {}", request.name()),
        Action::ApplySelf(_) => "apply self".to_owned(),
    };
    let events = plan.notes.iter().filter_map(|note| Some(note.event.as_ref()?.reason));
    events.map(str::to_owned).chain(plan.actions.iter().map(tell)).collect()
}

fn check(seen: &Observed, want: &[&str]) -> Plan {
    let plan = plan(seen, &Moment::at(now()));
    assert_eq!(told(&plan), want);
    plan
}

/// Checks what happens now, and that it changes by itself at `due`, and how.
fn check_in_time(seen: &Observed, now_and_then: (&[&str], &[&str]), due: &str) {
    let moment = Moment::at(now());
    assert_eq!(told(&plan(seen, &moment)), now_and_then.0);
    let due = due.parse().unwrap();
    assert_eq!(moment.next_deadline(), Some(due));
    let moment = Moment::at(due);
    assert_eq!(told(&plan(seen, &moment)), now_and_then.1);
    assert_eq!(moment.next_deadline(), None);
}

#[test]
fn a_healthy_machine_is_reported_once() {
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
    let recent = seen(usual(), vec![target(machine("a"), Some(recent))]);
    assert_eq!(check(&recent, &[]).healthy, 0);
    let late = &["a UnhealthyNode, owner asked"];
    check_in_time(&recent, (&[], late), "2026-01-01T12:03:00Z");
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
        "Health check failed:\n  * Condition Ready on Node is reporting status False with reason KubeletNotReady for more than 5m0s"
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
fn what_a_machine_and_its_node_report_is_reported_together() {
    let mut sick = machine("a");
    testing::condition(&mut sick, "NodeReady", "False", "NodeNotReady", "");
    let long = node("False", "2026-01-01T11:50:00Z");
    let plan = check(
        &seen(usual(), vec![target(sick, Some(long))]),
        &["a UnhealthyMachine, owner asked"],
    );
    let Action::Say(saying) = &plan.actions[0] else {
        panic!("{plan:?}")
    };
    assert_eq!(
        saying.health.message,
        "Health check failed:\n  * Condition NodeReady on Machine is reporting status False with reason NodeNotReady for more than \
         5m0s\n  * Condition Ready on Node is reporting status False with reason KubeletNotReady for more than 5m0s"
    );
}

#[test]
fn a_machine_is_not_judged_by_its_conditions_before_the_control_plane_is_up() {
    let mut waiting = machine("a");
    testing::condition(&mut waiting, "NodeReady", "False", "NodeNotReady", "");
    let mut seen = seen(usual(), vec![target(waiting, None)]);
    for conditions in [&["InfrastructureReady"], &["ControlPlaneInitialized"]] {
        let mut cluster = (*testing::cluster()).clone();
        cluster.status = status_of_cluster(conditions);
        seen.cluster = Seen::Found(Arc::new(cluster));
        check(&seen, &[]);
    }
}

#[test]
fn a_machine_starts_once_its_own_infrastructure_is_ready() {
    let mut slow = machine("a");
    testing::condition(&mut slow, "InfrastructureReady", "True", "Ready", "");
    let status = slow.status.as_mut().unwrap();
    let ready = status
        .conditions
        .iter_mut()
        .find(|one| one.type_ == "InfrastructureReady")
        .unwrap();
    ready.last_transition_time = serde_json::from_value(json!("2026-01-01T11:55:00Z")).unwrap();
    let late = &["a NodeStartupTimeout, owner asked"];
    check_in_time(
        &seen(usual(), vec![target(slow, None)]),
        (&[], late),
        "2026-01-01T12:05:00Z",
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
    let young = seen(usual(), vec![target(young, None)]);
    let late = &["a NodeStartupTimeout, owner asked"];
    check_in_time(&young, (&[], late), "2026-01-01T12:05:00Z");
}

#[test]
fn nothing_is_concluded_before_the_cluster_is_up_or_without_a_connection() {
    let mut early = seen(usual(), vec![target(machine("a"), None)]);
    early.cluster = Seen::Found(testing::cluster());
    check(&early, &[]);
    for unknown in unknown() {
        let mut lost = seen(usual(), vec![target(machine("a"), well())]);
        lost.nodes = unknown;
        let plan = check(&lost, &[]);
        assert_eq!(plan.blocked.as_ref().map(|blocked| blocked.until), Some(Until::Event));
        assert_eq!(status(&lost, &plan, &Done::default(), now()), None);
    }
}

/// All states in which nothing is known of the Nodes.
fn unknown() -> [Workload<BTreeMap<String, Arc<Node>>>; 2] {
    let outage = Outage {
        since: now(),
        last_success: None,
        why: "connection refused".to_owned(),
        grace: GracePeriods::default(),
    };
    [
        Workload::NotTried("no attempt was made yet".to_owned()),
        Workload::Down(outage),
    ]
}

#[test]
fn a_node_that_cannot_be_found_without_a_connection_has_not_failed_to_start() {
    for unknown in unknown() {
        let mut lost = seen(usual(), vec![target(machine("a"), None)]);
        check(&lost, &["a NodeStartupTimeout, owner asked"]);
        lost.nodes = unknown;
        let plan = check(&lost, &[]);
        assert_eq!(plan.blocked.as_ref().map(|blocked| blocked.until), Some(Until::Event));
    }
}

#[test]
fn the_first_control_plane_machine_has_no_connection_while_it_starts() {
    let mut first = machine("a");
    let labels = first.metadata.labels.get_or_insert_default();
    labels.insert("cluster.x-k8s.io/control-plane".to_owned(), String::new());
    let mut seen = seen(usual(), vec![target(first, None)]);
    let mut cluster = (*testing::cluster()).clone();
    cluster.status = status_of_cluster(&["InfrastructureReady"]);
    seen.cluster = Seen::Found(Arc::new(cluster));
    for unknown in unknown() {
        seen.nodes = unknown;
        check(&seen, &["a NodeStartupTimeout, owner asked"]);
    }
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
    let plan = check(&seen, &["RemediationRestricted", "a NodeDeleted", "b NodeDeleted"]);
    let status = status(&seen, &plan, &Done::default(), now()).unwrap();
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
    let status = status(&seen, &plan(&seen, &Moment::at(now())), &Done::default(), now()).unwrap();
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
    sick.0.request = Some(Seen::NotFound);
    let mut seen = seen(external, vec![sick]);
    seen.request_template = Some(Seen::NotFound);
    check(&seen, &["a NodeDeleted, RemediationTemplateNotFound"]);
    seen.request_template = Some(Seen::Found(testing::provider_template(
        "r.io",
        "FixRemediationTemplate",
        "fix",
    )));
    let plan = check(&seen, &["request a NodeDeleted WaitingForRemediation"]);
    let Action::Request { object, saying } = &plan.actions[0] else {
        panic!("{plan:?}")
    };
    let failed = saying.without_request("it is refused").externally_remediated.unwrap();
    assert_eq!(
        (&*failed.reason, failed.message.as_str()),
        ("RemediationRequestCreationFailed", "it is refused")
    );
    assert_eq!(
        (object["kind"].as_str(), object["metadata"]["name"].as_str()),
        (Some("FixRemediation"), Some("a"))
    );
    let request = testing::clone("r.io", "FixRemediation", "a", json!({}));
    seen.targets[0].request = Some(Seen::Found(request));
    // The condition came with the request. What it says now is up to the controller of the remediation, also that it is gone.
    let says = |seen: &mut Observed, status: &str, reason: &str| {
        let condition = json!({ "type": "ExternallyRemediated", "status": status, "reason": reason, "message": "m",
            "lastTransitionTime": "2026-01-01T11:30:00Z" });
        let machine = Arc::make_mut(&mut seen.targets[0].machine);
        let status = machine.status.as_mut().unwrap();
        status.conditions = vec![serde_json::from_value(condition).unwrap()];
    };
    check(&seen, &["a NodeDeleted"]);
    says(&mut seen, "False", "WaitingForRemediation");
    check(&seen, &["a NodeDeleted, WaitingForRemediation"]);
    says(&mut seen, "False", "RemediationRequestCreationFailed");
    check(&seen, &["a NodeDeleted, WaitingForRemediation"]);
    for (status, reason) in [("False", "Rebooting"), ("True", "WaitingForRemediation")] {
        says(&mut seen, status, reason);
        check(&seen, &["a NodeDeleted"]);
    }
    seen.targets[0].machine = machine("a").into();
    // There may be a request when that cannot be read.
    let found = seen.targets[0].request.replace(Seen::Failed("timeout".to_owned()));
    let plan = check(&seen, &["a NodeDeleted"]);
    assert!(plan.requeue.is_some());
    seen.targets[0].request = found;
    seen.nodes = Workload::Up([("a".to_owned(), well().unwrap().found().cloned().unwrap())].into());
    check(&seen, &["withdraw a", "a HealthCheckSucceeded"]);
}

#[test]
fn the_older_generation_says_why_external_remediation_fails() {
    let mut external = usual();
    external.spec.remediation = serde_json::from_value(json!({
        "templateRef": { "apiVersion": "r.io/v1", "kind": "FixRemediationTemplate", "name": "fix" } }))
    .unwrap();
    let mut sick = target(machine("a"), Some(Seen::NotFound));
    sick.0.request = Some(Seen::NotFound);
    let mut seen = seen(external, vec![sick]);
    // Writes the status, and gives what it says in the order of the types.
    let said = |seen: &mut Observed, done: &Done| {
        let plan = plan(seen, &Moment::at(now()));
        let status = status(seen, &plan, done, now()).unwrap();
        Arc::make_mut(&mut seen.check).status = Some(status.clone());
        let old = status.deprecated.unwrap().v1beta1.unwrap().conditions;
        let external = old.iter().filter(|one| one.type_.starts_with("External"));
        external
            .map(|one| {
                format!(
                    "{} {} {}",
                    one.type_,
                    one.status,
                    one.reason.as_deref().unwrap_or_default()
                )
            })
            .collect::<Vec<_>>()
    };
    let template = "ExternalRemediationTemplateAvailable";
    let request = "ExternalRemediationRequestAvailable";
    seen.request_template = Some(Seen::NotFound);
    let missing = format!("{template} False ExternalRemediationTemplateNotFound");
    assert_eq!(said(&mut seen, &Done::default()), [missing]);
    let found = testing::provider_template("r.io", "FixRemediationTemplate", "fix");
    seen.request_template = Some(Seen::Found(found));
    let refused = Done {
        request_failed: Some("it is refused".to_owned()),
        ..Done::default()
    };
    let failed = format!("{request} False ExternalRemediationRequestCreationFailed");
    let available = format!("{template} True ");
    assert_eq!(said(&mut seen, &refused), [failed.clone(), available.clone()]);
    assert_eq!(
        said(&mut seen, &Done::default()),
        [format!("{request} True "), available]
    );
    // Where nothing has failed, there is nothing to say.
    Arc::make_mut(&mut seen.check).status = None;
    assert_eq!(said(&mut seen, &Done::default()), [""; 0]);
}

#[test]
fn nothing_is_asked_for_a_machine_that_goes_already() {
    let mut sick = target(machine("a"), Some(node("False", "2026-01-01T11:30:00Z")));
    let time = serde_json::from_value(json!("2026-01-01T11:59:00Z")).unwrap();
    Arc::make_mut(&mut sick.0.machine).metadata.deletion_timestamp = time;
    let mut seen = seen(usual(), vec![sick]);
    check(&seen, &["a UnhealthyNode"]);
    // What was asked for before stays.
    let condition = json!({ "type": "OwnerRemediated", "status": "False", "reason": "WaitingForRemediation",
        "message": "Waiting for remediation", "lastTransitionTime": "2026-01-01T11:30:00Z" });
    let machine = Arc::make_mut(&mut seen.targets[0].machine);
    machine.status.as_mut().unwrap().conditions = vec![serde_json::from_value(condition).unwrap()];
    check(&seen, &["a UnhealthyNode, owner asked"]);
}
