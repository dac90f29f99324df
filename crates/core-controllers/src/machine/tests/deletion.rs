//! Cases for the order in which a Machine goes, and for what keeps it from going on.

mod unrecorded;

use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::{Value, json};
use windlass_api::core::MachineStatus;
use windlass_api::k8s::Pod;
use windlass_cluster_cache::Workload;
use windlass_conditions::get;
use windlass_controller_runtime::{Moment, ObjectKey, ReconcileError, Seen, Until};

use super::{
    at, change, check_condition, cluster, deleting, down, from, now, planned, remote, reported, reported_at, running,
};
use crate::machine::apply::Done;
use crate::machine::observe::Observed;
use crate::machine::plan::{Action, External, Plan};
use crate::machine::status::status;

fn delete(which: External, kind: &str) -> Action {
    Action::Delete {
        which,
        kind: kind.to_owned(),
    }
}

fn delete_node(required: bool) -> Action {
    Action::DeleteNode {
        name: "node-m".to_owned(),
        uid: None,
        required,
    }
}

/// What the stages do, without what is kept up on the Node all the time.
fn stage_actions(plan: &Plan) -> Vec<Action> {
    let of_stages = plan
        .actions
        .iter()
        .filter(|action| !matches!(action, Action::PatchNode { .. }));
    of_stages.cloned().collect()
}

fn check_event(plan: &Plan, reason: &str) {
    let mut events = plan.notes.iter().filter_map(|note| note.event.as_ref());
    assert!(events.any(|event| event.reason == reason), "{:?}", plan.notes);
}

#[test]
fn a_drain_that_takes_long_names_its_cause() {
    let mut seen = running();
    deleting(&mut seen);
    change(&mut seen, |machine| {
        machine.metadata.deletion_timestamp = from(json!("2026-03-01T09:30:00Z"));
    });
    let pod = json!({"metadata": {"namespace": "apps", "name": "web", "deletionTimestamp": "2026-03-01T09:40:00Z"}});
    remote(&mut seen).pods = Seen::Found(vec![from(pod)]);
    let (_, status) = reported(&seen);
    let message = "* Deleting: Machine deletion in progress since more than 15m, stage: DrainingNode, \
                   delay likely due to Pods not terminating";
    check_condition(&status, "Ready", ("False", "NotReady", message));
}

#[test]
fn a_machine_that_goes_joins_its_cluster() {
    let mut seen = running();
    deleting(&mut seen);
    change(&mut seen, |machine| machine.metadata.labels = None);
    let joins = |plan: &Plan| plan.actions.iter().any(|action| matches!(action, Action::Join(_)));
    assert!(joins(&reported(&seen).0));
    // Not with its last write.
    seen.infrastructure = Seen::NotFound;
    seen.bootstrap = Some(Seen::NotFound);
    remote(&mut seen).node = None;
    let plan = reported(&seen).0;
    assert!(
        plan.actions.contains(&Action::RemoveFinalizer) && !joins(&plan),
        "{:?}",
        plan.actions
    );
}

#[test]
fn a_machine_that_was_moved_is_left_alone() {
    let mut seen = running();
    change(&mut seen, |machine| machine.spec.cluster_name = "other".to_owned());
    let (plan, status) = reported(&seen);
    assert!(plan.actions.is_empty() && plan.blocked.is_some(), "{:?}", plan.actions);
    let why = "spec.clusterName other is not the Cluster c that the object belongs to: set it back to c";
    check_condition(&status, "NodeHealthy", ("Unknown", "InspectionFailed", why));
    deleting(&mut seen);
    let (plan, status) = reported(&seen);
    assert!(stage_actions(&plan).is_empty(), "{:?}", plan.actions);
    check_condition(&status, "Deleting", ("True", "InternalError", why));
    // A wrong label alone is set right.
    change(&mut seen, |machine| {
        machine.spec.cluster_name = "c".to_owned();
        machine.metadata.deletion_timestamp = None;
        machine.metadata.labels = Some(from(json!({"cluster.x-k8s.io/cluster-name": "other"})));
    });
    let (plan, _) = reported(&seen);
    assert!(plan.actions.iter().any(|action| matches!(action, Action::Join(_))));
}

