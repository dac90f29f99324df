//! Decides which revisions are kept, and which Clusters get which.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use windlass_api::annotations::PAUSED;
use windlass_api::conditions::VARIABLES_READY;
use windlass_api::core::{Cluster, ClusterClass};
use windlass_api::kind::{ApiKind as _, Conditioned as _};
use windlass_api::meta::MetaExt as _;
use windlass_api_ext::rollouts::{ClusterClassRevision, ClusterClassRolloutStatus, annotations};
use windlass_controller_runtime::{Blocked, EventType, Moment, Note, ObjectKey, Seen, Until};
use windlass_topology::revision::Contents;
use windlass_topology::waves::{Before, Decision, Failure, Has, Member, Settings, State, decide};

use super::facts::{keys, members, settings, wave};
use super::observe::Observed;
use super::status::PROGRESSING;

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    /// Keeps the class as it is now.
    Keep(Value),
    /// Gives a Cluster with this uid a revision.
    Assign {
        cluster: ObjectKey,
        uid: String,
        revision: String,
    },
    /// Leaves a Cluster with this uid to the class as it is.
    Release { cluster: ObjectKey, uid: String },
    /// Deletes a revision that no Cluster has.
    Delete(Arc<ClusterClassRevision>),
    /// Removes the annotation by which a user has let it go on.
    Resumed,
    /// Lets the rollout go.
    RemoveFinalizer,
}

/// The writes, and what they are for.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(super) actions: Vec<Action>,
    pub(super) notes: Vec<Note>,
    pub(super) blocked: Option<Blocked>,
    /// What the status shows. None if nothing was decided.
    pub(super) decided: Option<Decided>,
}

/// What was decided about the Clusters.
#[derive(Debug)]
pub(super) struct Decided {
    pub(super) decision: Decision,
    /// The newest revision.
    pub(super) newest: String,
    /// The Clusters, with what they have before the writes.
    pub(super) members: Vec<Member>,
}

impl Plan {
    /// Nothing is decided while the class is paused.
    fn paused(why: String) -> Self {
        Self {
            notes: vec![Note::new(why.clone())],
            blocked: Some(Blocked {
                reason: State::Paused.reason(),
                message: why,
                until: Until::Event,
            }),
            ..Self::default()
        }
    }

    fn blocked(reason: &'static str, message: String, until: Until) -> Self {
        Self {
            notes: vec![Note::event(EventType::Warning, reason, message.clone())],
            blocked: Some(Blocked { reason, message, until }),
            ..Self::default()
        }
    }
}

/// How many Clusters an event names.
const SHOWN: usize = 5;

/// The reason when the class cannot be kept as it is now.
pub(super) const NOT_READY: &str = "ClassNotReady";
/// The reason when a revision has other contents than its name stands for.
pub(super) const EDITED: &str = "RevisionEdited";
/// The reason of an event: spec.abort has no effect.
const ABORTS_NOTHING: &str = "AbortHasNoEffect";
/// The reason of an event: all Clusters have the revision before an aborted one again.
const WENT_BACK: &str = "WentBack";
/// The reason when the settings cannot be used.
pub(super) const INVALID: &str = "InvalidSettings";

