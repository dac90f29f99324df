//! The stages of the deletion that concern the Node: drain, volumes, and the Node itself.

use std::time::Duration;

use windlass_api::k8s::Node;
use windlass_api::{annotations, reasons};
use windlass_cluster_cache::{Outage, Workload};
use windlass_controller_runtime::{Blocked, EventType, Moment, Note, Seen, Until};

use super::limit::{Limit, written};
use super::{Answer, Pending, started};
use crate::machine::drain::{self, Beside, Draining};
use crate::machine::facts::{limits, node_stages_end, provider_id};
use crate::machine::observe::{Observed, Remote};
use crate::machine::plan::{Action, annotated};
use crate::machine::volumes;

/// How soon a drain or a detaching volume is looked at again.
const RETRY: Duration = Duration::from_secs(20);
/// How soon to look again for the end of the first attempt to connect: no event announces its failure.
const UNTRIED: Duration = Duration::from_secs(10);
/// For how long the Node's deletion is tried when the Machine sets no limit, in seconds.
const NODE_DELETION_TIMEOUT: Option<i32> = Some(10);

/// What the condition says when the drain fails.
pub(super) const DRAIN_FAILED: &str = "Error draining Node, please check controller logs for errors";
/// What the condition says when attached volumes cannot be read.
const VOLUMES_FAILED: &str =
    "Error waiting for volumes to be detached from Node, please check controller logs for errors";
/// What the condition says when the Node cannot be deleted.
pub(super) const NODE_FAILED: &str = "Error deleting Node, please check controller logs for errors";

/// What is known of the Node.
enum Known<'a> {
    /// It exists.
    Present(&'a Node, &'a Remote),
    /// The workload cluster answers and does not have it.
    Absent,
    /// The workload cluster cannot be asked.
    Unknown(&'a str),
}

fn known(seen: &Observed) -> Known<'_> {
    match &seen.remote {
        Workload::Up(remote) => match &remote.node {
            Some(node) => Known::Present(node, remote),
            None => Known::Absent,
        },
        Workload::NotTried(why) | Workload::Down(Outage { why, .. }) => Known::Unknown(why),
    }
}

/// The name of the Node. For texts about a Node that is not known: the provider ID that it would have.
fn name(seen: &Observed) -> String {
    let name = seen.node_name().map(str::to_owned);
    name.or_else(|| provider_id(seen)).unwrap_or_default()
}

/// That a stage cannot go on: what users see is an event, and the condition refers to it.
fn stuck(reason: &'static str, message: &str, note: Note) -> Pending {
    Pending {
        reason,
        message: message.to_owned(),
        note: Some(note),
        ..Pending::default()
    }
}

/// Waits for the connection to the workload cluster, which is an event. For as long as there was no attempt to connect, it is looked at by
/// time. While no Node is known, the condition says how long the answer is waited for.
fn disconnected(seen: &Observed, failed: Pending, limit: &Limit, why: &str, now: &Moment) -> Answer {
    let mut pending = failed;
    if matches!(seen.remote, Workload::NotTried(_)) {
        pending.again = Some(UNTRIED);
    }
    if seen.node_name().is_none() {
        pending.message = limit.waits_for_answer(now);
    }
    let blocked = Blocked {
        reason: "NotConnected",
        message: format!("the workload cluster cannot be asked about the Node: {why}"),
        until: Until::Event,
    };
    Answer::Blocked(pending, blocked)
}

fn drain_failed(seen: &Observed, why: &str) -> Pending {
    let text = format!("error draining Machine's node \"{}\": {why}", name(seen));
    let note = Note::event(EventType::Warning, "FailedDrainNode", text);
    stuck(reasons::DRAINING_NODE, DRAIN_FAILED, note)
}

fn volumes_failed(seen: &Observed, why: &str) -> Pending {
    let text = format!(
        "error waiting for node volumes detaching, Machine's node \"{}\": {why}",
        name(seen)
    );
    let note = Note::event(EventType::Warning, "FailedWaitForVolumeDetach", text);
    stuck(reasons::WAITING_FOR_VOLUME_DETACH, VOLUMES_FAILED, note)
}