/// Every step of a deletion, in order: what is done and which reason is reported.
#[test]
fn a_machine_goes_stage_by_stage() {
    let mut seen = running();
    deleting(&mut seen);
    change(&mut seen, |machine| {
        machine.metadata.annotations = Some(from(
            json!({"pre-drain.delete.hook.machine.cluster.x-k8s.io/a": "", "pre-terminate.delete.hook.machine.cluster.x-k8s.io/b": ""}),
        ));
    });
    let (first, status) = reported(&seen);
    assert!(stage_actions(&first).is_empty());
    check_condition(
        &status,
        "Deleting",
        (
            "True",
            "WaitingForPreDrainHook",
            "Waiting for pre-drain hooks to succeed (hooks: pre-drain.delete.hook.machine.cluster.x-k8s.io/a)",
        ),
    );
    assert!(status.deletion.unwrap().wait_for_pre_drain_hook_start_time.is_some());

    change(&mut seen, |machine| {
        machine.metadata.annotations = Some(from(
            json!({"pre-terminate.delete.hook.machine.cluster.x-k8s.io/b": ""}),
        ));
    });
    let pod: Pod = from(json!({"metadata": {"namespace": "apps", "name": "web"}}));
    remote(&mut seen).pods = Seen::Found(vec![pod]);
    let (drain, status) = reported(&seen);
    assert_eq!(
        stage_actions(&drain),
        [
            Action::Cordon("node-m".to_owned()),
            Action::Evict {
                pods: vec![ObjectKey::new("apps", "web")],
                grace_period: None,
            }
        ]
    );
    assert_eq!(get(&status.conditions, "Deleting").unwrap().reason, "DrainingNode");
    check_condition(
        &status,
        "Ready",
        (
            "False",
            "NotReady",
            "* Deleting: Machine deletion in progress, stage: DrainingNode",
        ),
    );

    remote(&mut seen).pods = Seen::Found(Vec::new());
    let (hook, status) = reported(&seen);
    assert!(
        !hook
            .actions
            .iter()
            .any(|action| matches!(action, Action::Delete { .. }))
    );
    assert_eq!(
        get(&status.conditions, "Deleting").unwrap().reason,
        "WaitingForPreTerminateHook"
    );

    change(&mut seen, |machine| machine.metadata.annotations = None);
    let (infrastructure, status) = reported(&seen);
    assert!(
        infrastructure
            .actions
            .contains(&delete(External::Infrastructure, "DevMachine"))
    );
    check_condition(
        &status,
        "Deleting",
        (
            "True",
            "WaitingForInfrastructureDeletion",
            "Waiting for DevMachine m to be deleted",
        ),
    );

    seen.infrastructure = Seen::NotFound;
    let (bootstrap, _) = reported(&seen);
    assert_eq!(
        stage_actions(&bootstrap),
        [delete(External::Bootstrap, "KubeadmConfig")]
    );

    seen.bootstrap = Some(Seen::NotFound);
    let (last, status) = reported(&seen);
    assert_eq!(last.actions, [delete_node(false), Action::RemoveFinalizer]);
    check_condition(&status, "Deleting", ("True", "DeletionCompleted", "Deletion completed"));
}

#[test]
fn nothing_of_a_node_is_touched_when_its_cluster_goes() {
    let mut seen = running();
    deleting(&mut seen);
    let mut going: windlass_api::core::Cluster = from(cluster());
    going.metadata.deletion_timestamp = Some(from(json!("2026-03-01T09:59:00Z")));
    seen.cluster = Seen::Found(Arc::new(going));
    let (plan, _) = reported(&seen);
    assert_eq!(plan.actions, [delete(External::Infrastructure, "DevMachine")]);
    assert!(
        plan.notes
            .iter()
            .any(|note| note.message.contains("the Cluster is being deleted"))
    );
}

