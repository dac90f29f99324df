//! The order in which a Machine goes: pre-drain hooks, drain, volumes, pre-terminate hooks, infrastructure machine, bootstrap
//! configuration, Node, finalizer. Each stage waits for an event; only drains and detaching volumes are looked at by time.

use std::time::Duration;

use jiff::Timestamp;
use windlass_api::core::MachineDeletionStatus;
use windlass_api::{annotations, reasons};
use windlass_kit::Seen;

use super::{Action, External, Plan, annotated, draining, hooks};
use crate::machine::observe::Observed;
use crate::shared::read::{self, Referenced};

/// How soon a drain or a detaching volume is looked at again.
const RETRY: Duration = Duration::from_secs(20);

/// A stage of the deletion; the first four have a start time in the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Waiting for pre-drain hooks.
    PreDrain,
    /// Draining the Node.
    Drain,
    /// Waiting for volumes to be detached.
    Volumes,
    /// Waiting for pre-terminate hooks.
    PreTerminate,
    /// What comes after those.
    Rest,
}

/// How far the deletion is, for the Deleting condition and the status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Deleting {
    /// The stage that waits.
    pub(crate) stage: Stage,
    /// Whether the stages on the Node were gone through (else they have no start times).
    pub(crate) node_stages: bool,
    /// The condition's reason.
    pub(crate) reason: &'static str,
    /// The condition's message.
    pub(crate) message: String,
}

/// Adds the next step of the deletion.
pub(super) fn plan(seen: &Observed, now: Timestamp, plan: &mut Plan) {
    let out_of_reach = node_is_out_of_reach(seen);
    let mut step = None;
    if let Some(why) = out_of_reach {
        plan.notes.push(format!("the Node is left alone: {why}"));
    } else {
        step = node_stages(seen, now, plan);
    }
    let step = step
        .or_else(|| pre_terminate(seen))
        .or_else(|| infrastructure(seen, plan))
        .or_else(|| bootstrap(seen, plan))
        .unwrap_or_else(|| {
            if out_of_reach.is_none()
                && !node_time_is_over(seen, now)
                && let Some(node) = seen.node()
            {
                plan.actions
                    .push(Action::DeleteNode(node.metadata.name.clone().unwrap_or_default()));
            }
            plan.actions.push(Action::RemoveFinalizer);
            step_of(
                Stage::Rest,
                reasons::DELETION_COMPLETED,
                "Deletion completed".to_owned(),
            )
        });
    plan.notes.push(step.message.clone());
    plan.deleting = Some(Deleting {
        node_stages: out_of_reach.is_none(),
        ..step
    });
}

fn step_of(stage: Stage, reason: &'static str, message: String) -> Deleting {
    Deleting {
        stage,
        node_stages: false,
        reason,
        message,
    }
}

/// Why the Node is neither drained nor deleted.
fn node_is_out_of_reach(seen: &Observed) -> Option<&'static str> {
    if seen
        .cluster
        .found()
        .is_none_or(|cluster| cluster.metadata.deletion_timestamp.is_some())
    {
        return Some("the Cluster is being deleted");
    }
    if seen.node_name().is_none() {
        return Some("no Node belongs to the Machine");
    }
    if let Seen::Found(control_plane) = &seen.control_plane {
        if control_plane.is_deleting() {
            return Some("the control plane is being deleted");
        }
        if windlass_contract::control_plane::external_managed(control_plane.value()) {
            return None;
        }
    }
    let mut others = seen
        .control_plane_machines
        .iter()
        .filter(|machine| machine.metadata.deletion_timestamp.is_none());
    others
        .next()
        .is_none()
        .then_some("no control plane Machine would be left")
}

/// Start times recorded in the status.
fn started(seen: &Observed) -> MachineDeletionStatus {
    seen.machine
        .status
        .as_ref()
        .and_then(|status| status.deletion.clone())
        .unwrap_or_default()
}

/// Hooks, drain and volumes: what happens while the Node still works.
fn node_stages(seen: &Observed, now: Timestamp, plan: &mut Plan) -> Option<Deleting> {
    let waiting = hooks(seen, annotations::PRE_DRAIN_HOOK_PREFIX);
    if !waiting.is_empty() {
        let message = format!("Waiting for pre-drain hooks to succeed (hooks: {})", waiting.join(","));
        return Some(step_of(Stage::PreDrain, reasons::WAITING_FOR_PRE_DRAIN_HOOK, message));
    }
    let past = started(seen).wait_for_pre_terminate_hook_start_time.is_some();
    if past || seen.infrastructure.found().is_none_or(|infra| infra.is_deleting()) {
        return None;
    }
    drain(seen, now, plan).or_else(|| volumes(seen, now, plan))
}

