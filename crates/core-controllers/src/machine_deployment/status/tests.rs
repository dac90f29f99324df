//! Cases of the status of a MachineDeployment.

use std::collections::BTreeMap;

use windlass_api::core::MachineDeployment;
use windlass_controller_runtime::Seen;

use super::*;
use crate::machine_deployment::plan::tests::plan;
use crate::shared::testing::{self, cluster, condition, now, provider_template, set};

fn seen(deployment: MachineDeployment, sets: Vec<(MachineSet, Vec<Machine>)>) -> Observed {
    let machines: BTreeMap<_, _> = sets
        .iter()
        .map(|(set, machines)| {
            (
                set.metadata.uid.clone().unwrap(),
                machines.iter().cloned().map(Arc::new).collect(),
            )
        })
        .collect();
    Observed {
        deployment: Arc::new(deployment),
        cluster: Seen::Found(cluster()),
        sets: sets.into_iter().map(|(set, _)| Arc::new(set)).collect(),
        orphans: vec![],
        machines,
        bootstrap_template: Some(Seen::Found(provider_template("b", "KubeadmConfigTemplate", "boot"))),
        infrastructure_template: Seen::Found(provider_template("i", "DevMachineTemplate", "infra")),
        in_place: None,
        suffix: "aaaaa".to_owned(),
    }
}

fn computed(seen: &Observed) -> MachineDeploymentStatus {
    let moment = Moment::at(now());
    status(seen, &plan(seen, &moment), &moment)
}

fn check(status: &MachineDeploymentStatus, type_: &str, want: (&str, &str, &str)) {
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

fn machines(set: &MachineSet, names: &[&str]) -> Vec<Machine> {
    names.iter().map(|name| testing::machine(set, name)).collect()
}

#[test]
fn a_settled_deployment_says_what_upstream_says() {
    let current = set("current", 2, "v1.35.0");
    let both = machines(&current, &["a", "b"]);
    let status = computed(&seen(testing::deployment(2, "v1.35.0"), vec![(current, both)]));
    for (type_, value, reason) in [
        ("Available", "True", "Available"),
        ("RollingOut", "False", "NotRollingOut"),
        ("Remediating", "False", "NotRemediating"),
        ("ScalingDown", "False", "NotScalingDown"),
        ("ScalingUp", "False", "NotScalingUp"),
        ("MachinesReady", "True", "Ready"),
        ("MachinesUpToDate", "True", "UpToDate"),
        ("Deleting", "False", "NotDeleting"),
    ] {
        check(&status, type_, (value, reason, ""));
    }
    assert_eq!(
        (status.phase.as_deref(), status.observed_generation),
        (Some("Running"), Some(1))
    );
    assert_eq!(
        status.selector.as_deref(),
        Some("cluster.x-k8s.io/cluster-name=c,role=worker")
    );
    let old = status.deprecated.unwrap().v1beta1.unwrap();
    assert_eq!((old.updated_replicas, old.unavailable_replicas), (Some(2), Some(0)));
}

#[test]
fn before_there_is_a_set_the_replicas_are_unknown() {
    let status = computed(&seen(testing::deployment(3, "v1.35.0"), vec![]));
    let message = "Waiting for status.availableReplicas set";
    check(
        &status,
        "Available",
        ("Unknown", "WaitingForAvailableReplicasSet", message),
    );
    check(
        &status,
        "ScalingUp",
        ("True", "ScalingUp", "Scaling up from 0 to 3 replicas"),
    );
    assert_eq!((status.replicas, status.phase.as_deref()), (None, Some("ScalingUp")));
    assert_eq!(
        status.deprecated.unwrap().v1beta1.unwrap().unavailable_replicas,
        Some(3)
    );
}

#[test]
fn a_rollout_is_reported_with_its_reasons() {
    let old = set("old", 2, "v1.35.0");
    let mut stale = machines(&old, &["a", "b"]);
    for machine in &mut stale {
        condition(
            machine,
            "UpToDate",
            "False",
            "NotUpToDate",
            "* Version v1.35.0, v1.36.0 required",
        );
    }
    let status = computed(&seen(testing::deployment(2, "v1.36.0"), vec![(old, stale)]));
    let message = "Rolling out 2 not up-to-date replicas\n* Version v1.35.0, v1.36.0 required";
    check(&status, "RollingOut", ("True", "RollingOut", message));
    let message = "* Machines a, b:\n  * Version v1.35.0, v1.36.0 required";
    check(&status, "MachinesUpToDate", ("False", "NotUpToDate", message));
}

#[test]
fn too_few_available_machines_are_reported_with_the_limit() {
    let current = set("current", 2, "v1.35.0");
    let mut both = machines(&current, &["a", "b"]);
    condition(&mut both[0], "Available", "False", "NotAvailable", "");
    let status = computed(&seen(testing::deployment(2, "v1.35.0"), vec![(current, both)]));
    let message =
        "1 available replicas, at least 2 required (spec.strategy.rollout.maxUnavailable is 0, spec.replicas is 2)";
    check(&status, "Available", ("False", "NotAvailable", message));
}

#[test]
fn deletion_counts_machines_then_sets() {
    let mut deployment = testing::deployment(1, "v1.35.0");
    deployment.metadata.deletion_timestamp = serde_json::from_value(serde_json::json!("2026-01-01T11:59:00Z")).unwrap();
    let current = set("current", 1, "v1.35.0");
    let one = machines(&current, &["a"]);
    let with = computed(&seen(deployment.clone(), vec![(current.clone(), one)]));
    check(&with, "Deleting", ("True", "Deleting", "Deleting 1 Machine"));
    assert_eq!(
        with.phase.as_deref(),
        Some("ScalingDown"),
        "however many there are to be"
    );
    let without = computed(&seen(deployment, vec![(current, vec![])]));
    check(&without, "Deleting", ("True", "Deleting", "Deleting 1 MachineSets"));
}