#[test]
fn a_deletion_that_takes_long_is_pointed_out_in_time() {
    let mut seen = running();
    deleting(&mut seen);
    change(&mut seen, |machine| {
        machine.metadata.annotations = Some(from(json!({"pre-drain.delete.hook.machine.cluster.x-k8s.io/a": ""})));
    });
    let due = at("2026-03-01T10:14:00Z");
    assert_eq!(reported_at(&seen, now()).2, Some(due));
    let (_, status, deadline) = reported_at(&seen, due);
    let slow = "* Deleting: Machine deletion in progress since more than 15m, stage: WaitingForPreDrainHook";
    check_condition(&status, "Ready", ("False", "NotReady", slow));
    assert_eq!(deadline, None);
}

#[test]
fn a_drain_ends_at_its_limit() {
    let mut seen = running();
    deleting(&mut seen);
    change(&mut seen, |machine| {
        machine.spec.deletion = Some(from(json!({"nodeDrainTimeoutSeconds": 60})));
    });
    let pod: Pod = from(json!({"metadata": {"namespace": "apps", "name": "web"}}));
    remote(&mut seen).pods = Seen::Found(vec![pod]);
    let (_, status, deadline) = reported_at(&seen, now());
    check_reason(&status, "DrainingNode");
    let due = at("2026-03-01T10:01:00Z");
    assert_eq!(deadline, Some(due));
    change(&mut seen, |machine| machine.status = Some(status));
    check_reason(&reported_at(&seen, due).1, "WaitingForInfrastructureDeletion");
}

fn check_reason(status: &MachineStatus, reason: &str) {
    assert_eq!(get(&status.conditions, "Deleting").unwrap().reason, reason);
}

fn is_stopped(plan: &Plan) -> bool {
    let stops = |action: &Action| {
        matches!(
            action,
            Action::Delete { .. } | Action::DeleteNode { .. } | Action::RemoveFinalizer
        )
    };
    !plan.actions.iter().any(stops)
}

#[test]
fn without_a_connection_a_node_is_not_taken_for_drained() {
    for unknown in [
        Workload::NotTried("no attempt was made yet".to_owned()),
        down("2026-03-01T09:59:30Z", Some("2026-03-01T09:59:20Z")),
    ] {
        let mut seen = running();
        deleting(&mut seen);
        seen.remote = unknown;
        let (plan, status) = reported(&seen);
        assert!(is_stopped(&plan), "{:?}", plan.actions);
        assert_eq!(plan.blocked.as_ref().map(|blocked| blocked.until), Some(Until::Event));
        check_reason(&status, "DrainingNode");
        check_event(&plan, "FailedDrainNode");
        // Nor are its volumes taken for detached when the drain is left out.
        change(&mut seen, |machine| {
            machine.metadata.annotations = Some(from(json!({"machine.cluster.x-k8s.io/exclude-node-draining": ""})));
        });
        let (plan, status) = reported(&seen);
        assert!(is_stopped(&plan), "{:?}", plan.actions);
        check_reason(&status, "WaitingForVolumeDetach");
    }
}

#[test]
fn volumes_that_cannot_be_read_are_not_taken_for_detached() {
    let mut seen = running();
    deleting(&mut seen);
    remote(&mut seen).attachments = Seen::Failed("timeout".to_owned());
    let (plan, status) = reported(&seen);
    assert!(is_stopped(&plan), "{:?}", plan.actions);
    assert_eq!(plan.blocked.as_ref().map(|blocked| blocked.until), Some(Until::Backoff));
    check_event(&plan, "FailedWaitForVolumeDetach");
    check_reason(&status, "WaitingForVolumeDetach");
}

