//! The deletion of a Machine: a list of stages. Each answers that it is done, is skipped, waits, acts or is blocked. The first that waits or
//! is blocked ends the pass and gives the condition Deleting its reason. Every skip is a note.
//!
//! "Cannot tell" is never "done": without a connection nothing is known of the Node, so its stages wait.

mod limit;
mod on_node;

use windlass_api::core::MachineDeletionStatus;
use windlass_api::{annotations, finalizers, reasons};
use windlass_cluster_cache::Workload;
use windlass_controller_runtime::{Blocked, Moment, Note, Seen};

use super::{Action, External, Plan, hooks};
use crate::machine::apply::Done;
use crate::machine::drain::Draining;
use crate::machine::facts::{has_come_up, moved, provider_id};
use crate::machine::observe::Observed;
use crate::shared::read::{self, Referenced};

/// A stage of the deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// What the deletion has to do with the Node.
    Scope,
    /// Pre-drain hooks.
    PreDrain,
    /// Draining the Node.
    Drain,
    /// Volumes that are to be detached from the Node.
    Volumes,
    /// Pre-terminate hooks.
    PreTerminate,
    /// The infrastructure machine.
    Infrastructure,
    /// The bootstrap configuration.
    Bootstrap,
    /// The Node.
    Node,
}

/// The stages in their order. Volumes are detached by a Node that still runs, and the Node is deleted when its machine is gone: a kubelet
/// would register it again.
const STAGES: [Stage; 8] = [
    Stage::Scope,
    Stage::PreDrain,
    Stage::Drain,
    Stage::Volumes,
    Stage::PreTerminate,
    Stage::Infrastructure,
    Stage::Bootstrap,
    Stage::Node,
];

/// What a stage answers.
enum Answer {
    /// Nothing is left to do, and why, if users want to know.
    Done(Option<Note>),
    /// The stage does not apply, for this reason.
    Skip(String),
    /// These writes complete the stage. The next stages are carried out after them.
    Act(Pending),
    /// Not complete yet.
    Wait(Pending),
    /// An obstacle keeps the stage from going on.
    Blocked(Pending, Blocked),
}

/// What a stage that is not complete does and says.
#[derive(Default)]
struct Pending {
    /// Its writes.
    actions: Vec<Action>,
    /// The condition's reason and message.
    reason: &'static str,
    message: String,
    /// What the drain still has to do, for the message.
    draining: Option<Draining>,
    /// What users see as an event.
    note: Option<Note>,
    /// When to look again, for what no watch shows.
    again: Option<std::time::Duration>,
}

/// How far a stage is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// It is complete.
    Done,
    /// It does not apply.
    Skipped,
    /// It is under way.
    Pending,
}

/// How far the deletion is, for the Deleting condition and the status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Deleting {
    /// The stages that were looked at.
    pub(crate) stages: Vec<(Stage, Progress)>,
    /// The condition's reason.
    pub(crate) reason: &'static str,
    /// The condition's message.
    pub(crate) message: String,
    /// What the drain still has to do.
    draining: Option<Draining>,
}

impl Deleting {
    /// How far a stage is; none when it was not looked at.
    pub(crate) fn progress(&self, of: Stage) -> Option<Progress> {
        let found = self.stages.iter().find(|(stage, _)| *stage == of);
        found.map(|(_, progress)| *progress)
    }

    /// Whether a stage applies and was begun.
    pub(crate) fn has_begun(&self, stage: Stage) -> bool {
        self.progress(stage)
            .is_some_and(|progress| progress != Progress::Skipped)
    }

    /// Whether the drain does not go on because of a failure, and not because of Pods.
    pub(crate) fn is_failed(&self) -> bool {
        self.message == on_node::DRAIN_FAILED || self.draining.is_none()
    }

    /// The same after the writes of the plan. A stage whose write has failed is under way, and those after it were not begun.
    pub(crate) fn after(&self, done: &Done) -> Self {
        let mut after = self.clone();
        if let Some(failed) = &done.stopped {
            let Some((stage, reason, message)) = failure(failed) else {
                return after;
            };
            after.stages.retain(|(other, _)| *other as u8 <= stage as u8);
            for (_, progress) in after.stages.iter_mut().filter(|(other, _)| *other == stage) {
                *progress = Progress::Pending;
            }
            (after.reason, after.message) = (reason, message);
        } else if let Some(draining) = &self.draining {
            for line in draining.lines(&done.evictions) {
                after.message.push('\n');
                after.message.push_str(&line);
            }
        }
        after
    }
}

