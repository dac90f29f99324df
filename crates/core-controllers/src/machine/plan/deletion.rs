//! The order in which a Machine goes: pre-drain hooks, drain, volumes, pre-terminate hooks, infrastructure machine, bootstrap
//! configuration, Node, finalizer. Each stage waits for an event; only drains and detaching volumes are looked at by time.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use windlass_api::core::MachineDeletionStatus;
use windlass_api::k8s::Node;
use windlass_api::{annotations, reasons};
use windlass_cluster_cache::{Outage, Workload};
use windlass_controller_runtime::{Blocked, Moment, Note, Seen, Until};

use super::{Action, External, Plan, annotated, draining, hooks};
use crate::machine::facts::limits;
use crate::machine::observe::Observed;
use crate::shared::read::{self, Referenced};

/// How soon a drain or a detaching volume is looked at again.
const RETRY: Duration = Duration::from_secs(20);
/// For how long the Node's deletion is tried when the Machine sets no limit, in seconds.
const NODE_DELETION_TIMEOUT: Option<i32> = Some(10);

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

/// What the deletion has to do with the Node.
enum Reach {
    /// The Node is drained and deleted.
    Within,
    /// It is left alone, for this reason.
    Outside(&'static str),
    /// What decides about it could not be read.
    Unknown(String),
}

/// Adds the next step of the deletion.
pub(super) fn plan(seen: &Observed, now: &Moment, plan: &mut Plan) {
    let reach = match reach(seen) {
        Reach::Unknown(why) => {
            plan.blocked = Some(Blocked::failed("CannotPlan", why.as_str()));
            let step = step_of(Stage::Rest, reasons::INTERNAL_ERROR, why);
            plan.deleting = Some(step);
            return;
        }
        reach => reach,
    };
    let within = matches!(reach, Reach::Within);
    if let Reach::Outside(why) = reach {
        plan.notes.push(Note::new(format!("the Node is left alone: {why}")));
    }
    let step = within
        .then(|| node_stages(seen, now, plan))
        .flatten()
        .or_else(|| pre_terminate(seen))
        .or_else(|| infrastructure(seen, plan))
        .or_else(|| bootstrap(seen, plan))
        .or_else(|| within.then(|| node(seen, now, plan)).flatten())
        .unwrap_or_else(|| {
            plan.actions.push(Action::RemoveFinalizer);
            step_of(
                Stage::Rest,
                reasons::DELETION_COMPLETED,
                "Deletion completed".to_owned(),
            )
        });
    let note = format!("the deletion is at {}: {}", step.reason, one_line(&step.message));
    plan.notes.push(Note::new(note));
    plan.deleting = Some(Deleting {
        node_stages: within,
        ..step
    });
}

/// The lines of a message as one.
fn one_line(message: &str) -> String {
    message.replace('\n', " ")
}

fn step_of(stage: Stage, reason: &'static str, message: String) -> Deleting {
    Deleting {
        stage,
        node_stages: false,
        reason,
        message,
    }
}

/// Whether the Node is drained and deleted.
fn reach(seen: &Observed) -> Reach {
    if seen
        .cluster
        .found()
        .is_none_or(|cluster| cluster.metadata.deletion_timestamp.is_some())
    {
        return Reach::Outside("the Cluster is being deleted");
    }
    if seen.node_name().is_none() {
        return Reach::Outside("no Node belongs to the Machine");
    }
    if let Seen::Found(control_plane) = &seen.control_plane {
        if control_plane.is_deleting() {
            return Reach::Outside("the control plane is being deleted");
        }
        if windlass_contract::control_plane::external_managed(control_plane.value()) {
            return Reach::Within;
        }
    }
    let mut others = seen
        .control_plane_machines
        .iter()
        .filter(|machine| machine.metadata.deletion_timestamp.is_none());
    match (others.next(), &seen.control_plane) {
        (Some(_), _) => Reach::Within,
        // It may be managed externally, so that it has no Machines.
        (None, Seen::Failed(why)) => Reach::Unknown(why.clone()),
        (None, Seen::Found(_) | Seen::NotFound) => Reach::Outside("no control plane Machine would be left"),
    }
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
fn node_stages(seen: &Observed, now: &Moment, plan: &mut Plan) -> Option<Deleting> {
    let waiting = hooks(seen, annotations::PRE_DRAIN_HOOK_PREFIX);
    if !waiting.is_empty() {
        let message = format!("Waiting for pre-drain hooks to succeed (hooks: {})", waiting.join(","));
        return Some(step_of(Stage::PreDrain, reasons::WAITING_FOR_PRE_DRAIN_HOOK, message));
    }
    let past = started(seen).wait_for_pre_terminate_hook_start_time.is_some();
    let stopped = match &seen.infrastructure {
        Seen::NotFound => true,
        Seen::Found(infrastructure) => infrastructure.is_deleting(),
        // The machine may still run.
        Seen::Failed(_) => false,
    };
    if past || stopped {
        return None;
    }
    drain(seen, now, plan).or_else(|| volumes(seen, now, plan))
}

/// The Node, `None` when there is none; an error says why that is unknown.
fn known_node(seen: &Observed) -> Result<Option<&Node>, &str> {
    match &seen.remote {
        Workload::Up(remote) => Ok(remote.node.as_deref()),
        Workload::NotTried(why) | Workload::Down(Outage { why, .. }) => Err(why),
    }
}

/// Waits at a stage for the connection to the workload cluster: without it, nothing is known of the Node.
fn disconnected(stage: Stage, reason: &'static str, message: &str, why: &str, plan: &mut Plan) -> Deleting {
    plan.blocked = Some(Blocked {
        reason: "NotConnected",
        message: format!("the workload cluster cannot be asked about the Node: {why}"),
        until: Until::Event,
    });
    step_of(stage, reason, message.to_owned())
}

fn drain(seen: &Observed, now: &Moment, plan: &mut Plan) -> Option<Deleting> {
    let known = known_node(seen);
    if known == Ok(None) || annotated(seen, annotations::EXCLUDE_NODE_DRAINING) {
        return None;
    }
    let since = started(seen).node_drain_start_time.map_or(now.now(), |time| time.0);
    if expired(since, limits(seen).node_drain_timeout_seconds, now) {
        return None;
    }
    let failed = "Error draining Node, please check controller logs for errors";
    let node = match known {
        Ok(node) => node?,
        Err(why) => return Some(disconnected(Stage::Drain, reasons::DRAINING_NODE, failed, why, plan)),
    };
    let name = node.metadata.name.clone().unwrap_or_default();
    let heading = format!("Drain not completed yet (started at {}):", seconds(since));
    let step = |message: String| step_of(Stage::Drain, reasons::DRAINING_NODE, message);
    if node.spec.as_ref().and_then(|spec| spec.unschedulable) != Some(true) {
        plan.actions.push(Action::Cordon(name.clone()));
    }
    let Some(draining) = draining(seen) else {
        plan.requeue = Some(RETRY);
        return Some(step(failed.to_owned()));
    };
    if draining.is_done() {
        if started(seen).wait_for_node_volume_detach_start_time.is_none() {
            let message = format!("success draining Machine's node \"{name}\"");
            plan.notes.push(Note::fact("SuccessfulDrainNode", message));
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

fn volumes(seen: &Observed, now: &Moment, plan: &mut Plan) -> Option<Deleting> {
    let known = known_node(seen);
    if known == Ok(None) || annotated(seen, annotations::EXCLUDE_WAIT_FOR_NODE_VOLUME_DETACH) {
        return None;
    }
    let started = started(seen).wait_for_node_volume_detach_start_time.map(|time| time.0);
    let since = started.unwrap_or(now.now());
    if expired(since, limits(seen).node_volume_detach_timeout_seconds, now) {
        return None;
    }
    let reason = reasons::WAITING_FOR_VOLUME_DETACH;
    let failed = "Error waiting for volumes to be detached from Node, please check controller logs for errors";
    let node = match known {
        Ok(node) => node?,
        Err(why) => return Some(disconnected(Stage::Volumes, reason, failed, why, plan)),
    };
    let attached = match &seen.remote.up()?.attachments {
        Seen::Found(attachments) => attachments.len(),
        Seen::NotFound => 0,
        Seen::Failed(why) => {
            plan.notes.push(Note::new(format!(
                "the volumes attached to the Node cannot be read: {why}"
            )));
            plan.requeue = Some(RETRY);
            return Some(step_of(Stage::Volumes, reason, failed.to_owned()));
        }
    };
    let reported = node
        .status
        .as_ref()
        .and_then(|status| status.volumes_attached.as_ref())
        .map_or(0, Vec::len);
    if reported.max(attached) > 0 {
        plan.requeue = Some(RETRY);
        let message = format!(
            "Waiting for Node volumes to be detached (started at {})",
            seconds(since)
        );
        return Some(step_of(Stage::Volumes, reason, message));
    }
    if started.is_none() {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let message = format!("success waiting for node volumes detaching Machine's node \"{name}\"");
        plan.notes.push(Note::fact("NodeVolumesDetached", message));
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
        Seen::Failed(why) => Some(step_of(Stage::Rest, reasons::INTERNAL_ERROR, why.clone())),
        Seen::Found(found) => {
            if !found.is_deleting() {
                plan.actions.push(Action::Delete(which));
            }
            Some(step_of(Stage::Rest, reason, read::waits_for(found)))
        }
    }
}

/// Deletes the Node, after everything else. Without a connection, it waits for as long as the Machine allows, counted from the Machine's
/// deletion.
fn node(seen: &Observed, now: &Moment, plan: &mut Plan) -> Option<Deleting> {
    match known_node(seen) {
        Ok(node) => {
            let name = node?.metadata.name.clone().unwrap_or_default();
            plan.actions.push(Action::DeleteNode(name));
            None
        }
        Err(why) => {
            let since = seen.machine.metadata.deletion_timestamp.as_ref().map(|time| time.0);
            let limit = limits(seen).node_deletion_timeout_seconds;
            if expired(since.unwrap_or(now.now()), limit.or(NODE_DELETION_TIMEOUT), now) {
                plan.notes.push(Note::new(format!(
                    "Node {} stays, as its workload cluster did not answer in time: {why}",
                    seen.node_name().unwrap_or_default()
                )));
                return None;
            }
            let message = "Error deleting Node, please check controller logs for errors";
            Some(disconnected(Stage::Rest, reasons::DELETING_NODE, message, why, plan))
        }
    }
}

/// Whether a limit in seconds, zero meaning none, has passed since a start.
fn expired(since: Timestamp, limit: Option<i32>, now: &Moment) -> bool {
    let limit = limit.filter(|limit| *limit > 0);
    limit.is_some_and(|limit| now.elapsed(since, SignedDuration::from_secs(i64::from(limit))))
}

/// An instant as the status of objects writes it.
fn seconds(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