#[test]
fn a_machine_whose_infrastructure_cannot_be_read_is_drained_all_the_same() {
    let mut seen = running();
    deleting(&mut seen);
    change(&mut seen, |machine| {
        machine.metadata.annotations = Some(from(
            json!({"pre-terminate.delete.hook.machine.cluster.x-k8s.io/b": ""}),
        ));
    });
    let pod: Pod = from(json!({"metadata": {"namespace": "apps", "name": "web"}}));
    remote(&mut seen).pods = Seen::Found(vec![pod]);
    seen.infrastructure = Seen::Failed("timeout".to_owned());
    check_reason(&reported(&seen).1, "DrainingNode");
}

#[test]
fn a_control_plane_that_cannot_be_read_may_be_managed_externally() {
    let mut seen = running();
    deleting(&mut seen);
    seen.control_plane_machines.clear();
    seen.control_plane = Seen::Failed("timeout".to_owned());
    let (plan, status) = reported(&seen);
    assert!(is_stopped(&plan), "{:?}", plan.actions);
    assert_eq!(plan.blocked.as_ref().map(|blocked| blocked.until), Some(Until::Backoff));
    check_condition(&status, "Deleting", ("True", "InternalError", "timeout"));
    seen.control_plane = Seen::NotFound;
    assert!(!is_stopped(&reported(&seen).0));
}

#[test]
fn a_node_is_left_behind_only_when_its_cluster_is_silent_for_too_long() {
    let mut seen = running();
    deleting(&mut seen);
    seen.infrastructure = Seen::NotFound;
    seen.bootstrap = Some(Seen::NotFound);
    seen.remote = down("2026-03-01T09:59:30Z", None);
    change(&mut seen, |machine| {
        machine.spec.deletion = Some(from(json!({"nodeDeletionTimeoutSeconds": 90})));
    });
    let (plan, status, deadline) = reported_at(&seen, now());
    assert!(is_stopped(&plan), "{:?}", plan.actions);
    check_reason(&status, "DeletingNode");
    let due = at("2026-03-01T10:00:30Z");
    assert_eq!(deadline, Some(due));
    let (plan, _, _) = reported_at(&seen, due);
    assert_eq!(plan.actions, [Action::RemoveFinalizer]);
    // Zero means that there is no limit.
    change(&mut seen, |machine| {
        machine.spec.deletion = Some(from(json!({"nodeDeletionTimeoutSeconds": 0})));
    });
    assert!(is_stopped(&reported_at(&seen, due).0));
}

fn web() -> Pod {
    from(json!({"metadata": {"namespace": "apps", "name": "web"}}))
}

/// The status after a write that failed.
fn failed(seen: &Observed, action: Action) -> MachineStatus {
    let moment = Moment::at(now());
    let done = Done {
        failed: Some(ReconcileError::new("RemoteRequestFailed", "refused")),
        stopped: Some(action),
        ..Done::default()
    };
    status(seen, &planned(seen, &moment).after(&done), &moment)
}

#[test]
fn a_node_that_cannot_be_deleted_keeps_its_machine_until_the_limit() {
    let mut seen = running();
    deleting(&mut seen);
    seen.infrastructure = Seen::NotFound;
    seen.bootstrap = Some(Seen::NotFound);
    for (limit, due) in [
        (json!(90), "2026-03-01T10:00:30Z"),
        (Value::Null, "2026-03-01T09:59:10Z"),
    ] {
        change(&mut seen, |machine| {
            machine.spec.deletion = Some(from(json!({"nodeDeletionTimeoutSeconds": limit})));
        });
        let before = at(due).checked_sub(SignedDuration::from_secs(1)).unwrap();
        let (plan, _, deadline) = reported_at(&seen, before);
        assert_eq!(plan.actions, [delete_node(true), Action::RemoveFinalizer]);
        assert_eq!(deadline, Some(at(due)));
        let (plan, _, _) = reported_at(&seen, at(due));
        assert_eq!(plan.actions, [delete_node(false), Action::RemoveFinalizer]);
    }
    let status = failed(&seen, delete_node(true));
    let message = "Error deleting Node, please check controller logs for errors";
    check_condition(&status, "Deleting", ("True", "DeletingNode", message));
}