/// The stage that a failed write belongs to, and the condition's reason and message then.
fn failure(of: &Action) -> Option<(Stage, &'static str, String)> {
    match of {
        Action::Cordon(_) | Action::Evict { .. } => {
            Some((Stage::Drain, reasons::DRAINING_NODE, on_node::DRAIN_FAILED.to_owned()))
        }
        Action::DeleteNode { .. } => Some((Stage::Node, reasons::DELETING_NODE, on_node::NODE_FAILED.to_owned())),
        Action::Delete { which, kind } => {
            let stage = match which {
                External::Infrastructure => Stage::Infrastructure,
                External::Bootstrap => Stage::Bootstrap,
            };
            let message = format!("Failed to delete {kind}, please check controller logs for errors");
            Some((stage, reasons::INTERNAL_ERROR, message))
        }
        Action::Own(_)
        | Action::Join(_)
        | Action::TakeOver(_)
        | Action::PatchNode { .. }
        | Action::Unmark(_)
        | Action::EndHook
        | Action::RemoveFinalizer => None,
    }
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

/// Adds what the deletion does now. The answer is whether the Node belongs to the deletion and is still there for a while.
pub(super) fn plan(seen: &Observed, now: &Moment, plan: &mut Plan) -> bool {
    let mut deleting = Deleting {
        reason: reasons::DELETION_COMPLETED,
        message: "Deletion completed".to_owned(),
        ..Deleting::default()
    };
    let mut keeps_node = true;
    for stage in STAGES {
        if !keeps_node && is_on_node(stage) {
            continue;
        }
        let (progress, pending) = match answer(stage, seen, now) {
            Answer::Done(note) => {
                plan.notes.extend(note);
                (Progress::Done, None)
            }
            Answer::Skip(why) => {
                keeps_node &= stage != Stage::Scope;
                plan.notes.push(Note::new(format!("{}: {why}", skipped(stage))));
                (Progress::Skipped, None)
            }
            Answer::Act(pending) => {
                keeps_node &= stage != Stage::Node;
                (Progress::Done, Some(pending))
            }
            Answer::Wait(pending) => (Progress::Pending, Some(pending)),
            Answer::Blocked(pending, blocked) => {
                plan.blocked = Some(blocked);
                (Progress::Pending, Some(pending))
            }
        };
        deleting.stages.push((stage, progress));
        let Some(pending) = pending else { continue };
        plan.actions.extend(pending.actions);
        plan.notes.extend(pending.note);
        if progress == Progress::Pending {
            plan.requeue = pending.again;
            deleting.reason = pending.reason;
            deleting.message = pending.message;
            deleting.draining = pending.draining;
            break;
        }
    }
    if deleting.reason == reasons::DELETION_COMPLETED {
        plan.actions.push(Action::RemoveFinalizer);
    }
    let note = format!(
        "the deletion is at {}: {}",
        deleting.reason,
        one_line(&deleting.message)
    );
    plan.notes.push(Note::new(note));
    plan.deleting = Some(deleting);
    keeps_node
}

/// The lines of a message as one.
fn one_line(message: &str) -> String {
    message.replace('\n', " ")
}

fn is_on_node(stage: Stage) -> bool {
    matches!(stage, Stage::PreDrain | Stage::Drain | Stage::Volumes | Stage::Node)
}

/// The words for a stage that is skipped.
fn skipped(stage: Stage) -> &'static str {
    match stage {
        Stage::Scope => "the Node is left alone",
        Stage::PreDrain => "pre-drain hooks are skipped",
        Stage::Drain => "the drain is skipped",
        Stage::Volumes => "attached volumes are not waited for",
        Stage::PreTerminate => "pre-terminate hooks are skipped",
        Stage::Infrastructure => "the infrastructure machine is left alone",
        Stage::Bootstrap => "the bootstrap configuration is left alone",
        Stage::Node => "the Node is not deleted",
    }
}

fn answer(stage: Stage, seen: &Observed, now: &Moment) -> Answer {
    match stage {
        Stage::Scope => scope(seen),
        Stage::PreDrain => pre_drain(seen),
        Stage::Drain => on_node::drain(seen, now),
        Stage::Volumes => on_node::volumes(seen, now),
        Stage::PreTerminate => pre_terminate(seen),
        Stage::Infrastructure => infrastructure(seen),
        Stage::Bootstrap => bootstrap(seen),
        Stage::Node => on_node::node(seen, now),
    }
}

fn scope(seen: &Observed) -> Answer {
    match reach(seen) {
        Reach::Within => Answer::Done(None),
        Reach::Outside(why) => Answer::Skip(why.to_owned()),
        Reach::Unknown(why) => {
            let blocked = Blocked::failed("CannotPlan", why.as_str());
            let pending = Pending {
                reason: reasons::INTERNAL_ERROR,
                message: why,
                ..Pending::default()
            };
            Answer::Blocked(pending, blocked)
        }
    }
}