pub(super) fn plan(seen: &Observed, now: &Moment) -> Plan {
    let Some(class) = &seen.class else {
        if seen.rollout.is_deleting() {
            return release(seen);
        }
        let message = format!("ClusterClass {} does not exist", seen.rollout.key());
        return Plan::blocked(NOT_READY, message, Until::Event);
    };
    let (mut settings, selectors) = match settings(&seen.rollout.spec) {
        Ok(found) => found,
        Err(problem) => return Plan::blocked(INVALID, problem, Until::Event),
    };
    let none = ClusterClassRolloutStatus::default();
    let status = seen.rollout.status.as_ref().unwrap_or(&none);
    let Newest {
        name: newest,
        contents,
        held,
    } = match newest(seen, class, status) {
        Ok(newest) => newest,
        Err(plan) => return *plan,
    };
    if let Some(why) = is_paused(class) {
        settings.paused.get_or_insert(why);
    }
    let since = status.update_time.as_ref().map(|time| time.0);
    let since = since.filter(|_| status.update_revision.as_deref() == Some(newest.as_str()));
    let class_of = |revision: &str| {
        let found = seen.usable(revision).map(|one| one.spec.class_name.as_str());
        // The one that is about to be kept exists, too.
        found.or_else(|| (revision == newest).then(|| class.metadata.name()))
    };
    let gate = seen.rollout.spec.health_gate.clone().unwrap_or_default();
    let mut members = members(
        &seen.clusters,
        &selectors,
        &gate,
        class.metadata.name(),
        class_of,
        since,
    );
    if seen.rollout.is_deleting() {
        // Those that were released follow the class already.
        members.retain(|member| !matches!(member.revision, Has::None(_)));
    }
    let failure = status.failure.as_ref().map(|failure| Failure {
        clusters: keys(&failure.clusters),
        revision: failure.revision.clone(),
        time: failure.time.as_ref().map_or_else(|| now.now(), |time| time.0),
    });
    let before = Before {
        current_exists: status
            .current_revision
            .as_deref()
            .is_some_and(|name| class_of(name) == Some(class.metadata.name())),
        current: status.current_revision.clone(),
        wave: status.wave.as_ref().map(wave),
        failure,
    };
    let is_resumed = seen.rollout.metadata.has_annotation(annotations::RESUME);
    let mut decision = decide(&settings, &newest, &before, &members, is_resumed, now);
    if let (State::Complete, Some(why)) = (decision.state, held) {
        // There may be a newer one.
        decision.state = State::Paused;
        decision.message = why;
    }
    let mut plan = Plan::default();
    if let Some(contents) = contents.filter(|_| !seen.revisions.contains_key(&newest)) {
        let note = format!("keeps ClusterClass {} as revision {newest}", seen.rollout.key());
        plan.notes.push(Note::new(note));
        plan.actions
            .push(Action::Keep(revision(seen, class, &newest, &contents)));
    }
    plan.blocked = unreadable(seen);
    plan.assign(seen, &decision);
    // The failure is forgotten first: the annotation must not go before the status shows that.
    if is_resumed && before.failure.is_none() {
        plan.actions.push(Action::Resumed);
    }
    tell(&mut plan, seen, &before, &decision, &newest);
    for (reason, what) in remarks(seen, &settings, &decision, &newest) {
        plan.notes.push(what.note(reason));
        decision.remark(&what.text);
    }
    let is_over = decision.state == State::Complete && decision.assignments.is_empty();
    if seen.rollout.is_deleting() && is_over {
        let released = release(seen);
        plan.actions.extend(released.actions);
        plan.notes.extend(released.notes);
    } else {
        plan.delete_unused(seen, class.metadata.name(), &decision, &newest, &before);
    }
    plan.decided = Some(Decided {
        decision,
        newest,
        members,
    });
    plan
}

/// The newest revision of the class.
struct Newest {
    name: String,
    /// What it keeps. None if the class is not kept as it is now.
    contents: Option<Contents>,
    /// Why it is not known whether the class is still the same, if that is so.
    held: Option<String>,
}