#[test]
fn a_process_that_has_just_started_does_not_give_a_node_up() {
    let mut seen = running();
    deleting(&mut seen);
    seen.infrastructure = Seen::NotFound;
    seen.bootstrap = Some(Seen::NotFound);
    seen.remote = Workload::NotTried("no attempt was made yet".to_owned());
    let (plan, status, _) = reported_at(&seen, at("2026-03-01T12:00:00Z"));
    assert!(is_stopped(&plan), "{:?}", plan.actions);
    assert!(plan.requeue.is_some(), "no event says that an attempt has failed");
    check_reason(&status, "DeletingNode");
}

/// Not even a Cluster that lost its finalizer takes the hosts of its Machines with it.
#[test]
fn a_machine_with_a_node_waits_for_its_cluster() {
    let mut seen = running();
    deleting(&mut seen);
    seen.cluster = Seen::NotFound;
    seen.remote = Workload::NotTried("the control plane is not initialized".to_owned());
    let (plan, status) = reported(&seen);
    assert!(is_stopped(&plan), "{:?}", plan.actions);
    check_reason(&status, "InternalError");
    let why = plan.blocked.unwrap().message;
    assert!(
        why.contains("Cluster c does not exist") && why.contains("machine.cluster.x-k8s.io"),
        "{why}"
    );
    // A Machine that never had a Node loses nothing.
    change(&mut seen, |machine| machine.status = None);
    let (plan, _) = reported(&seen);
    assert!(!is_stopped(&plan), "{:?}", plan.blocked);
}

#[test]
fn a_cordon_that_fails_ends_the_pass_at_the_drain() {
    let mut seen = running();
    deleting(&mut seen);
    let status = failed(&seen, Action::Cordon("node-m".to_owned()));
    let message = "Error draining Node, please check controller logs for errors";
    check_condition(&status, "Deleting", ("True", "DrainingNode", message));
    check_legacy(&status, "DrainingSucceeded", "False", Some("DrainingFailed"));
    assert!(
        status
            .deletion
            .unwrap()
            .wait_for_node_volume_detach_start_time
            .is_none()
    );
    let status = failed(&seen, delete(External::Infrastructure, "DevMachine"));
    let message = "Failed to delete DevMachine, please check controller logs for errors";
    check_condition(&status, "Deleting", ("True", "InternalError", message));
}

#[test]
fn refused_evictions_are_part_of_the_condition() {
    let mut seen = running();
    deleting(&mut seen);
    remote(&mut seen).pods = Seen::Found(vec![web()]);
    let moment = Moment::at(now());
    let mut done = Done::default();
    let why = "Cannot evict pod as it would violate the pod's disruption budget. The disruption budget web needs 1 healthy pods and has 1 currently";
    done.evictions.refuse(&ObjectKey::new("apps", "web"), why.to_owned());
    let status = status(&seen, &planned(&seen, &moment).after(&done), &moment);
    let message = "Drain not completed yet (started at 2026-03-01T10:00:00Z):\n* Pod apps/web: cannot evict pod as it would violate the pod's disruption budget. The disruption budget web needs 1 healthy pods and has 1 currently";
    check_condition(&status, "Deleting", ("True", "DrainingNode", message));
    check_legacy(&status, "DrainingSucceeded", "False", Some("Draining"));
    check_legacy(&status, "PreDrainDeleteHookSucceeded", "True", None);
}

fn check_legacy(status: &MachineStatus, type_: &str, value: &str, reason: Option<&str>) {
    let old = status.deprecated.as_ref().and_then(|old| old.v1beta1.as_ref()).unwrap();
    let found = old.conditions.iter().find(|old| old.type_ == type_);
    let found = found.unwrap_or_else(|| panic!("{type_} is missing"));
    assert_eq!((found.status.as_str(), found.reason.as_deref()), (value, reason));
}

