//! Decides about a topology: renders it, compares it with what exists, and asks the API server about templates that may change.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use serde_json::{Value, json};
use windlass_api::core::ClusterClass;
use windlass_api::kind::Conditioned as _;
use windlass_api::meta::MetaExt as _;
use windlass_api::{conditions, reasons};
use windlass_api_ext::rollouts::annotations;
use windlass_conditions::{Draft, Status};
use windlass_controller_runtime::{Blocked, Decision, EventType, Moment, Note, Seen, Until};
use windlass_topology::blueprint::{Blueprint, Class, Contract};
use windlass_topology::desired::Input;
use windlass_topology::plan::{Action, Plan as Steps, Step, Verb};
use windlass_topology::revision;
use windlass_topology::status::{self, Progress};
use windlass_topology::{Error, plan as topology_plan};

use super::observe::{Managed, Observed, Question, Revision};

/// The steps of a topology, and the report on it.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// The writes, in order, each with its reason and its event.
    pub(super) actions: Vec<Step>,
    /// Why some changes wait.
    pub(super) notes: Vec<Note>,
    /// Why there are no steps, when they cannot be computed, or why some parts have none.
    pub(super) blocked: Option<Blocked>,
    /// The condition TopologyReconciled, unless a step fails. None when the Cluster has no topology.
    pub(super) report: Option<Draft>,
    /// The progress of an upgrade. None when it is not known.
    pub(super) progress: Option<Progress>,
    /// When a hook that blocks is asked again.
    pub(super) requeue: Option<Duration>,
    /// Whether nothing is left to do until something changes that is read.
    pub(super) is_settled: bool,
}

impl Plan {
    fn report(report: Draft) -> Self {
        Self {
            report: Some(report),
            progress: Some(Progress::default()),
            ..Self::default()
        }
    }

    /// Whether it changes nothing, waits for nothing, and holds at any time.
    fn settles(&self, now: &Moment) -> bool {
        let Self {
            actions,
            notes,
            blocked,
            report,
            progress,
            requeue,
            is_settled: _,
        } = self;
        actions.iter().all(|step| !step.changes)
            && notes.is_empty()
            && blocked.is_none()
            && report.as_ref().is_some_and(|report| report.status == Status::True)
            && progress.as_ref().is_some_and(Progress::settled)
            && requeue.is_none()
            && now.next_deadline().is_none()
    }

    /// The same plan, made again when the answers of extensions of the class count no more.
    fn asking_again(mut self, seen: &Managed) -> Self {
        let of_revision = seen.read.as_ref().and_then(|read| read.as_ref().ok());
        let is_patched = of_revision.is_some_and(|read| read.spec.patches.iter().any(|patch| patch.external.is_some()));
        if is_patched || seen.class.as_deref().is_some_and(has_external_patches) {
            let soon = self.requeue.unwrap_or(ANSWERS_COUNT_FOR);
            self.requeue = Some(soon.min(ANSWERS_COUNT_FOR));
        }
        self
    }
}

/// Why there are no steps.
struct Obstacle {
    reason: &'static str,
    until: Until,
    /// `None` leaves the condition as it is.
    report: Option<Draft>,
    message: String,
    /// Whether a user has to act.
    warns: bool,
}

/// How long an upgrade plan of an extension counts, as in Cluster API.
const PLAN_COUNTS_FOR: SignedDuration = SignedDuration::from_mins(10);

/// How long the patches of extensions count. No event shows that one would give others now; Cluster API asks again as often.
const ANSWERS_COUNT_FOR: Duration = Duration::from_mins(10);

/// The event of an obstacle.
const FAILED_EVENT: &str = "TopologyReconcileFailed";

impl Obstacle {
    /// An object that is watched has to change.
    fn event(reason: &'static str, report: Draft) -> Self {
        Self {
            reason,
            until: Until::Event,
            message: report.message.clone(),
            report: Some(report),
            warns: true,
        }
    }

    /// The class has changed, and its own controller is about to look at it. A Cluster without a report gets one then.
    fn passing(report: Draft, is_first: bool) -> Self {
        Self {
            message: report.message.clone(),
            report: (!is_first).then_some(report),
            warns: false,
            ..Self::event("ClassNotReady", Draft::no(status::FAILED, String::new()))
        }
    }

    fn refused(error: &Error) -> Self {
        Self::event("Refused", status::failed(error))
    }