/// The newest revision; or the plan if there is none.
fn newest(seen: &Observed, class: &ClusterClass, status: &ClusterClassRolloutStatus) -> Result<Newest, Box<Plan>> {
    let known = status.update_revision.as_deref();
    let known = known.filter(|known| seen.usable(known).is_some());
    let found = contents(seen, class).map(|contents| (contents.name(class.metadata.name()), contents));
    let of_known = |known: &str, held| Newest {
        name: known.to_owned(),
        contents: None,
        held,
    };
    match (found, is_paused(class), known) {
        // A paused class makes no new revision.
        (Ok((name, _)), Some(why), Some(known)) if name != known => Ok(of_known(known, Some(why))),
        (Err(_), Some(why), Some(known)) => Ok(of_known(known, Some(why))),
        (_, Some(why), None) => Err(Box::new(Plan::paused(why))),
        (Ok((name, _)), None, _) if seen.edited.contains(&name) => Err(Box::new(Plan::blocked(
            EDITED,
            format!(
                "{}; delete it: it is made again from the class as it is now",
                edited(seen, &name)
            ),
            Until::Event,
        ))),
        (Ok((name, contents)), _, _) => Ok(Newest {
            name,
            contents: Some(contents),
            held: None,
        }),
        // An abort must not wait until the class is mended.
        (Err(why), None, known) => match known.filter(|known| is_aborted(seen, known)) {
            Some(known) => Ok(of_known(known, None)),
            None => Err(Box::new(why.into())),
        },
    }
}

/// The name of the revision of the class as it is now, if it can be kept.
pub(super) fn newest_name(seen: &Observed, class: &ClusterClass) -> Option<String> {
    let contents = contents(seen, class).ok()?;
    Some(contents.name(class.metadata.name()))
}

/// Why the class begins no wave and makes no revision, if it is paused.
pub(super) fn is_paused(class: &ClusterClass) -> Option<String> {
    let why = || format!("ClusterClass {} has the annotation {PAUSED}", class.key());
    class.metadata.has_annotation(PAUSED).then(why)
}

fn edited(seen: &Observed, revision: &str) -> String {
    format!(
        "ClusterClassRevision {}/{revision} has other contents than its name stands for, and is not used",
        seen.rollout.metadata.namespace()
    )
}

/// Whether the newest revision that was found is aborted.
fn is_aborted(seen: &Observed, newest: &str) -> bool {
    let abort = seen.rollout.spec.abort.as_ref();
    abort.is_some_and(|abort| abort.revision == newest)
}

/// What users have to know whatever goes on.
struct Remark {
    text: String,
    /// Whether something is wrong.
    warns: bool,
}

impl Remark {
    fn note(&self, reason: &'static str) -> Note {
        if self.warns {
            Note::event(EventType::Warning, reason, self.text.clone())
        } else {
            Note::fact(reason, self.text.clone())
        }
    }
}

/// Settings without an effect, and revisions of Clusters that cannot be used.
fn remarks(seen: &Observed, settings: &Settings, decision: &Decision, newest: &str) -> Vec<(&'static str, Remark)> {
    let mut out = Vec::new();
    if let Some(abort) = &settings.abort {
        let text = if abort.revision != newest {
            Some(format!(
                "spec.abort has no effect: it names revision {}, and {newest} is rolled out",
                abort.revision
            ))
        } else if decision.current == newest {
            Some(format!(
                "spec.abort has no effect: all Clusters have revision {newest}, and none is known before it; change the class back instead"
            ))
        } else {
            None
        };
        out.extend(text.map(|text| (ABORTS_NOTHING, Remark { text, warns: false })));
    }
    let class = seen.rollout.metadata.name();
    let of_class = |name: &&String| {
        seen.revisions
            .get(*name)
            .is_some_and(|one| one.spec.class_name == class)
    };
    let is_named = |name: &&String| {
        let mut named = seen.clusters.iter().map(|of_class| &of_class.cluster.metadata);
        named.any(|metadata| metadata.annotation(annotations::CLASS_REVISION) == Some(name.as_str()))
    };
    for name in seen.edited.iter().filter(of_class).filter(is_named) {
        let text = edited(seen, name);
        out.push((EDITED, Remark { text, warns: true }));
    }
    out
}

/// A control plane that could not be read is read again later: no event shows that it can be.
fn unreadable(seen: &Observed) -> Option<Blocked> {
    let why = seen.clusters.iter().find_map(|of_class| match &of_class.control_plane {
        Seen::Failed(why) => Some(format!(
            "the control plane of Cluster {} cannot be read: {why}",
            of_class.cluster.key()
        )),
        Seen::Found(_) | Seen::NotFound => None,
    });
    why.map(|why| Blocked::failed("Unreadable", why))
}

