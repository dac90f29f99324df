//! Machines that move to another set, and are updated in place there.

use super::*;
use crate::shared::in_place::is_pending;
use crate::shared::keys::annotations::{
    ACKNOWLEDGED_MOVE, MOVE_MACHINES_TO_MACHINE_SET, PENDING_ACKNOWLEDGE_MOVE, PENDING_HOOKS,
    RECEIVE_MACHINES_FROM_MACHINE_SETS, UPDATE_IN_PROGRESS,
};

/// An old set with Machines `a` to `c`, that is to have one and gives two to the new set.
fn giving() -> Observed {
    let mut old = set("old", 1, "v1.35.0");
    annotate(&mut old.metadata, MOVE_MACHINES_TO_MACHINE_SET, "new");
    let mut new = set("new", 1, "v1.36.0");
    annotate(&mut new.metadata, RECEIVE_MACHINES_FROM_MACHINE_SETS, "old,older");
    let machines = ["a", "b", "c"].map(|name| testing::machine(&old, name));
    let mut seen = seen(old, machines.into());
    seen.target = Some(Seen::Found(Arc::new(new)));
    seen.is_current = false;
    seen
}

fn change(seen: &mut Observed, which: usize, change: impl FnOnce(&mut Machine)) {
    change_one(&mut seen.machines[which], change);
}

fn change_one(machine: &mut Arc<Machine>, change: impl FnOnce(&mut Machine)) {
    change(Arc::make_mut(machine));
}

#[test]
fn a_move_is_one_write() {
    let plan = check(&giving(), &["move a", "move b"]);
    let Some(Action::MoveMachine { patch, .. }) = plan.actions.iter().find(|a| matches!(a, Action::MoveMachine { .. }))
    else {
        panic!("{plan:?}")
    };
    assert_eq!(
        **patch,
        json!({ "metadata": {
            "uid": "uid-a", "resourceVersion": null,
            "ownerReferences": [{ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineSet", "name": "new",
                "uid": "uid-new", "controller": true, "blockOwnerDeletion": true }],
            "labels": { "machine-template-hash": "hash-new" },
            "annotations": { (UPDATE_IN_PROGRESS): "", (PENDING_ACKNOWLEDGE_MOVE): "" },
        } })
    );
}

#[test]
fn machines_that_cannot_move_are_passed_over() {
    let mut seen = giving();
    change(&mut seen, 0, |machine| machine.status.as_mut().unwrap().node_ref = None);
    change(&mut seen, 1, |machine| {
        annotate(&mut machine.metadata, PENDING_HOOKS, "UpdateMachine");
    });
    check(&seen, &["move c"]);
    // One that is to be replaced is not worth an update, and one that goes already counts.
    let mut seen = giving();
    change(&mut seen, 1, unhealthy);
    let plan = plan(&seen);
    let done: Vec<String> = told(&plan)
        .into_iter()
        .filter(|one| !one.starts_with("Cannot"))
        .collect();
    assert_eq!(done, ["delete b", "move a"]);
    let mut seen = giving();
    change(&mut seen, 2, testing::deleting);
    check(&seen, &["move a"]);
}

#[test]
fn machines_move_only_to_a_set_that_takes_them() {
    let refused = |change: &dyn Fn(&mut MachineSet), why: &str| {
        let mut seen = giving();
        let Some(Seen::Found(target)) = &mut seen.target else {
            panic!()
        };
        change(Arc::make_mut(target));
        let plan = check(&seen, &[]);
        assert!(
            plan.notes.iter().any(|note| note.message.contains(why)),
            "{:?}",
            plan.notes
        );
    };
    refused(
        &|target| annotate(&mut target.metadata, RECEIVE_MACHINES_FROM_MACHINE_SETS, "older"),
        "does not take Machines from this one",
    );
    refused(
        &|target| target.metadata.owner_references.as_mut().unwrap()[0].uid = "other".to_owned(),
        "belongs to another MachineDeployment",
    );
    refused(
        &|target| target.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T11:59:00Z")).unwrap(),
        "is being deleted",
    );
    let mut seen = giving();
    seen.target = Some(Seen::NotFound);
    check(&seen, &[]);
}

/// The new set, with Machine `n` of its own and `a`, which has come from the old one.
fn taking(counted: &str, from: &str) -> Observed {
    let mut new = set("new", 1, "v1.36.0");
    annotate(&mut new.metadata, RECEIVE_MACHINES_FROM_MACHINE_SETS, from);
    annotate(&mut new.metadata, ACKNOWLEDGED_MOVE, counted);
    let mut moved = testing::machine(&new, "a");
    moved.spec.version = Some("v1.35.0".to_owned());
    annotate(&mut moved.metadata, UPDATE_IN_PROGRESS, "");
    annotate(&mut moved.metadata, PENDING_ACKNOWLEDGE_MOVE, "");
    let own = testing::machine(&new, "n");
    seen(new, vec![moved, own])
}

#[test]
fn a_machine_that_is_not_counted_yet_is_no_surplus_and_waits() {
    check(&taking("", "old"), &[]);
    check(&taking("b", "old"), &[]);
}

#[test]
fn the_update_begins_with_the_objects_and_ends_with_the_hook() {
    let mut seen = taking("a", "old");
    Arc::make_mut(&mut seen.set).spec.replicas = Some(2);
    let plan = check(&seen, &["update a"]);
    let Some(Action::BeginUpdate(beginning)) = plan.actions.iter().find(|a| matches!(a, Action::BeginUpdate(_))) else {
        panic!("{plan:?}")
    };
    let kinds: Vec<_> = beginning
        .objects
        .iter()
        .map(|object| object["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["DevMachine", "KubeadmConfig"]);
    for object in &beginning.objects {
        assert_eq!(object["metadata"]["annotations"][UPDATE_IN_PROGRESS], "");
        assert_eq!(object["metadata"]["ownerReferences"][0]["kind"], "Machine");
    }
    assert_eq!(beginning.objects[0]["metadata"]["uid"], "uid-DevMachine-a");
    assert_eq!(beginning.objects[0]["spec"], json!({ "from": "infra" }));
    assert_eq!(beginning.desired.spec.version.as_deref(), Some("v1.36.0"));
    assert_eq!(
        beginning.patch,
        json!({ "metadata": { "uid": "uid-a",
            "annotations": { (PENDING_ACKNOWLEDGE_MOVE): null, (PENDING_HOOKS): "UpdateMachine" } } })
    );
    // From then on, it is a Machine of the set like others.
    change(&mut seen, 0, |machine| {
        annotate(&mut machine.metadata, PENDING_HOOKS, "Other,UpdateMachine");
    });
    assert!(is_pending(&seen.machines[0]));
    check(&seen, &[]);
}

#[test]
fn a_set_that_takes_no_machines_any_more_begins_without_a_count() {
    // It has become an old set: the Machine is one too many, and goes first.
    check(&taking("", ""), &["update a", "delete a"]);
}

#[test]
fn an_update_without_its_template_says_so() {
    let mut seen = taking("a", "old");
    Arc::make_mut(&mut seen.set).spec.replicas = Some(2);
    seen.infrastructure_template = Seen::NotFound;
    let plan = check(&seen, &[]);
    let why = "the update of Machine a in place cannot begin: DevMachineTemplate infra does not exist";
    assert_eq!(plan.blocked, Some(Blocked::failed("CannotPlan", why)));
}