    /// The class is rolled out in waves, and its controller is about to give the Cluster a revision.
    fn awaited(seen: &Managed, why: &str) -> Self {
        let message = format!(
            "ClusterClassRollout {} has not given the Cluster a revision of its class yet{why}",
            seen.class_key
        );
        let has_report = windlass_conditions::get(seen.cluster.conditions(), conditions::TOPOLOGY_RECONCILED).is_some();
        Self {
            reason: "RevisionAwaited",
            ..Self::passing(Draft::no(status::FAILED, message), has_report)
        }
    }

    /// The revision of the Cluster cannot be used. The class as it is now may be another one, so that nothing is changed.
    fn lost(seen: &Managed, revision: &str, why: &str) -> Self {
        let cluster = windlass_topology::model::name_of(&seen.value);
        let message = format!(
            "is {revision:?}, but ClusterClassRevision {}/{revision} {why}, and nothing of the Cluster is changed; with the next wave of its \
             ClusterClassRollout it gets the newest one; without a rollout, remove the annotation to use the class as it is now",
            seen.class_key.namespace
        );
        let error = Error::new(
            cluster,
            format!("metadata.annotations[{}]", annotations::CLASS_REVISION),
            message,
        );
        Self::event("RevisionLost", status::failed(&error))
    }

    /// Something could not be read. It is read again later.
    fn unreadable(why: &str) -> Self {
        Self {
            reason: "Unreadable",
            until: Until::Backoff,
            ..Self::event("Unreadable", Draft::no(status::FAILED, why.to_owned()))
        }
    }
}

impl From<Obstacle> for Plan {
    fn from(obstacle: Obstacle) -> Self {
        let Obstacle {
            reason,
            until,
            report,
            message,
            warns,
        } = obstacle;
        let note = if warns {
            Note::event(EventType::Warning, FAILED_EVENT, message.clone())
        } else {
            Note::new(message.clone())
        };
        Self {
            blocked: Some(Blocked { reason, message, until }),
            notes: vec![note],
            report,
            ..Self::default()
        }
    }
}

pub(super) fn plan(seen: &Observed, now: &Moment) -> Decision<Plan, Question> {
    match seen {
        Observed::Unmanaged | Observed::Settled => Plan::default().into(),
        Observed::Deleting(_) => Plan::report(status::deleting()).into(),
        Observed::Managed(seen) => {
            let decision = managed(seen, now).unwrap_or_else(|obstacle| Plan::from(obstacle).into());
            match decision {
                // Also after an obstacle: what an extension has answered may be its cause.
                Decision::Plan(plan) => {
                    let mut plan = plan.asking_again(seen);
                    plan.is_settled = plan.settles(now);
                    plan.into()
                }
                question @ Decision::Ask(_) => question,
            }
        }
    }
}

fn managed(seen: &Managed, now: &Moment) -> Result<Decision<Plan, Question>, Obstacle> {
    if let Some(why) = &seen.class_unread {
        let cluster = windlass_topology::model::name_of(&seen.value);
        let message = format!("ClusterClass {}: {why}", seen.class_key);
        let error = Error::new(cluster, "spec.topology.classRef", message);
        return Err(Obstacle::event("ClassUnread", status::failed(&error)));
    }
    let (Some(class), Some(read)) = (seen.class.as_deref(), &seen.read) else {
        let message = format!("ClusterClass {} does not exist", seen.class_key);
        let cluster = windlass_topology::model::name_of(&seen.value);
        let error = Error::new(cluster, "spec.topology.classRef", message);
        return Err(Obstacle::event("ClassNotFound", status::failed(&error)));
    };
    let read = read.as_ref().map_err(Obstacle::refused)?;
    if class.metadata.deletion_timestamp.is_some() {
        // Its templates go with it. What was made from them stays as it is.
        let message = format!(
            "ClusterClass {} is being deleted; move the Cluster to another class (spec.topology.classRef), or restore this one",
            seen.class_key
        );
        let cluster = windlass_topology::model::name_of(&seen.value);
        let error = Error::new(cluster, "spec.topology.classRef", message);
        return Err(Obstacle::event("ClassDeleting", status::failed(&error)));
    }
    match &seen.revision {
        // It was ready when the revision was made.
        Revision::Kept(_) => {}
        Revision::Newest => {
            if let Some(obstacle) = class_not_ready(seen, class) {
                return Err(obstacle);
            }
        }
        Revision::Awaited(why) => return Err(Obstacle::awaited(seen, why)),
        Revision::Lost(revision) => return Err(Obstacle::lost(seen, revision, "does not exist")),
        Revision::Edited(revision) => {
            return Err(Obstacle::lost(
                seen,
                revision,
                "has other contents than its name stands for",
            ));
        }
    }
    if let Some(why) = seen.templates.values().find_map(Seen::failure) {
        return Err(Obstacle::unreadable(why));
    }
    let steps = steps(seen, read, now)?;
    let asks_extensions = !steps.calls.is_empty() || steps.plan_request.is_some() || steps.patches.is_some();
    if !steps.trials.is_empty() || asks_extensions {
        return Ok(Decision::Ask(Question {
            trials: steps.trials,
            calls: steps.calls,
            route: steps.plan_request,
            patches: steps.patches,
        }));
    }
    Ok(taken(seen, steps).into())
}