/// Events of what users wait for.
fn tell(plan: &mut Plan, seen: &Observed, before: &Before, decision: &Decision, newest: &str) {
    if let Some(failure) = &decision.failure
        && before.failure.is_none()
    {
        let message = format!("wave stopped for revision {}: {}", failure.revision, decision.message);
        plan.notes
            .push(Note::event(EventType::Warning, State::Failed.reason(), message));
    }
    if let Some(wave) = &decision.wave
        && before
            .wave
            .as_ref()
            .is_none_or(|known| (known.number, &known.revision) != (wave.number, &wave.revision))
    {
        let clusters: Vec<String> = wave.clusters.iter().map(ToString::to_string).collect();
        let message = format!(
            "wave {} of stage {} begins: revision {} for {}",
            wave.number,
            wave.stage,
            wave.revision,
            windlass_conditions::listed(&clusters, SHOWN)
        );
        plan.notes.push(Note::event(EventType::Normal, "WaveBegins", message));
    }
    let was = windlass_conditions::get(seen.rollout.conditions(), PROGRESSING);
    let was = was.map(|condition| condition.reason.as_str());
    let went = |state: State| was == Some(state.reason());
    let was_behind = before.current.as_deref().is_some_and(|current| current != newest);
    // A class that was changed back has the revision that all Clusters had before.
    let returned = went(State::InProgress) || went(State::Soaking);
    let (reason, revision) = match decision.state {
        State::Complete if was_behind || returned => (State::Complete.reason(), newest),
        State::Aborted if went(State::GoingBack) && decision.is_back => (WENT_BACK, decision.current.as_str()),
        _ => return,
    };
    let message = match reason {
        WENT_BACK => format!("all Clusters have revision {revision} again, which they had before {newest}"),
        _ => format!("all Clusters have revision {revision}"),
    };
    plan.notes.push(Note::event(EventType::Normal, reason, message));
}

/// Why a class is not kept as it is now.
enum NotReady {
    /// Its controller is about to look at it.
    Passing(String),
    /// A user has to act.
    Fault(String),
    /// Something could not be read. It is read again later.
    Unreadable(String),
}

impl From<NotReady> for Plan {
    fn from(why: NotReady) -> Self {
        match why {
            NotReady::Passing(message) => Self {
                notes: vec![Note::new(message)],
                ..Self::default()
            },
            NotReady::Fault(message) => Self::blocked(NOT_READY, message, Until::Event),
            NotReady::Unreadable(message) => Self::blocked(NOT_READY, message, Until::Backoff),
        }
    }
}

/// What is kept of the class, if its own controller has found it good.
fn contents(seen: &Observed, class: &ClusterClass) -> Result<Contents, NotReady> {
    let name = seen.rollout.key();
    let generation = class.metadata.generation;
    let variables = windlass_conditions::get(class.conditions(), VARIABLES_READY);
    if let Some(condition) = variables
        && condition.status != "True"
        && condition.observed_generation == generation
    {
        return Err(NotReady::Fault(format!("ClusterClass {name}: {}", condition.message)));
    }
    let references = seen.references.as_ref();
    let references = references.map_err(|why| NotReady::Fault(format!("ClusterClass {name}: {why}")))?;
    let mut templates = Vec::new();
    let mut named = BTreeSet::new();
    for reference in references {
        if !named.insert(reference) {
            continue;
        }
        let template = format!("{} {}", reference.kind, reference.name);
        match seen.templates.get(reference) {
            Some(Seen::Found(found)) => templates.push(&**found),
            Some(Seen::Failed(why)) => {
                return Err(NotReady::Unreadable(format!(
                    "ClusterClass {name}: {template} cannot be read: {why}"
                )));
            }
            Some(Seen::NotFound) | None => {
                return Err(NotReady::Fault(format!(
                    "ClusterClass {name}: {template} does not exist"
                )));
            }
        }
    }
    let observed = class.status.as_ref().and_then(|status| status.observed_generation);
    if observed != generation || variables.is_none() {
        return Err(NotReady::Passing(format!("ClusterClass {name} is not reconciled yet")));
    }
    Ok(Contents::of(&seen.value, templates))
}