fn drain(seen: &Observed, now: Timestamp, plan: &mut Plan) -> Option<Deleting> {
    let since = started(seen).node_drain_start_time.map(|time| time.0);
    let limit = seen
        .machine
        .spec
        .deletion
        .as_ref()
        .and_then(|deletion| deletion.node_drain_timeout_seconds);
    let node = seen.node()?;
    if annotated(seen, annotations::EXCLUDE_NODE_DRAINING) || expired(since, limit, now) {
        return None;
    }
    let name = node.metadata.name.clone().unwrap_or_default();
    let heading = format!(
        "Drain not completed yet (started at {}):",
        seconds(since.unwrap_or(now))
    );
    let step = |message: String| step_of(Stage::Drain, reasons::DRAINING_NODE, message);
    if node.spec.as_ref().and_then(|spec| spec.unschedulable) != Some(true) {
        plan.actions.push(Action::Cordon(name.clone()));
    }
    let Some(draining) = draining(seen) else {
        plan.requeue = Some(RETRY);
        return Some(step(
            "Error draining Node, please check controller logs for errors".to_owned(),
        ));
    };
    if draining.is_done() {
        if started(seen).wait_for_node_volume_detach_start_time.is_none() {
            let message = format!("success draining Machine's node \"{name}\"");
            plan.actions.push(Action::Announce {
                reason: "SuccessfulDrainNode",
                message,
            });
        }
        return None;
    }
    let message = format!("{heading}\n{}", draining.message());
    if !draining.evict.is_empty() {
        plan.actions.push(Action::Evict(draining.evict));
    }
    plan.requeue = Some(RETRY);
    Some(step(message))
}

fn volumes(seen: &Observed, now: Timestamp, plan: &mut Plan) -> Option<Deleting> {
    let since = started(seen).wait_for_node_volume_detach_start_time.map(|time| time.0);
    let limit = seen
        .machine
        .spec
        .deletion
        .as_ref()
        .and_then(|deletion| deletion.node_volume_detach_timeout_seconds);
    let node = seen.node()?;
    if annotated(seen, annotations::EXCLUDE_WAIT_FOR_NODE_VOLUME_DETACH) || expired(since, limit, now) {
        return None;
    }
    let attached = node
        .status
        .as_ref()
        .and_then(|status| status.volumes_attached.as_ref())
        .map_or(0, Vec::len);
    if attached.max(seen.remote.attachments.found().map_or(0, Vec::len)) > 0 {
        plan.requeue = Some(RETRY);
        let message = format!(
            "Waiting for Node volumes to be detached (started at {})",
            seconds(since.unwrap_or(now))
        );
        return Some(step_of(Stage::Volumes, reasons::WAITING_FOR_VOLUME_DETACH, message));
    }
    if since.is_none() {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let message = format!("success waiting for node volumes detaching Machine's node \"{name}\"");
        plan.actions.push(Action::Announce {
            reason: "NodeVolumesDetached",
            message,
        });
    }
    None
}

fn pre_terminate(seen: &Observed) -> Option<Deleting> {
    let waiting = hooks(seen, annotations::PRE_TERMINATE_HOOK_PREFIX);
    let message = format!(
        "Waiting for pre-terminate hooks to succeed (hooks: {})",
        waiting.join(",")
    );
    (!waiting.is_empty()).then(|| step_of(Stage::PreTerminate, reasons::WAITING_FOR_PRE_TERMINATE_HOOK, message))
}

fn infrastructure(seen: &Observed, plan: &mut Plan) -> Option<Deleting> {
    let reason = reasons::WAITING_FOR_INFRASTRUCTURE_DELETION;
    external(&seen.infrastructure, External::Infrastructure, reason, plan)
}

fn bootstrap(seen: &Observed, plan: &mut Plan) -> Option<Deleting> {
    let reason = reasons::WAITING_FOR_BOOTSTRAP_DELETION;
    external(seen.bootstrap.as_ref()?, External::Bootstrap, reason, plan)
}

fn external(object: &Seen<Referenced>, which: External, reason: &'static str, plan: &mut Plan) -> Option<Deleting> {
    match object {
        Seen::NotFound => None,
        Seen::Failed(why) => {
            plan.notes.push(why.clone());
            Some(step_of(Stage::Rest, reasons::INTERNAL_ERROR, why.clone()))
        }
        Seen::Found(found) => {
            if !found.is_deleting() {
                plan.actions.push(Action::Delete(which));
            }
            Some(step_of(Stage::Rest, reason, read::waits_for(found)))
        }
    }
}

/// Whether a limit in seconds, zero meaning none, has passed since a start.
fn expired(started: Option<Timestamp>, limit: Option<i32>, now: Timestamp) -> bool {
    let (Some(started), Some(limit)) = (started, limit.filter(|limit| *limit > 0)) else {
        return false;
    };
    now.duration_since(started).as_secs() >= i64::from(limit)
}

/// Whether deleting the Node has been tried for as long as the Machine allows, counted from the Machine's deletion, while the
/// workload cluster does not answer.
fn node_time_is_over(seen: &Observed, now: Timestamp) -> bool {
    let limit = seen
        .machine
        .spec
        .deletion
        .as_ref()
        .and_then(|deletion| deletion.node_deletion_timeout_seconds);
    let since = seen.machine.metadata.deletion_timestamp.as_ref().map(|time| time.0);
    seen.remote.disconnected.is_some() && expired(since, limit.or(Some(10)), now)
}

/// An instant as the status of objects writes it.
fn seconds(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
