//! Cases for the order in which a Machine goes, and for what keeps it from going on.

use std::sync::Arc;

use serde_json::json;
use windlass_api::core::MachineStatus;
use windlass_api::k8s::Pod;
use windlass_cluster_cache::Workload;
use windlass_conditions::get;
use windlass_controller_runtime::{Seen, Until};

use super::{at, change, check_condition, cluster, deleting, down, from, now, remote, reported, reported_at, running};
use crate::machine::plan::{Action, External, Plan};

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
    assert!(first.actions.is_empty());
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
        drain.actions,
        [
            Action::Cordon("node-m".to_owned()),
            Action::Evict(vec![("apps".to_owned(), "web".to_owned())])
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
    assert!(!hook.actions.iter().any(|action| matches!(action, Action::Delete(_))));
    assert_eq!(
        get(&status.conditions, "Deleting").unwrap().reason,
        "WaitingForPreTerminateHook"
    );

    change(&mut seen, |machine| machine.metadata.annotations = None);
    let (infrastructure, status) = reported(&seen);
    assert!(
        infrastructure
            .actions
            .contains(&Action::Delete(External::Infrastructure))
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
    assert_eq!(bootstrap.actions, [Action::Delete(External::Bootstrap)]);

    seen.bootstrap = Some(Seen::NotFound);
    let (last, status) = reported(&seen);
    assert_eq!(
        last.actions,
        [Action::DeleteNode("node-m".to_owned()), Action::RemoveFinalizer]
    );
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
    assert_eq!(plan.actions, [Action::Delete(External::Infrastructure)]);
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
            Action::Delete(_) | Action::DeleteNode(_) | Action::RemoveFinalizer
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
    assert!(plan.requeue.is_some());
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