#[test]
fn old_conditions_of_stages_stay_after_them() {
    let mut seen = running();
    deleting(&mut seen);
    let (_, status) = reported(&seen);
    check_legacy(&status, "DrainingSucceeded", "True", None);
    check_legacy(&status, "VolumeDetachSucceeded", "True", None);
    change(&mut seen, |machine| machine.status = Some(status));
    seen.infrastructure = Seen::NotFound;
    let (_, status) = reported(&seen);
    check_legacy(&status, "DrainingSucceeded", "True", None);
    check_legacy(&status, "PreTerminateDeleteHookSucceeded", "True", None);
    check_legacy(&status, "InfrastructureReady", "False", Some("Deleted"));
}

#[test]
fn volumes_hold_a_machine_unless_its_node_is_unreachable() {
    let mut seen = running();
    deleting(&mut seen);
    let mut node = super::node();
    node.status.as_mut().unwrap().volumes_attached =
        Some(from(json!([{"name": "kubernetes.io/csi/d^h", "devicePath": ""}])));
    remote(&mut seen).node = Some(Arc::new(node.clone()));
    let claim = json!({"kind": "PersistentVolumeClaim", "namespace": "apps", "name": "data"});
    remote(&mut seen).volumes = Seen::Found(vec![from(json!({
        "metadata": {"name": "pv"}, "spec": {"claimRef": claim, "csi": {"driver": "d", "volumeHandle": "h"}},
    }))]);
    let message = "Waiting for Node volumes to be detached (started at 2026-03-01T10:00:00Z)\n* PersistentVolumeClaims: apps/data";
    let (plan, status) = reported(&seen);
    check_condition(&status, "Deleting", ("True", "WaitingForVolumeDetach", message));
    assert!(is_stopped(&plan), "{:?}", plan.actions);

    for condition in node.status.as_mut().unwrap().conditions.as_mut().unwrap() {
        "Unknown".clone_into(&mut condition.status);
    }
    remote(&mut seen).node = Some(Arc::new(node));
    let (plan, _) = reported(&seen);
    assert!(
        stage_actions(&plan).contains(&delete(External::Infrastructure, "DevMachine")),
        "{:?}",
        plan.actions
    );
    assert!(
        plan.notes.iter().any(|note| note.message.contains("unreachable")),
        "{:?}",
        plan.notes
    );
}

#[test]
fn a_limit_that_changes_counts_at_once() {
    let mut seen = running();
    deleting(&mut seen);
    remote(&mut seen).pods = Seen::Found(vec![web()]);
    let (_, status) = reported(&seen);
    change(&mut seen, |machine| machine.status = Some(status));
    let later = at("2026-03-01T11:00:00Z");
    check_reason(&reported_at(&seen, later).1, "DrainingNode");
    change(&mut seen, |machine| {
        machine.spec.deletion = Some(from(json!({"nodeDrainTimeoutSeconds": 60})));
    });
    let (plan, status, _) = reported_at(&seen, later);
    check_reason(&status, "WaitingForInfrastructureDeletion");
    let skipped = "the drain is skipped: spec.deletion.nodeDrainTimeoutSeconds (60 s) has passed";
    assert!(
        plan.notes.iter().any(|note| note.message == skipped),
        "{:?}",
        plan.notes
    );
}

#[test]
fn a_node_is_kept_up_while_its_machine_goes() {
    let mut seen = running();
    deleting(&mut seen);
    remote(&mut seen).pods = Seen::Found(vec![web()]);
    let patches = |seen: &Observed| {
        let plan = reported(seen).0;
        plan.actions
            .iter()
            .any(|action| matches!(action, Action::PatchNode { .. }))
    };
    assert!(patches(&seen));
    seen.infrastructure = Seen::NotFound;
    seen.bootstrap = Some(Seen::NotFound);
    assert!(!patches(&seen), "the Node is deleted");
}