/// Whether extensions change or check the templates of a class.
pub(super) fn has_external_patches(class: &ClusterClass) -> bool {
    class.spec.patches.iter().any(|patch| patch.external.is_some())
}

/// The plan with these steps.
fn taken(seen: &Managed, steps: Steps) -> Plan {
    let is_settled = steps.progress.settled() && steps.changes().next().is_none();
    let failed = steps.failed_hook.iter().chain(&steps.failed_trials);
    let problems: Vec<_> = failed.chain(&steps.left).collect();
    let mut notes: Vec<_> = steps.notes.into_iter().map(Note::new).collect();
    let warning = |error: &&Error| Note::event(EventType::Warning, FAILED_EVENT, error.to_string());
    notes.extend(problems.iter().map(warning));
    notes.extend(seen.unserved.iter().map(|why| Note::new(why.clone())));
    let mut report = if problems.is_empty() {
        status::report(&steps.progress)
    } else {
        status::failed_parts(&problems)
    };
    // No event shows that an extension or a webhook has changed its mind.
    let reason = match (&steps.failed_hook, steps.failed_trials.is_empty()) {
        (Some(_), _) => Some("HookFailed"),
        (None, false) => Some("DryRunFailed"),
        (None, true) => None,
    };
    let blocked = reason.map(|reason| Blocked::failed(reason, report.message.clone()));
    let mut actions = steps.steps;
    if seen.has_leftover {
        actions.push(forget(seen));
    } else if is_settled && problems.is_empty() {
        actions.extend(record(seen));
    }
    let requeue = steps.progress.ask_again().map(|seconds| {
        // A negative time blocks as well.
        Duration::from_secs(u64::try_from(seconds.max(1)).unwrap_or(1))
    });
    for why in &seen.unserved {
        report.message = match report.message.as_str() {
            "" => why.clone(),
            before => format!("{before}\n  * {why}"),
        };
    }
    Plan {
        actions,
        notes,
        blocked,
        report: Some(report),
        progress: (!steps.is_lost).then_some(steps.progress),
        requeue,
        is_settled: false,
    }
}

/// The step that records the revision of the class that everything has been brought to. The caches show it then, so that who waits for the Machines of
/// this revision sees the objects that ask for them.
fn record(seen: &Managed) -> Option<Step> {
    let Revision::Kept(revision) = &seen.revision else {
        return None;
    };
    if seen.cluster.metadata.annotation(annotations::RECONCILED_CLASS_REVISION) == Some(revision) {
        return None;
    }
    let cluster = windlass_topology::model::name_of(&seen.value);
    Some(Step {
        action: Action::PatchCluster(json!({
            "metadata": {"annotations": {annotations::RECONCILED_CLASS_REVISION: revision}},
        })),
        verb: Verb::Update,
        note: format!("records that {cluster} has revision {revision} of its class"),
        event: format!("{cluster} has revision {revision} of its class"),
        changes: true,
        rotation: None,
        worker_set: None,
        is_part: false,
    })
}

/// The step that removes what is left of the revision of a class that the Cluster had before.
fn forget(seen: &Managed) -> Step {
    let cluster = windlass_topology::model::name_of(&seen.value);
    let note = format!("removes the revision of another class from {cluster}");
    Step {
        action: Action::PatchCluster(json!({"metadata": {"annotations": {
            annotations::CLASS_REVISION: null, annotations::RECONCILED_CLASS_REVISION: null,
        }}})),
        event: note.clone(),
        note,
        verb: Verb::Update,
        changes: true,
        rotation: None,
        worker_set: None,
        is_part: false,
    }
}

