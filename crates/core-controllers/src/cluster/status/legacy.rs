//! The conditions of the previous API generation, derived from the same facts as the current ones. The list has no keys, so one
//! writer keeps all of it, the topology controller's included.

use jiff::Timestamp;
use windlass_api::conditions as types;
use windlass_api::core::{ClusterDeprecatedStatus, ClusterStatus, ClusterV1Beta1DeprecatedStatus};
use windlass_controller_runtime::Seen;

use crate::cluster::facts::{is_initialized, is_provisioned};
use crate::cluster::observe::Observed;
use crate::shared::legacy::{Legacy, LegacyConditions, failures, own_ready, summary};
use crate::shared::read::Referenced;

/// The deprecated block.
pub(super) fn deprecated(
    seen: &Observed,
    status: &ClusterStatus,
    before: &ClusterStatus,
    now: Timestamp,
) -> ClusterDeprecatedStatus {
    let old = before.deprecated.as_ref().and_then(|block| block.v1beta1.as_ref());
    let mut list = LegacyConditions::new(old.map_or(&[], |block| block.conditions.as_slice()), now);
    let initialized = status
        .initialization
        .as_ref()
        .and_then(|done| done.control_plane_initialized)
        == Some(true);

    let infrastructure = seen.infrastructure().and_then(complaint).unwrap_or_else(|| {
        reference(
            seen.cluster.spec.infrastructure_ref.is_none(),
            seen.infrastructure.as_ref().map(|read| (read, is_provisioned as Done)),
            seen,
            "WaitingForInfrastructure",
        )
    });
    let control_plane = reference(
        seen.cluster.spec.control_plane_ref.is_none(),
        seen.control_plane.as_ref().map(|read| (read, is_initialized as Done)),
        seen,
        "WaitingForControlPlane",
    );
    let initialized = if initialized {
        Legacy::Good
    } else {
        Legacy::info(
            "WaitingForControlPlaneProviderInitialized",
            "Waiting for control plane provider to indicate the control plane has been initialized",
        )
    };
    list.set("InfrastructureReady", &infrastructure);
    list.set("ControlPlaneReady", &control_plane);
    list.set("ControlPlaneInitialized", &initialized);
    // Not whether the topology is reconciled: a rollout does not make a cluster unready.
    let ready = summary(&[control_plane, infrastructure]);
    if seen.cluster.spec.topology.is_some()
        && let Some(topology) = windlass_conditions::get(&before.conditions, types::TOPOLOGY_RECONCILED)
        && topology.status != "Unknown"
    {
        let state = if topology.status == "True" {
            Legacy::Good
        } else if topology.reason == windlass_api::reasons::RECONCILE_FAILED {
            Legacy::error("TopologyReconcileFailed", topology.message.clone())
        } else {
            Legacy::info(&topology.reason, topology.message.clone())
        };
        list.set("TopologyReconciled", &state);
    }
    list.set("Ready", &ready);
    let objects = seen.infrastructure.iter().chain(&seen.control_plane);
    let (failure_reason, failure_message) = failures(objects, || {
        let old = before.deprecated.as_ref().and_then(|block| block.v1beta1.as_ref());
        old.map(|old| (old.failure_reason.clone(), old.failure_message.clone()))
            .unwrap_or_default()
    });
    ClusterDeprecatedStatus {
        v1beta1: Some(ClusterV1Beta1DeprecatedStatus {
            conditions: list.done(),
            failure_reason,
            failure_message,
        }),
    }
}

/// What an object says of itself when its own condition Ready is false.
fn complaint(object: &Referenced) -> Option<Legacy> {
    own_ready(object.value()).filter(|state| *state != Legacy::Good)
}

/// Whether an object says that it is done.
type Done = fn(&Referenced) -> bool;

fn reference(absent: bool, object: Option<(&Seen<Referenced>, Done)>, seen: &Observed, waiting: &str) -> Legacy {
    match object {
        _ if absent && seen.cluster.spec.topology.is_none() => Legacy::Good,
        Some((Seen::Found(_), _)) if seen.deleting() => Legacy::info("Deleting", ""),
        Some((Seen::Found(object), done)) if done(object) => Legacy::Good,
        None | Some((Seen::NotFound, _)) if seen.deleting() => Legacy::info("Deleted", ""),
        _ => Legacy::info(waiting, ""),
    }
}
