//! Cases of the plan of a MachineSet.

mod in_place;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use windlass_api::core::MachineSet;

use super::*;
use crate::shared::machines::owner_reference;
use crate::shared::preflight::{ControlPlaneFacts, PreflightChecks};
use crate::shared::testing::{self, annotate, cluster, condition, provider_template, set};

const BOOTSTRAP: &str = "bootstrap.cluster.x-k8s.io";
const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";

fn seen(set: MachineSet, machines: Vec<Machine>) -> Observed {
    let machines: Vec<_> = machines.into_iter().map(Arc::new).collect();
    let labels = json!(desired::machine_labels(&set));
    let clones = |group: &str, kind: &str| -> BTreeMap<_, _> {
        let clone = |m: &Arc<Machine>| {
            let name = m.metadata.name.clone().unwrap();
            (
                name.clone(),
                Seen::Found(testing::clone(group, kind, &name, labels.clone())),
            )
        };
        machines.iter().map(clone).collect()
    };
    Observed {
        bootstrap: clones(BOOTSTRAP, "KubeadmConfig"),
        infrastructure: clones(INFRASTRUCTURE, "DevMachine"),
        set: Arc::new(set),
        cluster: Seen::Found(cluster()),
        machines,
        orphans: vec![],
        bootstrap_template: Some(Seen::Found(provider_template(
            BOOTSTRAP,
            "KubeadmConfigTemplate",
            "boot",
        ))),
        infrastructure_template: Seen::Found(provider_template(INFRASTRUCTURE, "DevMachineTemplate", "infra")),
        control_plane: Some(Seen::Found(ControlPlaneFacts {
            kind: "KubeadmControlPlane".to_owned(),
            namespace: "ns".to_owned(),
            name: "cp".to_owned(),
            spec_version: Some("v1.35.0".to_owned()),
            status_version: Some("v1.35.0".to_owned()),
            upgrading: false,
        })),
        deployment: Some(Seen::Found(Arc::new(testing::deployment(3, "v1.35.0")))),
        checks: PreflightChecks::default(),
        is_current: true,
        target: None,
        suffixes: ["aaaaa", "bbbbb", "ccccc"].map(str::to_owned).into(),
    }
}

/// What a plan does besides applying Machines as they are.
fn told(plan: &Plan) -> Vec<String> {
    let tell = |action: &Action| match action {
        Action::UpdateMachine(_) | Action::ChangeDeletion { .. } => None,
        Action::CreateMachine(new) => Some(format!("create {}", new.machine.metadata.name.as_deref().unwrap())),
        Action::DeleteMachine(machine) => Some(format!("delete {}", machine.metadata.name())),
        Action::SayRemediation { machine, verdict } => {
            let what = verdict.as_ref().map_or("take back", |verdict| &verdict.reason);
            Some(format!("{what} {}", machine.metadata.name()))
        }
        Action::Complete { object } => Some(format!(
            "complete {} {}",
            object["kind"].as_str().unwrap(),
            object["metadata"]["name"].as_str().unwrap()
        )),
        Action::UpdateClone { object, .. } => Some(format!("label {}", object["kind"].as_str().unwrap())),
        Action::AdoptMachine(machine) => Some(format!("adopt {}", machine.metadata.name())),
        Action::MoveMachine { machine, .. } => Some(format!("move {}", machine.metadata.name())),
        Action::BeginUpdate(beginning) => Some(format!("update {}", beginning.machine.metadata.name())),
        other => Some(format!("{other:?}")),
    };
    plan.actions.iter().filter_map(tell).collect()
}

fn check(seen: &Observed, want: &[&str]) -> Plan {
    let plan = plan(seen);
    assert_eq!(told(&plan), want);
    plan
}

fn unhealthy(machine: &mut Machine) {
    condition(machine, "HealthCheckSucceeded", "False", "UnhealthyNode", "");
    condition(machine, "OwnerRemediated", "False", "WaitingForRemediation", "");
}

