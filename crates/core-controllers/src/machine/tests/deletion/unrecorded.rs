//! Cases for a Machine with a host of which no Node is known.

use std::sync::Arc;

use serde_json::json;
use windlass_api::core::Cluster;
use windlass_cluster_cache::Workload;
use windlass_controller_runtime::Seen;

use super::{check_legacy, is_stopped};
use crate::machine::observe::{Observed, Remote};
use crate::machine::tests::{
    at, change, check_condition, cluster, deleting, down, from, now, reported, reported_at, running,
};

/// A worker that is being deleted. Its status is lost, or was never written.
fn unrecorded(remote: Workload<Remote>) -> Observed {
    let mut seen = running();
    deleting(&mut seen);
    change(&mut seen, |machine| machine.status = None);
    seen.remote = remote;
    seen
}

fn silent() -> Workload<Remote> {
    down("2026-03-01T09:59:30Z", None)
}

fn not_tried() -> Workload<Remote> {
    Workload::NotTried("no attempt was made yet".to_owned())
}

/// The Cluster without a status that tells that it came up.
fn forget_initialization(seen: &mut Observed) {
    let mut cluster: Cluster = from(cluster());
    cluster.status = None;
    seen.cluster = Seen::Found(Arc::new(cluster));
}

fn check_stopped(seen: &Observed, expect: bool) {
    let (plan, _) = reported(seen);
    assert_eq!(is_stopped(&plan), expect, "{:?} {:?}", plan.blocked, plan.actions);
}

#[test]
fn its_node_may_be_there_while_the_workload_cluster_cannot_be_asked() {
    for unknown in [not_tried(), silent()] {
        let tried = matches!(unknown, Workload::Down(_));
        let seen = unrecorded(unknown);
        check_stopped(&seen, true);
        let (plan, status) = reported(&seen);
        assert_eq!(
            plan.requeue.is_none(),
            tried,
            "no event says that an attempt has failed"
        );
        let message = "Waiting for the workload cluster to tell whether the Machine has a Node: set spec.deletion.nodeDrainTimeoutSeconds for a limit";
        check_condition(&status, "Deleting", ("True", "DrainingNode", message));
        check_legacy(&status, "DrainingSucceeded", "False", Some("DrainingFailed"));
    }
    check_stopped(&unrecorded(Workload::Up(Remote::default())), false);
}

#[test]
fn its_hooks_run_before_the_host_goes() {
    let mut seen = unrecorded(silent());
    change(&mut seen, |machine| {
        machine.metadata.annotations = Some(from(json!({"pre-drain.delete.hook.machine.cluster.x-k8s.io/a": ""})));
    });
    super::check_reason(&reported(&seen).1, "WaitingForPreDrainHook");
}

#[test]
fn the_limits_of_its_stages_hold() {
    let mut seen = unrecorded(silent());
    change(&mut seen, |machine| {
        let limits = json!({"nodeDrainTimeoutSeconds": 60, "nodeVolumeDetachTimeoutSeconds": 60, "nodeDeletionTimeoutSeconds": 240});
        machine.spec.deletion = Some(from(limits));
    });
    let message = |until: &str, field: &str| {
        format!(
            "Waiting for the workload cluster to tell whether the Machine has a Node, until {until} (spec.deletion.{field})"
        )
    };
    let mut time = now();
    for (reason, field, until) in [
        ("DrainingNode", "nodeDrainTimeoutSeconds", "2026-03-01T10:01:00Z"),
        (
            "WaitingForVolumeDetach",
            "nodeVolumeDetachTimeoutSeconds",
            "2026-03-01T10:02:00Z",
        ),
    ] {
        let (plan, status, deadline) = reported_at(&seen, time);
        assert!(is_stopped(&plan), "{:?}", plan.actions);
        check_condition(&status, "Deleting", ("True", reason, &message(until, field)));
        time = at(until);
        assert_eq!(deadline, Some(time));
        change(&mut seen, |machine| machine.status = Some(status));
    }
    assert!(!is_stopped(&reported_at(&seen, time).0));
    seen.infrastructure = Seen::NotFound;
    seen.bootstrap = Some(Seen::NotFound);
    let (plan, status, deadline) = reported_at(&seen, time);
    assert!(is_stopped(&plan), "{:?}", plan.actions);
    let until = "2026-03-01T10:03:00Z";
    let text = message(until, "nodeDeletionTimeoutSeconds");
    check_condition(&status, "Deleting", ("True", "DeletingNode", &text));
    assert_eq!(deadline, Some(at(until)));
    assert!(!is_stopped(&reported_at(&seen, at(until)).0));
    // The first attempt to connect is waited for longer.
    seen.remote = not_tried();
    let (plan, status, _) = reported_at(&seen, at(until));
    assert!(is_stopped(&plan) && plan.requeue.is_some(), "{:?}", plan.actions);
    let text = "Waiting for the workload cluster to tell whether the Machine has a Node";
    check_condition(&status, "Deleting", ("True", "DeletingNode", text));
}

#[test]
fn it_has_none_in_a_cluster_that_never_came_up() {
    let mut seen = unrecorded(silent());
    forget_initialization(&mut seen);
    check_stopped(&seen, false);
    // Only the first Machine has a host before the control plane is initialized: the status was lost.
    let first = Arc::make_mut(&mut seen.control_plane_machines[0]);
    first.spec.provider_id = Some("in-memory://cp".to_owned());
    check_stopped(&seen, true);
    change(&mut seen, |machine| machine.spec.provider_id = None);
    seen.infrastructure = Seen::NotFound;
    check_stopped(&seen, false);
}

#[test]
fn the_first_machine_of_a_cluster_that_never_came_up_goes() {
    for standalone in [false, true] {
        let mut seen = unrecorded(silent());
        forget_initialization(&mut seen);
        seen.control_plane_machines = vec![seen.machine.clone()];
        if !standalone {
            let Seen::Found(cluster) = &mut seen.cluster else {
                unreachable!()
            };
            Arc::make_mut(cluster).spec.control_plane_ref = Some(from(json!({
                "apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "cp",
            })));
            seen.remote = Workload::NotTried("the control plane is not initialized".to_owned());
        }
        check_stopped(&seen, false);
    }
}