/// Whether the Node is drained and deleted.
fn reach(seen: &Observed) -> Reach {
    // Another Cluster knows nothing of the Node.
    if let Some(why) = moved(seen) {
        return Reach::Unknown(why);
    }
    if seen
        .cluster
        .found()
        .is_some_and(|cluster| cluster.metadata.deletion_timestamp.is_some())
    {
        return Reach::Outside("the Cluster is being deleted");
    }
    if seen.node_name().is_none() && !may_have_node(seen) {
        return Reach::Outside("no Node belongs to the Machine");
    }
    match &seen.cluster {
        Seen::Found(_) => {}
        // It keeps its finalizer for as long as it has Machines, so it was not deleted the usual way: its nodes may be running.
        Seen::NotFound => {
            let name = &seen.machine.spec.cluster_name;
            return Reach::Unknown(format!(
                "spec.clusterName: Cluster {name} does not exist, and its Node cannot be drained: create the Cluster again, or remove the finalizer {} to leave the host running",
                finalizers::MACHINE
            ));
        }
        Seen::Failed(why) => return Reach::Unknown(why.clone()),
    }
    match &seen.control_plane {
        // It may be going as well, or be managed externally, so that it has no Machines.
        Seen::Failed(why) => return Reach::Unknown(why.clone()),
        Seen::Found(control_plane) if control_plane.is_deleting() => {
            return Reach::Outside("the control plane is being deleted");
        }
        Seen::Found(control_plane) if windlass_contract::control_plane::external_managed(control_plane.value()) => {
            return Reach::Within;
        }
        Seen::Found(_) | Seen::NotFound => {}
    }
    let mut others = seen.control_plane_machines.iter();
    if others.any(|machine| machine.metadata.deletion_timestamp.is_none()) {
        Reach::Within
    } else {
        Reach::Outside("no control plane Machine would be left")
    }
}

/// Whether a Machine of which no Node is known may have one, while the workload cluster cannot be asked: its host may have joined
/// meanwhile, or the status that had the Node's name was lost. No host has joined a cluster that never came up.
fn may_have_node(seen: &Observed) -> bool {
    let may_be_there = match &seen.remote {
        Workload::NotTried(_) => seen.may_answer(),
        Workload::Down(_) => has_come_up(seen),
        Workload::Up(_) => false,
    };
    provider_id(seen).is_some() && may_be_there
}

/// Start times recorded in the status.
fn started(seen: &Observed) -> MachineDeletionStatus {
    seen.machine
        .status
        .as_ref()
        .and_then(|status| status.deletion.clone())
        .unwrap_or_default()
}

fn pre_drain(seen: &Observed) -> Answer {
    wait_for_hooks(
        seen,
        annotations::PRE_DRAIN_HOOK_PREFIX,
        "pre-drain",
        reasons::WAITING_FOR_PRE_DRAIN_HOOK,
    )
}

fn pre_terminate(seen: &Observed) -> Answer {
    wait_for_hooks(
        seen,
        annotations::PRE_TERMINATE_HOOK_PREFIX,
        "pre-terminate",
        reasons::WAITING_FOR_PRE_TERMINATE_HOOK,
    )
}

fn wait_for_hooks(seen: &Observed, prefix: &str, name: &str, reason: &'static str) -> Answer {
    let waiting = hooks(seen, prefix);
    if waiting.is_empty() {
        return Answer::Done(None);
    }
    Answer::Wait(Pending {
        reason,
        message: format!("Waiting for {name} hooks to succeed (hooks: {})", waiting.join(",")),
        ..Pending::default()
    })
}

fn infrastructure(seen: &Observed) -> Answer {
    let reason = reasons::WAITING_FOR_INFRASTRUCTURE_DELETION;
    external(&seen.infrastructure, External::Infrastructure, reason)
}

fn bootstrap(seen: &Observed) -> Answer {
    let reason = reasons::WAITING_FOR_BOOTSTRAP_DELETION;
    match &seen.bootstrap {
        Some(object) => external(object, External::Bootstrap, reason),
        None => Answer::Done(None),
    }
}

fn external(object: &Seen<Referenced>, which: External, reason: &'static str) -> Answer {
    match object {
        Seen::NotFound => Answer::Done(None),
        Seen::Failed(why) => {
            let blocked = Blocked::failed("CannotPlan", why.as_str());
            let pending = Pending {
                reason: reasons::INTERNAL_ERROR,
                message: why.clone(),
                ..Pending::default()
            };
            Answer::Blocked(pending, blocked)
        }
        Seen::Found(found) => {
            let kind = found.kind().to_owned();
            let delete = (!found.is_deleting()).then_some(Action::Delete { which, kind });
            Answer::Wait(Pending {
                actions: delete.into_iter().collect(),
                reason,
                message: read::waits_for(found),
                ..Pending::default()
            })
        }
    }
}
