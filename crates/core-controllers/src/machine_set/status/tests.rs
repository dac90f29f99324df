//! Cases of the status of a MachineSet.

use std::collections::BTreeMap;

use super::*;
use crate::machine_set::plan::Plan;
use crate::shared::preflight::PreflightChecks;
use crate::shared::testing::{self, cluster, condition, now, provider_template, set};

fn seen(set: MachineSet, machines: Vec<Machine>) -> Observed {
    Observed {
        set: Arc::new(set),
        cluster: Seen::Found(cluster()),
        machines: machines.into_iter().map(Arc::new).collect(),
        orphans: vec![],
        bootstrap_template: Some(Seen::Found(provider_template("b", "KubeadmConfigTemplate", "boot"))),
        infrastructure_template: Seen::Found(provider_template("i", "DevMachineTemplate", "infra")),
        bootstrap: BTreeMap::new(),
        infrastructure: BTreeMap::new(),
        control_plane: None,
        deployment: None,
        checks: PreflightChecks::default(),
        is_current: true,
        target: None,
        suffixes: vec![],
    }
}

fn check(status: &MachineSetStatus, type_: &str, want: (&str, &str, &str)) {
    let found = status
        .conditions
        .iter()
        .find(|condition| condition.type_ == type_)
        .unwrap();
    assert_eq!(
        (found.status.as_str(), found.reason.as_str(), found.message.as_str()),
        want,
        "{type_}"
    );
}

fn legacy(status: &MachineSetStatus, type_: &str) -> (String, String, String) {
    let old = status.deprecated.as_ref().unwrap().v1beta1.as_ref().unwrap();
    let found = old
        .conditions
        .iter()
        .find(|condition| condition.type_ == type_)
        .unwrap();
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    (found.status.clone(), text(&found.reason), text(&found.message))
}

#[test]
fn a_settled_set_says_what_upstream_says() {
    let set = set("s", 2, "v1.35.0");
    let machines = vec![testing::machine(&set, "a"), testing::machine(&set, "b")];
    let status = status(
        &seen(set, machines),
        &Plan::default(),
        &Done::default(),
        &Moment::at(now()),
    );
    for (type_, value, reason) in [
        ("Remediating", "False", "NotRemediating"),
        ("ScalingDown", "False", "NotScalingDown"),
        ("ScalingUp", "False", "NotScalingUp"),
        ("MachinesReady", "True", "Ready"),
        ("MachinesUpToDate", "True", "UpToDate"),
        ("Deleting", "False", "NotDeleting"),
    ] {
        check(&status, type_, (value, reason, ""));
    }
    let counts = [
        status.replicas,
        status.ready_replicas,
        status.available_replicas,
        status.up_to_date_replicas,
    ];
    assert_eq!(counts, [Some(2); 4]);
    assert_eq!(status.selector.as_deref(), Some("role=worker"));
    assert_eq!(
        (status.versions.len(), status.versions[0].version.as_str()),
        (1, "v1.35.0")
    );
    assert_eq!(legacy(&status, "Ready").0, "True");
    assert_eq!(legacy(&status, "Resized").0, "True");
}

#[test]
fn a_status_that_says_the_same_keeps_its_times() {
    let mut set = set("s", 1, "v1.35.0");
    let machine = testing::machine(&set, "a");
    let first = status(
        &seen(set.clone(), vec![machine.clone()]),
        &Plan::default(),
        &Done::default(),
        &Moment::at(now()),
    );
    set.status = Some(first.clone());
    let later = now() + jiff::SignedDuration::from_mins(5);
    let second = status(
        &seen(set, vec![machine]),
        &Plan::default(),
        &Done::default(),
        &Moment::at(later),
    );
    assert_eq!(first, second);
}

#[test]
fn what_blocks_scaling_up_is_reported() {
    let set = set("s", 3, "v1.35.0");
    let why = "KubeadmControlPlane ns/cp is provisioning (\"ControlPlaneIsStable\" preflight check failed)";
    let plan = Plan {
        obstacle: Some(Obstacle::Preflight(vec![why.to_owned()])),
        ..Plan::default()
    };
    let status = status(&seen(set, vec![]), &plan, &Done::default(), &Moment::at(now()));
    let message = format!("Scaling up from 0 to 3 replicas is blocked because:\n* {why}");
    check(&status, "ScalingUp", ("True", "ScalingUp", &message));
    assert_eq!(
        legacy(&status, "MachinesCreated"),
        ("False".to_owned(), "PreflightCheckFailed".to_owned(), why.to_owned())
    );
    assert_eq!(legacy(&status, "Ready").1, "PreflightCheckFailed");
    assert_eq!(legacy(&status, "Resized").1, "ScalingUp");
}

/// The status of the attempt itself may never be written: what comes next follows from what is there.
#[test]
fn old_conditions_do_not_depend_on_statuses_that_were_skipped() {
    let mut set = set("s", 1, "v1.35.0");
    let mut machine = testing::machine(&set, "a");
    machine.status = None;
    let after = |set: &MachineSet, machine: &Machine| {
        let seen = seen(set.clone(), vec![machine.clone()]);
        status(&seen, &Plan::default(), &Done::default(), &Moment::at(now()))
    };
    let first = after(&set, &machine);
    assert_eq!(legacy(&first, "MachinesCreated").0, "True");
    let growing = "Scaling up MachineSet to 1 replicas (actual 0)";
    assert_eq!(legacy(&first, "Resized").2, growing);
    set.status = Some(first);
    let second = after(&set, &machine);
    assert_eq!(legacy(&second, "Resized").2, growing, "nothing has changed since");
}