#[test]
fn missing_machines_are_made_complete() {
    let set = set("s", 2, "v1.35.0");
    let have = testing::machine(&set, "s-1");
    let plan = check(&seen(set, vec![have]), &["create s-aaaaa"]);
    let Some(Action::CreateMachine(new)) = plan.actions.last() else {
        panic!("{plan:?}")
    };
    let machine = serde_json::to_value(&new.machine).unwrap();
    assert_eq!(machine["metadata"]["finalizers"], json!(["machine.cluster.x-k8s.io"]));
    assert_eq!(
        machine["metadata"]["labels"],
        json!({ "cluster.x-k8s.io/cluster-name": "c", "cluster.x-k8s.io/deployment-name": "md",
            "cluster.x-k8s.io/set-name": "s", "role": "worker" })
    );
    assert_eq!(machine["metadata"]["ownerReferences"][0]["kind"], "MachineSet");
    assert_eq!(
        machine["spec"],
        json!({
            "clusterName": "c", "version": "v1.35.0",
            "bootstrap": { "configRef": { "apiGroup": BOOTSTRAP, "kind": "KubeadmConfig", "name": "s-aaaaa" } },
            "infrastructureRef": { "apiGroup": INFRASTRUCTURE, "kind": "DevMachine", "name": "s-aaaaa" },
        })
    );
    let kinds: Vec<_> = new.clones.iter().map(|clone| clone["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["KubeadmConfig", "DevMachine"]);
    assert_eq!(new.clones[1]["metadata"]["labels"], machine["metadata"]["labels"]);
    assert_eq!(new.clones[1]["spec"], json!({ "from": "infra" }));
}

#[test]
fn a_creation_that_was_interrupted_is_completed() {
    let set = set("s", 1, "v1.35.0");
    let machine = testing::machine(&set, "s-1");
    let mut seen = seen(set, vec![machine]);
    seen.infrastructure.insert("s-1".to_owned(), Seen::NotFound);
    let plan = check(&seen, &["complete DevMachine s-1"]);
    let Action::Complete { object } = &plan.actions[0] else {
        panic!("{plan:?}")
    };
    assert_eq!(object["metadata"]["ownerReferences"][0]["uid"], "uid-s-1");
}

#[test]
fn what_a_provisioned_machine_lost_is_not_made_again() {
    let set = set("s", 1, "v1.35.0");
    let mut machine = testing::machine(&set, "s-1");
    let status = machine.status.as_mut().unwrap();
    status.initialization.get_or_insert_default().infrastructure_provisioned = Some(true);
    let mut seen = seen(set, vec![machine]);
    seen.infrastructure.insert("s-1".to_owned(), Seen::NotFound);
    check(&seen, &[]);
}

#[test]
fn failed_preflight_checks_block_and_are_looked_at_again() {
    let set = set("s", 1, "v1.35.0");
    let mut seen = seen(set, vec![]);
    if let Some(Seen::Found(plane)) = &mut seen.control_plane {
        plane.status_version = None;
    }
    let plan = check(&seen, &[]);
    assert!(
        matches!(&plan.obstacle, Some(Obstacle::Preflight(found)) if found.len() == 1),
        "{plan:?}"
    );
    let blocked = plan.blocked.unwrap();
    assert_eq!(
        (blocked.reason, blocked.until),
        ("PreflightCheckFailed", Until::After(BLOCKED_AGAIN))
    );
}

#[test]
fn a_missing_template_blocks() {
    let mut seen = seen(set("s", 1, "v1.35.0"), vec![]);
    seen.infrastructure_template = Seen::NotFound;
    let plan = check(&seen, &[]);
    assert_eq!(
        plan.obstacle,
        Some(Obstacle::Infrastructure(
            "DevMachineTemplate infra does not exist".to_owned()
        ))
    );
}

#[test]
fn making_machines_can_be_disabled() {
    let mut set = set("s", 1, "v1.35.0");
    annotate(&mut set.metadata, "cluster.x-k8s.io/disable-machine-create", "true");
    check(&seen(set, vec![]), &[]);
}

#[test]
fn scaling_down_takes_the_least_useful_machines_first() {
    let mut set = set("s", 1, "v1.35.0");
    let mut machines: Vec<_> = ["a", "b", "c", "d"]
        .iter()
        .map(|name| testing::machine(&set, name))
        .collect();
    condition(&mut machines[2], "HealthCheckSucceeded", "False", "UnhealthyNode", "");
    annotate(&mut machines[3].metadata, "cluster.x-k8s.io/delete-machine", "");
    check(
        &seen(set.clone(), machines.clone()),
        &["delete d", "delete c", "delete a"],
    );
    testing::deleting(&mut machines[0]);
    check(&seen(set.clone(), machines.clone()), &["delete d", "delete c"]);
    set.spec.replicas = Some(3);
    check(&seen(set, machines), &[]);
}

#[test]
fn changes_reach_machines_that_are_being_deleted() {
    let mut set = set("s", 1, "v1.35.0");
    let mut going = testing::machine(&set, "a");
    testing::deleting(&mut going);
    let changed = |set: &MachineSet, machine: &Machine| {
        let plan = plan(&seen(set.clone(), vec![machine.clone()]));
        let patches = plan.actions.into_iter().filter_map(|action| match action {
            Action::ChangeDeletion { patch, .. } => Some(patch["spec"]["deletion"].clone()),
            Action::UpdateMachine(_) => panic!("it is applied"),
            _ => None,
        });
        patches.collect::<Vec<_>>()
    };
    set.spec.template.spec.deletion = serde_json::from_value(json!({ "nodeDrainTimeoutSeconds": 5 })).unwrap();
    let limits = json!({
        "nodeDrainTimeoutSeconds": 5, "nodeVolumeDetachTimeoutSeconds": null, "nodeDeletionTimeoutSeconds": 10,
    });
    assert_eq!(changed(&set, &going), [limits]);
    going.spec.deletion =
        serde_json::from_value(json!({ "nodeDrainTimeoutSeconds": 5, "nodeDeletionTimeoutSeconds": 10 })).unwrap();
    assert!(
        changed(&set, &going).is_empty(),
        "nothing is written when nothing changes"
    );
    // A taint that keeps Pods away from Nodes that are drained goes while they are.
    going.spec.taints =
        serde_json::from_value(json!([{ "key": "example.com/full", "effect": "NoSchedule", "propagation": "Always" }]))
            .unwrap();
    set.spec.template.spec.min_ready_seconds = Some(5);
    let plan = plan(&seen(set, vec![going]));
    let patch = plan.actions.into_iter().find_map(|action| match action {
        Action::ChangeDeletion { patch, .. } => Some(patch["spec"].clone()),
        _ => None,
    });
    let patch = patch.expect("it is patched");
    assert_eq!((&patch["taints"], &patch["minReadySeconds"]), (&json!(null), &json!(5)));
}

#[test]
fn the_order_of_deletion_is_as_told() {
    let mut set = set("s", 1, "v1.35.0");
    let mut machines: Vec<_> = ["a", "b"].iter().map(|name| testing::machine(&set, name)).collect();
    machines[1].metadata.creation_timestamp = serde_json::from_value(json!("2026-01-01T10:00:00Z")).unwrap();
    for (order, want) in [("Random", "delete a"), ("Newest", "delete a"), ("Oldest", "delete b")] {
        set.spec.deletion = serde_json::from_value(json!({ "order": order })).unwrap();
        check(&seen(set.clone(), machines.clone()), &[want]);
    }
}

#[test]
fn unhealthy_machines_are_replaced_as_many_at_a_time_as_allowed() {
    let set = set("s", 3, "v1.35.0");
    let mut machines: Vec<_> = ["a", "b", "c"]
        .iter()
        .map(|name| testing::machine(&set, name))
        .collect();
    unhealthy(&mut machines[0]);
    unhealthy(&mut machines[1]);
    annotate(&mut machines[1].metadata, "cluster.x-k8s.io/remediate-machine", "");
    let mut seen = seen(set, machines);
    check(
        &seen,
        &["MachineDeleting b", "delete b", "MachineDeleting a", "delete a"],
    );
    let mut deployment = testing::deployment(3, "v1.35.0");
    deployment.spec.remediation = serde_json::from_value(json!({ "maxInFlight": 1 })).unwrap();
    seen.deployment = Some(Seen::Found(Arc::new(deployment)));
    check(&seen, &["RemediationDeferred a", "MachineDeleting b", "delete b"]);
    seen.is_current = false;
    check(
        &seen,
        &["CannotBeRemediated a", "CannotBeRemediated b"]
            .map(|s| s)
            .iter()
            .rev()
            .copied()
            .collect::<Vec<_>>(),
    );
}

#[test]
fn a_machine_that_a_user_deletes_is_no_replacement_in_flight() {
    let set = set("s", 2, "v1.35.0");
    let mut machines: Vec<_> = ["a", "b"].iter().map(|name| testing::machine(&set, name)).collect();
    machines.iter_mut().for_each(unhealthy);
    testing::deleting(&mut machines[0]);
    let mut deployment = testing::deployment(2, "v1.35.0");
    deployment.spec.remediation = serde_json::from_value(json!({ "maxInFlight": 1 })).unwrap();
    let with = |machines: &[Machine]| {
        let mut seen = seen(set.clone(), machines.to_vec());
        seen.deployment = Some(Seen::Found(Arc::new(deployment.clone())));
        seen
    };
    check(&with(&machines), &["MachineDeleting b", "delete b"]);
    condition(&mut machines[0], "OwnerRemediated", "False", "MachineDeleting", "");
    check(&with(&machines), &["RemediationDeferred b"]);
}

#[test]
fn the_newest_of_unhealthy_machines_are_replaced_first() {
    let set = set("s", 3, "v1.35.0");
    let mut machines: Vec<_> = ["a", "b", "c"]
        .iter()
        .map(|name| testing::machine(&set, name))
        .collect();
    for (machine, made) in machines.iter_mut().zip(["10:00:00Z", "10:00:02Z", "10:00:01Z"]) {
        unhealthy(machine);
        machine.metadata.creation_timestamp = serde_json::from_value(json!(format!("2026-01-01T{made}"))).unwrap();
    }
    let mut seen = seen(set, machines);
    // A fifth of the deployment's ten replicas, whatever this set has.
    let mut deployment = testing::deployment(10, "v1.35.0");
    deployment.spec.remediation = serde_json::from_value(json!({ "maxInFlight": "20%" })).unwrap();
    seen.deployment = Some(Seen::Found(Arc::new(deployment)));
    check(
        &seen,
        &[
            "RemediationDeferred a",
            "MachineDeleting b",
            "delete b",
            "MachineDeleting c",
            "delete c",
        ],
    );
}

#[test]
fn unhealthy_machines_wait_for_the_preflight_checks() {
    let set = set("s", 1, "v1.35.0");
    let mut machine = testing::machine(&set, "a");
    unhealthy(&mut machine);
    let mut seen = seen(set, vec![machine]);
    if let Some(Seen::Found(plane)) = &mut seen.control_plane {
        plane.upgrading = true;
    }
    check(&seen, &["RemediationDeferred a"]);
}

#[test]
fn a_machine_that_recovered_is_no_longer_to_be_replaced() {
    let set = set("s", 1, "v1.35.0");
    let mut machine = testing::machine(&set, "a");
    unhealthy(&mut machine);
    condition(&mut machine, "HealthCheckSucceeded", "True", "HealthCheckSucceeded", "");
    check(&seen(set, vec![machine]), &["take back a"]);
}

#[test]
fn labels_and_annotations_of_the_template_go_to_existing_objects() {
    let set = set("s", 1, "v1.35.0");
    let machine = testing::machine(&set, "a");
    let mut seen = seen(set.clone(), vec![machine]);
    let mut changed = set;
    changed
        .spec
        .template
        .metadata
        .get_or_insert_default()
        .labels
        .insert("team".to_owned(), "a".to_owned());
    seen.set = Arc::new(changed);
    let plan = check(&seen, &["label DevMachine", "label KubeadmConfig"]);
    let Some(Action::UpdateMachine(machine)) = plan.actions.last() else {
        panic!("{plan:?}")
    };
    assert_eq!(machine.metadata.labels.as_ref().unwrap()["team"], "a");
    assert_eq!(machine.metadata.uid.as_deref(), Some("uid-a"));
}

#[test]
fn a_label_that_the_template_lost_goes_from_the_clones_before_the_machine() {
    let set = set("s", 1, "v1.35.0");
    let mut machine = testing::machine(&set, "a");
    machine
        .metadata
        .labels
        .as_mut()
        .unwrap()
        .insert("team".to_owned(), "a".to_owned());
    let mut seen = seen(set.clone(), vec![machine]);
    let mut labels = json!(desired::machine_labels(&set));
    labels["team"] = json!("a");
    let clone = testing::clone(INFRASTRUCTURE, "DevMachine", "a", labels);
    seen.infrastructure.insert("a".to_owned(), Seen::Found(clone));
    let plan = check(&seen, &["label DevMachine"]);
    let Action::UpdateClone { change, .. } = &plan.actions[0] else {
        panic!("{plan:?}")
    };
    assert_eq!(
        (&change.apply, change.lost_labels.as_slice()),
        (&None, &["team".to_owned()][..])
    );
}

#[test]
fn machines_without_a_controller_are_adopted_and_count() {
    let set = set("s", 1, "v1.35.0");
    let mut orphan = testing::machine(&set, "a");
    orphan.metadata.owner_references = None;
    let mut seen = seen(set, vec![]);
    seen.orphans = vec![Arc::new(orphan)];
    check(&seen, &["adopt a"]);
}

#[test]
fn a_set_goes_after_its_machines() {
    let mut set = set("s", 2, "v1.35.0");
    set.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T11:59:00Z")).unwrap();
    let mut machines: Vec<_> = ["a", "b"].iter().map(|name| testing::machine(&set, name)).collect();
    testing::deleting(&mut machines[0]);
    check(&seen(set.clone(), machines), &["delete b"]);
    check(&seen(set, vec![]), &["RemoveFinalizer"]);
}

#[test]
fn a_set_without_its_cluster_waits() {
    let mut seen = seen(set("s", 1, "v1.35.0"), vec![]);
    seen.cluster = Seen::NotFound;
    let plan = check(&seen, &[]);
    let why = "spec.clusterName: Cluster c does not exist";
    assert_eq!(plan.blocked, Some(Blocked::failed("CannotPlan", why)));
}

#[test]
fn a_set_of_its_own_joins_its_cluster_by_owner_and_label() {
    let check = |owned: bool, labelled: bool, expect: bool| {
        let mut set = set("s", 0, "v1.35.0");
        set.metadata.labels = labelled.then(|| [(labels::CLUSTER_NAME.to_owned(), "c".to_owned())].into());
        let owner = owner_reference("Cluster", &cluster().metadata, false);
        set.metadata.owner_references = owned.then(|| vec![owner]);
        let plan = plan(&seen(set, vec![]));
        assert_eq!(plan.actions.contains(&Action::AdoptSet), expect, "{owned} {labelled}");
    };
    check(false, false, true);
    check(true, false, true);
    check(false, true, true);
    check(true, true, false);
}