/// The object that keeps a class. It has no owner: with the class of another uid, as after a restore, it would be deleted while Clusters need it.
fn revision(seen: &Observed, class: &ClusterClass, name: &str, contents: &Contents) -> Value {
    json!({
        "apiVersion": ClusterClassRevision::API_VERSION,
        "kind": ClusterClassRevision::KIND,
        "metadata": {
            "name": name,
            "namespace": seen.rollout.metadata.namespace(),
        },
        "spec": {
            "class": contents.class,
            "className": class.metadata.name(),
            "generation": class.metadata.generation,
            "templates": contents.templates,
            "variables": contents.variables,
        },
    })
}

impl Plan {
    /// Gives Clusters their revisions.
    fn assign(&mut self, seen: &Observed, decision: &Decision) {
        for one in &decision.assignments {
            let found = seen
                .clusters
                .iter()
                .find(|of_class| of_class.cluster.key() == one.cluster);
            let uid = found.map_or_else(String::new, |of_class| of_class.cluster.metadata.uid().to_owned());
            self.notes.push(Note::new(one.note.clone()));
            self.actions.push(Action::Assign {
                cluster: one.cluster.clone(),
                uid,
                revision: one.revision.clone(),
            });
        }
    }

    /// Deletes the revisions of the class that no Cluster has or gets.
    fn delete_unused(&mut self, seen: &Observed, class: &str, decision: &Decision, newest: &str, before: &Before) {
        let mut used: BTreeSet<&str> = BTreeSet::from([newest, decision.current.as_str()]);
        used.extend(before.current.as_deref());
        used.extend(decision.assignments.iter().map(|one| one.revision.as_str()));
        for of_class in &seen.clusters {
            used.extend(of_class.cluster.metadata.annotation(annotations::CLASS_REVISION));
        }
        for (name, revision) in &seen.revisions {
            if revision.spec.class_name == class && !used.contains(name.as_str()) && !revision.is_deleting() {
                self.notes
                    .push(Note::new(format!("deletes revision {name}: no Cluster has it")));
                self.actions.push(Action::Delete(revision.clone()));
            }
        }
    }
}

/// Leaves all Clusters to the class as it is, and lets the rollout go.
fn release(seen: &Observed) -> Plan {
    let note = format!(
        "ClusterClassRollout {} goes: all Clusters follow the class from now on",
        seen.rollout.key()
    );
    let mut plan = Plan {
        notes: vec![Note::new(note)],
        ..Plan::default()
    };
    for of_class in &seen.clusters {
        let cluster: &Cluster = &of_class.cluster;
        let metadata = &cluster.metadata;
        let is_marked = [annotations::CLASS_REVISION, annotations::RECONCILED_CLASS_REVISION]
            .iter()
            .any(|key| metadata.has_annotation(key));
        if is_marked {
            plan.actions.push(Action::Release {
                cluster: cluster.key(),
                uid: metadata.uid().to_owned(),
            });
        }
    }
    if !plan.actions.is_empty() {
        // Revisions go when the caches show that no Cluster names them: else Clusters would report a lost one.
        return plan;
    }
    for revision in seen.revisions.values() {
        if revision.spec.class_name == seen.rollout.metadata.name() && !revision.is_deleting() {
            plan.actions.push(Action::Delete(revision.clone()));
        }
    }
    plan.actions.push(Action::RemoveFinalizer);
    plan
}

impl windlass_controller_runtime::Plan for Plan {
    fn notes(&self) -> &[Note] {
        &self.notes
    }

    fn blocked(&self) -> Option<Blocked> {
        self.blocked.clone()
    }
}