#[test]
fn a_missing_template_is_reported_before_it_hurts() {
    let mut seen = seen(set("s", 0, "v1.35.0"), vec![]);
    seen.bootstrap_template = Some(Seen::NotFound);
    let status = status(&seen, &Plan::default(), &Done::default(), &Moment::at(now()));
    let message = "Scaling up would be blocked because KubeadmConfigTemplate does not exist";
    check(&status, "ScalingUp", ("False", "NotScalingUp", message));
    check(&status, "MachinesReady", ("True", "NoReplicas", ""));
}

#[test]
fn scaling_down_and_deletion_count_what_is_left() {
    let mut set = set("s", 1, "v1.35.0");
    let machines = vec![testing::machine(&set, "a"), testing::machine(&set, "b")];
    let less = status(
        &seen(set.clone(), machines.clone()),
        &Plan::default(),
        &Done::default(),
        &Moment::at(now()),
    );
    check(
        &less,
        "ScalingDown",
        ("True", "ScalingDown", "Scaling down from 2 to 1 replicas"),
    );
    set.metadata.deletion_timestamp = serde_json::from_value(serde_json::json!("2026-01-01T11:59:00Z")).unwrap();
    let gone = status(
        &seen(set, machines),
        &Plan::default(),
        &Done::default(),
        &Moment::at(now()),
    );
    check(
        &gone,
        "ScalingDown",
        ("True", "ScalingDown", "Scaling down from 2 to 0 replicas"),
    );
    check(&gone, "Deleting", ("True", "Deleting", "Deleting 2 Machines"));
}

#[test]
fn unhealthy_machines_are_reported_with_what_becomes_of_them() {
    let set = set("s", 2, "v1.35.0");
    let mut sick = testing::machine(&set, "a");
    condition(&mut sick, "HealthCheckSucceeded", "False", "UnhealthyNode", "");
    let only = status(
        &seen(set.clone(), vec![sick.clone()]),
        &Plan::default(),
        &Done::default(),
        &Moment::at(now()),
    );
    let message = "Machine a is not healthy (not to be remediated by MachineSet)";
    check(&only, "Remediating", ("False", "NotRemediating", message));
    condition(&mut sick, "OwnerRemediated", "False", "RemediationDeferred", "too many");
    let asked = status(
        &seen(set, vec![sick]),
        &Plan::default(),
        &Done::default(),
        &Moment::at(now()),
    );
    check(&asked, "Remediating", ("True", "Remediating", "* Machine a: too many"));
}

#[test]
fn a_deletion_that_takes_long_is_named_in_time() {
    let set = set("s", 1, "v1.35.0");
    let mut machines = vec![testing::machine(&set, "a"), testing::machine(&set, "b")];
    // Its deletion began at 11:59.
    testing::deleting(&mut machines[0]);
    let seen = seen(set, machines);
    let at = |now: &str| {
        let moment = Moment::at(now.parse().unwrap());
        let status = status(&seen, &Plan::default(), &Done::default(), &moment);
        (status, moment.next_deadline())
    };
    let due = "2026-01-01T12:14:00Z";
    assert_eq!(at("2026-01-01T12:00:00Z").1, Some(due.parse().unwrap()));
    let (status, deadline) = at(due);
    let message = "Scaling down from 2 to 1 replicas\n* Machine a is in deletion since more than 15m";
    check(&status, "ScalingDown", ("True", "ScalingDown", message));
    assert_eq!(deadline, None);
    let mut going = seen.clone();
    let time = serde_json::from_value(serde_json::json!("2026-01-01T11:59:00Z")).unwrap();
    Arc::make_mut(&mut going.set).metadata.deletion_timestamp = Some(time);
    let moment = Moment::at(due.parse().unwrap());
    let status = super::status(&going, &Plan::default(), &Done::default(), &moment);
    let message = "Deleting 2 Machines\n* Machine a is in deletion since more than 15m";
    check(&status, "Deleting", ("True", "Deleting", message));
}

#[test]
fn a_new_machine_counts_as_unknown_unless_it_is_compared_in_time() {
    let set = set("s", 1, "v1.35.0");
    let mut machine = testing::machine(&set, "a");
    machine.status = None;
    let seen = seen(set, vec![machine]);
    let at = |now: &str| {
        let moment = Moment::at(now.parse().unwrap());
        let status = status(&seen, &Plan::default(), &Done::default(), &moment);
        (status, moment.next_deadline())
    };
    // It was created at 11:00.
    let (status, deadline) = at("2026-01-01T11:00:04Z");
    check(&status, "MachinesUpToDate", ("True", "NoReplicas", ""));
    let due = "2026-01-01T11:00:10Z";
    assert_eq!(deadline, Some(due.parse().unwrap()));
    let (status, deadline) = at(due);
    let message = "* Machine a: Condition UpToDate not yet reported";
    check(&status, "MachinesUpToDate", ("Unknown", "UpToDateUnknown", message));
    assert_eq!(deadline, None);
}