fn no_connection(why: &str) -> String {
    format!("connection to the workload cluster is down: {why}")
}

/// Sorts the Pods of the Node; an error says why that cannot be done.
fn sorted(seen: &Observed, node: &Node, remote: &Remote, now: &Moment) -> Result<Draining, String> {
    let failed = |why: String| format!("failed to get Pods for eviction: {why}");
    let pods = match &remote.pods {
        Seen::Found(pods) => pods.as_slice(),
        Seen::NotFound => &[],
        Seen::Failed(why) => return Err(failed(why.clone())),
    };
    if pods.is_empty() {
        return Ok(Draining::default());
    }
    let beside = Beside {
        daemon_sets: &remote.daemon_sets,
        rules: seen.drain_rules.as_ref().map_err(|why| failed(why.clone()))?,
        namespaces: &remote.namespaces,
        unreachable: drain::is_unreachable(node),
    };
    drain::classify(pods, &beside, now).map_err(failed)
}

pub(super) fn drain(seen: &Observed, now: &Moment) -> Answer {
    if let Some(why) = node_stages_end(seen) {
        return Answer::Skip(why.to_owned());
    }
    if annotated(seen, annotations::EXCLUDE_NODE_DRAINING) {
        return Answer::Skip(format!(
            "the Machine has annotation {}",
            annotations::EXCLUDE_NODE_DRAINING
        ));
    }
    let limit = Limit {
        field: "nodeDrainTimeoutSeconds",
        seconds: limits(seen).node_drain_timeout_seconds,
        since: started(seen).node_drain_start_time.map_or(now.now(), |time| time.0),
    };
    if limit.has_passed(now) {
        return Answer::Skip(limit.passed());
    }
    let (node, remote) = match known(seen) {
        Known::Present(node, remote) => (node, remote),
        Known::Absent => return Answer::Skip(format!("Node {} does not exist", name(seen))),
        Known::Unknown(why) => return disconnected(seen, drain_failed(seen, &no_connection(why)), &limit, why, now),
    };
    let mut actions = Vec::new();
    if node.spec.as_ref().and_then(|spec| spec.unschedulable) != Some(true) {
        actions.push(Action::Cordon(name(seen)));
    }
    let draining = match sorted(seen, node, remote, now) {
        Ok(draining) => draining,
        Err(why) => {
            let blocked = Blocked::failed("CannotPlan", why.as_str());
            let pending = Pending {
                actions,
                ..drain_failed(seen, &why)
            };
            return Answer::Blocked(pending, blocked);
        }
    };
    if draining.is_done() {
        let text = format!("success draining Machine's node \"{}\"", name(seen));
        let note = Note::fact("SuccessfulDrainNode", text);
        if actions.is_empty() {
            return Answer::Done(Some(note));
        }
        return Answer::Act(Pending {
            actions,
            note: Some(note),
            ..Pending::default()
        });
    }
    if !draining.evict.is_empty() {
        actions.push(Action::Evict {
            pods: draining.evict.iter().cloned().collect(),
            grace_period: draining.grace_period,
        });
    }
    Answer::Wait(Pending {
        actions,
        reason: reasons::DRAINING_NODE,
        message: format!("Drain not completed yet (started at {}):", written(limit.since)),
        draining: Some(draining),
        again: Some(RETRY),
        note: None,
    })
}