/// The class's own controller has to have seen the class as it is now, and found its variables good.
fn class_not_ready(seen: &Managed, class: &ClusterClass) -> Option<Obstacle> {
    let generation = class.metadata.generation.unwrap_or_default();
    let observed = class.status.as_ref().and_then(|status| status.observed_generation);
    let has_problem = |type_: &str, reason: &str| {
        let found = windlass_conditions::get(class.conditions(), type_)?;
        (found.status != "True" && found.reason != reason && found.observed_generation == Some(generation))
            .then(|| found.message.clone())
    };
    if let Some(message) = has_problem(conditions::VARIABLES_READY, reasons::VARIABLES_READY) {
        let message = format!("ClusterClass is not successfully reconciled: {message}");
        return Some(Obstacle::event("ClassNotReady", Draft::no(status::FAILED, message)));
    }
    // Without the condition, a class was stored or restored with a status that its controller has not written.
    let is_known = windlass_conditions::get(class.conditions(), conditions::VARIABLES_READY).is_some();
    if observed == Some(generation) && is_known {
        return None;
    }
    let mut report = status::class_not_reconciled(generation, observed.unwrap_or_default());
    if observed == Some(generation) {
        report.message = format!(
            "ClusterClass is not successfully reconciled: it has no condition {}",
            conditions::VARIABLES_READY
        );
    }
    // A class that merely names older versions of kinds is no problem; one whose templates are missing is.
    let why = has_problem(
        conditions::REF_VERSIONS_UP_TO_DATE,
        reasons::REF_VERSIONS_NOT_UP_TO_DATE,
    );
    let Some(why) = why.filter(|why| !why.is_empty()) else {
        let has_report = windlass_conditions::get(seen.cluster.conditions(), conditions::TOPOLOGY_RECONCILED).is_some();
        return Some(Obstacle::passing(report, observed.is_none() && !has_report));
    };
    report.message = format!("{}: {why}", report.message);
    Some(Obstacle::event("ClassNotReady", report))
}

fn steps(seen: &Managed, class: &Arc<Class>, now: &Moment) -> Result<Steps, Obstacle> {
    let current = seen.current.as_ref().map_err(|why| Obstacle::unreadable(why))?;
    let contract = seen.contract.as_ref().map_err(|why| Obstacle::unreadable(why))?;
    let blueprint = blueprint(seen, class, *contract).map_err(|error| Obstacle::refused(&error))?;
    let cluster = known_variables(seen, class);
    let known = seen.upgrade_plan.as_ref();
    let upgrade_plan = known
        .filter(|(_, since)| !now.elapsed(*since, PLAN_COUNTS_FOR))
        .map(|(known, _)| known);
    let input = Input {
        cluster: &cluster,
        blueprint: &blueprint,
        current,
        upgrade_plan,
        stores_defaults: seen.is_newest,
        patches: seen.patches.as_ref(),
        now,
    };
    topology_plan::plan(input).map_err(|error| Obstacle::refused(&error))
}

/// The Cluster without values for variables that only a newer revision of the class defines.
fn known_variables<'a>(seen: &'a Managed, revision: &Class) -> Cow<'a, Value> {
    let newest = seen.class.as_ref().and_then(|class| class.status.as_ref());
    let (Revision::Kept(_), Some(newest)) = (&seen.revision, newest) else {
        return Cow::Borrowed(&seen.value);
    };
    let is_unknown = |name: &str| {
        newest.variables.iter().any(|variable| variable.name == name)
            && revision.variables.iter().all(|variable| variable.name != name)
    };
    if newest.variables.iter().any(|variable| is_unknown(&variable.name)) {
        return Cow::Owned(revision::without_variables(&seen.value, is_unknown));
    }
    Cow::Borrowed(&seen.value)
}

fn blueprint(seen: &Managed, class: &Arc<Class>, contract: Contract) -> Result<Blueprint, Error> {
    Blueprint::new(class, contract, |reference| {
        let place = format!("{} {}/{}", reference.kind, seen.class_key.namespace, reference.name);
        match seen.templates.get(reference) {
            Some(Seen::Found(template)) => Ok(template.clone()),
            Some(Seen::Failed(why)) => Err(format!("{place} cannot be read: {why}")),
            Some(Seen::NotFound) | None => Err(format!("{place} does not exist")),
        }
    })
}

impl windlass_controller_runtime::Plan for Plan {
    fn notes(&self) -> &[Note] {
        &self.notes
    }

    fn requeue(&self) -> Option<Duration> {
        self.requeue
    }

    fn blocked(&self) -> Option<Blocked> {
        self.blocked.clone()
    }
}