pub(super) fn volumes(seen: &Observed, now: &Moment) -> Answer {
    if let Some(why) = node_stages_end(seen) {
        return Answer::Skip(why.to_owned());
    }
    if annotated(seen, annotations::EXCLUDE_WAIT_FOR_NODE_VOLUME_DETACH) {
        let annotation = annotations::EXCLUDE_WAIT_FOR_NODE_VOLUME_DETACH;
        return Answer::Skip(format!("the Machine has annotation {annotation}"));
    }
    let since = started(seen).wait_for_node_volume_detach_start_time;
    let limit = Limit {
        field: "nodeVolumeDetachTimeoutSeconds",
        seconds: limits(seen).node_volume_detach_timeout_seconds,
        since: since.map_or(now.now(), |time| time.0),
    };
    if limit.has_passed(now) {
        return Answer::Skip(limit.passed());
    }
    let (node, remote) = match known(seen) {
        Known::Present(node, remote) => (node, remote),
        Known::Absent => return Answer::Skip(format!("Node {} does not exist", name(seen))),
        Known::Unknown(why) => return disconnected(seen, volumes_failed(seen, &no_connection(why)), &limit, why, now),
    };
    if drain::is_unreachable(node) {
        return Answer::Skip(format!(
            "Node {} is unreachable, and no kubelet detaches its volumes",
            name(seen)
        ));
    }
    match attached(seen, node, remote, now) {
        Ok(attached) if attached.is_empty() => {
            let text = format!(
                "success waiting for node volumes detaching Machine's node \"{}\"",
                name(seen)
            );
            Answer::Done(Some(Note::fact("NodeVolumesDetached", text)))
        }
        Ok(attached) => {
            let heading = format!(
                "Waiting for Node volumes to be detached (started at {})",
                written(limit.since)
            );
            let lines: Vec<String> = std::iter::once(heading).chain(attached.lines()).collect();
            Answer::Wait(Pending {
                reason: reasons::WAITING_FOR_VOLUME_DETACH,
                message: lines.join("\n"),
                again: Some(RETRY),
                ..Pending::default()
            })
        }
        Err(why) => Answer::Blocked(volumes_failed(seen, &why), Blocked::failed("CannotPlan", why)),
    }
}

/// The volumes that are still attached; an error says why that is unknown.
fn attached(seen: &Observed, node: &Node, remote: &Remote, now: &Moment) -> Result<volumes::Attached, String> {
    let read = |what: &str, why: &str| format!("failed to list {what}: {why}");
    let attachments = match &remote.attachments {
        Seen::Found(attachments) => attachments.as_slice(),
        Seen::NotFound => &[],
        Seen::Failed(why) => return Err(read("VolumeAttachments", why)),
    };
    if !volumes::is_any(node, attachments) {
        return Ok(volumes::Attached::default());
    }
    let all = match &remote.volumes {
        Seen::Found(volumes) => volumes.as_slice(),
        Seen::NotFound => &[],
        Seen::Failed(why) => return Err(read("PersistentVolumes", why)),
    };
    volumes::attached(node, attachments, all, &sorted(seen, node, remote, now)?.kept_claims)
}

/// Deletes the Node, after everything else. What keeps it from being deleted is waited for as long as the Machine allows, counted from the
/// Machine's deletion.
pub(super) fn node(seen: &Observed, now: &Moment) -> Answer {
    let since = seen.machine.metadata.deletion_timestamp.as_ref().map(|time| time.0);
    let limit = Limit {
        field: "nodeDeletionTimeoutSeconds",
        seconds: limits(seen).node_deletion_timeout_seconds.or(NODE_DELETION_TIMEOUT),
        since: since.unwrap_or(now.now()),
    };
    match known(seen) {
        Known::Absent => Answer::Done(None),
        Known::Present(node, _) => Answer::Act(Pending {
            actions: vec![Action::DeleteNode {
                name: name(seen),
                uid: node.metadata.uid.clone(),
                required: !limit.has_passed(now),
            }],
            ..Pending::default()
        }),
        Known::Unknown(why) if matches!(seen.remote, Workload::NotTried(_)) => {
            // The process has just started. Whether the Node can be deleted is known after the first attempt to connect.
            let pending = stuck(reasons::DELETING_NODE, NODE_FAILED, Note::new(no_connection(why)));
            disconnected(seen, pending, &limit, why, now)
        }
        Known::Unknown(why) if limit.has_passed(now) => Answer::Skip(format!(
            "workload cluster of Node {} did not answer in time: {why}",
            name(seen)
        )),
        Known::Unknown(why) => {
            let text = format!("error deleting Machine's Node: {}", no_connection(why));
            let note = Note::event(EventType::Warning, "FailedDeleteNode", text);
            let pending = stuck(reasons::DELETING_NODE, NODE_FAILED, note);
            disconnected(seen, pending, &limit, why, now)
        }
    }
}
