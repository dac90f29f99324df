//! Which Clusters of a class get a new revision of it, and when: pure.
//!
//! A wave is at most so many Clusters of one stage. The next one begins when all Clusters that have the revision are up to date and healthy, and have
//! been for the soak time. What is known is read from the Clusters; what was found before (the wave, since when it is healthy) may be lost, and the
//! rollout then goes on with what the Clusters have.

mod pick;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use windlass_meta::{Moment, ObjectKey};

use pick::{Next, next};
pub use pick::{Scheduled, schedule};

/// How a class is rolled out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The stages in order. Every Cluster belongs to one.
    pub stages: Vec<Stage>,
    /// After which time a Cluster that is not healthy counts as failed.
    pub deadline: SignedDuration,
    /// How many Clusters may stay unhealthy.
    pub most_unhealthy: usize,
    /// Whether no further wave begins.
    pub paused: bool,
    /// The end of the rollout of a revision.
    pub abort: Option<Abort>,
}

/// A group of Clusters that get a revision after those of the stages before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// Its name.
    pub name: String,
    /// The most Clusters of a wave.
    pub size: Size,
    /// How long all Clusters must be healthy after a wave.
    pub soak: SignedDuration,
}

/// The most Clusters of a wave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// So many.
    Count(usize),
    /// A percentage of the stage, rounded up.
    Percent(usize),
}

/// The end of the rollout of a revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abort {
    /// The revision. Another one is rolled out.
    pub revision: String,
    /// Whether the Clusters that have it go back to the revision before.
    pub goes_back: bool,
}

/// A Cluster of the class that is not being deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its namespace and name.
    pub key: ObjectKey,
    /// The index of its stage.
    pub stage: usize,
    /// The revision of the class that it has. None if it has none that exists.
    pub revision: Option<String>,
    /// Whether nothing was generated for it yet, or it has come from another class.
    pub is_new: bool,
    /// Whether it was created after the newest revision.
    pub is_younger: bool,
    /// Whether it is paused.
    pub is_paused: bool,
    /// Whether everything has been brought to its revision and it is healthy; or why not.
    pub health: Result<(), String>,
}

/// What was found before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Before {
    /// The revision that all Clusters had before this rollout.
    pub current: Option<String>,
    /// The wave.
    pub wave: Option<Wave>,
    /// Why the rollout has stopped.
    pub failure: Option<Failure>,
}

/// A wave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wave {
    /// Its number, from 1.
    pub number: i32,
    /// The name of the stage.
    pub stage: String,
    /// The revision that its Clusters get.
    pub revision: String,
    /// Its Clusters.
    pub clusters: BTreeSet<ObjectKey>,
    /// The Clusters that were not healthy in time and may stay so.
    pub tolerated: BTreeSet<ObjectKey>,
    /// Since when Clusters that have the revision are not healthy.
    pub waiting_since: Option<Timestamp>,
    /// Since when all of them are healthy.
    pub healthy_since: Option<Timestamp>,
}

/// Why a rollout has stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The Clusters that were not healthy in time.
    pub clusters: BTreeSet<ObjectKey>,
    /// The revision that they have.
    pub revision: String,
    /// When it was found.
    pub time: Timestamp,
}

/// What goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// All Clusters have the newest revision.
    Complete,
    /// Clusters of a wave are not up to date or healthy yet.
    InProgress,
    /// They are, and the soak time goes on.
    Soaking,
    /// The clusters that are left cannot be changed now.
    Held,
    /// A user has paused it.
    Paused,
    /// Too many Clusters were not healthy in time.
    Failed,
    /// A user has aborted it.
    Aborted,
    /// Clusters go back to the revision before.
    GoingBack,
}

impl State {
    /// The reason of the condition Progressing.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Complete => "Complete",
            Self::InProgress => "WaveInProgress",
            Self::Soaking => "Soaking",
            Self::Held => "ClustersHeld",
            Self::Paused => "Paused",
            Self::Failed => "HealthGateFailed",
            Self::Aborted => "Aborted",
            Self::GoingBack => "GoingBack",
        }
    }

    /// Whether it goes on without a user.
    pub fn goes_on(self) -> bool {
        matches!(self, Self::InProgress | Self::Soaking | Self::GoingBack)
    }
}

/// A Cluster gets a revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The Cluster.
    pub cluster: ObjectKey,
    /// The revision.
    pub revision: String,
    /// Why.
    pub note: String,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Clusters that get a revision.
    pub assignments: Vec<Assignment>,
    /// The revision that all Clusters had before this rollout, or have.
    pub current: String,
    /// The wave.
    pub wave: Option<Wave>,
    /// Why the rollout has stopped.
    pub failure: Option<Failure>,
    /// What goes on.
    pub state: State,
    /// What it waits for.
    pub message: String,
}

/// How many names a message has.
const SHOWN: usize = 3;

/// Decides about the Clusters of a class whose newest revision is `target`. With `resumes`, a failure counts no more.
pub fn decide(
    settings: &Settings,
    target: &str,
    before: &Before,
    members: &[Member],
    resumes: bool,
    now: &Moment,
) -> Decision {
    let current = before.current.clone().unwrap_or_else(|| most_common(members, target));
    let abort = settings.abort.as_ref();
    let abort = abort.filter(|abort| abort.revision == target && current != target);
    let goes_back = abort.is_some_and(|abort| abort.goes_back);
    let goal = match abort {
        None => target,
        Some(_) => current.as_str(),
    };
    let mut decision = Decision {
        assignments: Vec::new(),
        wave: before.wave.clone().filter(|wave| wave.revision == goal),
        failure: before
            .failure
            .clone()
            .filter(|failure| failure.revision == goal && !resumes),
        state: State::Complete,
        message: String::new(),
        current: current.clone(),
    };
    let members = decision.pin(members, goal);
    if abort.is_some() && !goes_back {
        decision.state = State::Aborted;
        decision.message = format!("revision {target} is not rolled out further (spec.abort)");
        return decision;
    }
    let is_over = decision.current == goal && decision.wave.as_ref().is_none_or(|wave| wave.healthy_since.is_some());
    if members.iter().all(|member| member.has(goal)) && ((is_over && !goes_back) || members.is_empty()) {
        target.clone_into(&mut decision.current);
        return decision;
    }
    let rollout = Rollout {
        settings,
        goal,
        goes_back,
        returns: decision.current == goal,
        members: &members,
        now,
    };
    rollout.step(decision, resumes)
}

/// The revision that most Clusters have which do not have the newest one.
fn most_common(members: &[Member], target: &str) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for revision in members.iter().filter_map(|member| member.revision.as_deref()) {
        if revision != target {
            *counts.entry(revision).or_default() += 1;
        }
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    most.map_or(target, |(revision, _)| revision).to_owned()
}

impl Member {
    fn has(&self, revision: &str) -> bool {
        self.revision.as_deref() == Some(revision)
    }
}

impl Decision {
    /// Gives Clusters without a revision one: the goal to those that have nothing of the class yet, the one before to the others. A Cluster of which
    /// it is not known what it has must not jump the queue.
    fn pin(&mut self, members: &[Member], goal: &str) -> Vec<Member> {
        let mut members = members.to_vec();
        for member in members.iter_mut().filter(|member| member.revision.is_none()) {
            let (revision, why) = if member.is_new {
                (goal, "it is new")
            } else {
                (self.current.as_str(), "it has no revision that exists")
            };
            self.assignments.push(Assignment {
                cluster: member.key.clone(),
                revision: revision.to_owned(),
                note: format!("gives Cluster {} revision {revision}: {why}", member.key),
            });
            member.revision = Some(revision.to_owned());
        }
        members
    }

    fn ended(mut self, state: State, message: impl Into<String>) -> Self {
        self.state = state;
        self.message = message.into();
        self
    }
}

/// A rollout that is going on.
struct Rollout<'a> {
    settings: &'a Settings,
    /// The revision that Clusters get.
    goal: &'a str,
    /// Whether it is aborted, and Clusters go back.
    goes_back: bool,
    /// Whether Clusters get the revision that they had before, as it is aborted or the class was changed back.
    returns: bool,
    members: &'a [Member],
    now: &'a Moment,
}

/// How the Clusters are that have the revision.
enum Gate {
    /// All are healthy, or those that are not may stay so.
    Open,
    /// Some are not, which is why.
    Waits(String),
    /// Too many were not in time.
    Failed(Failure),
}

impl Rollout<'_> {
    fn step(&self, mut decision: Decision, resumes: bool) -> Decision {
        if self.settings.paused {
            // The time of a pause does not count.
            if let Some(wave) = &mut decision.wave {
                wave.waiting_since = None;
            }
            return decision.ended(State::Paused, "no further wave begins (spec.paused)");
        }
        if let Some(failure) = &decision.failure {
            let message = stopped(failure);
            return decision.ended(State::Failed, message);
        }
        let progressing = if self.goes_back {
            State::GoingBack
        } else {
            State::InProgress
        };
        match self.gate(&mut decision.wave, resumes) {
            Gate::Waits(why) => return decision.ended(progressing, why),
            Gate::Failed(failure) => {
                let message = stopped(&failure);
                decision.failure = Some(failure);
                return decision.ended(State::Failed, message);
            }
            Gate::Open => {}
        }
        let from = decision.current.clone();
        let next = next(&self.settings.stages, self.members, self.goal, |member| {
            // Clusters that are already on the way from one revision to the next get the new one, which may be the remedy.
            self.returns || !member.has(&from) || member.health.is_ok()
        });
        match next {
            Next::Wave { stage, clusters } => self.begin(decision, &self.settings.stages[stage], stage, &clusters),
            Next::Held(message) => decision.ended(State::Held, message),
            Next::End if self.goes_back => {
                decision.ended(State::Aborted, "all Clusters have the revision before it again")
            }
            Next::End => {
                self.goal.clone_into(&mut decision.current);
                decision.ended(State::Complete, "")
            }
        }
    }

    fn begin(&self, mut decision: Decision, stage: &Stage, index: usize, clusters: &[ObjectKey]) -> Decision {
        let before = decision.wave.as_ref();
        let soak = before.and_then(|wave| {
            let stage = self.settings.stages.iter().find(|stage| stage.name == wave.stage)?;
            Some((stage.soak, wave.healthy_since?, wave.number))
        });
        if let Some((soak, since, number)) = soak
            && !self.goes_back
            && !self.now.elapsed(since, soak)
        {
            let until = since
                .checked_add(soak)
                .map_or_else(|_| String::new(), |until| format!(" until {until}"));
            return decision.ended(State::Soaking, format!("wave {number} is healthy and soaks{until}"));
        }
        let number = before.map_or(1, |wave| wave.number.saturating_add(1));
        let revision = self.goal;
        for cluster in clusters {
            decision.assignments.push(Assignment {
                cluster: cluster.clone(),
                revision: revision.to_owned(),
                note: format!(
                    "gives Cluster {cluster} revision {revision}: wave {number}, stage {}",
                    stage.name
                ),
            });
        }
        let left = self
            .members
            .iter()
            .filter(|member| member.stage == index && !member.has(revision));
        let message = format!(
            "wave {number} begins: {} of {} Clusters of stage {} that do not have revision {revision}",
            clusters.len(),
            left.count(),
            stage.name
        );
        decision.wave = Some(Wave {
            number,
            stage: stage.name.clone(),
            revision: revision.to_owned(),
            clusters: clusters.iter().cloned().collect(),
            tolerated: before.map(|wave| wave.tolerated.clone()).unwrap_or_default(),
            waiting_since: Some(self.now.now()),
            healthy_since: None,
        });
        let state = if self.goes_back {
            State::GoingBack
        } else {
            State::InProgress
        };
        decision.ended(state, message)
    }

    /// Judges the Clusters that have the revision, and notes in the wave since when they are as they are.
    fn gate(&self, wave: &mut Option<Wave>, resumes: bool) -> Gate {
        let released = |member: &&Member| member.has(self.goal) && !member.is_paused && !member.is_younger;
        let is_of_wave = |member: &Member| wave.as_ref().is_some_and(|wave| wave.clusters.contains(&member.key));
        // On the way back, those that never had another revision are no part of it.
        let counts = |member: &&Member| !self.returns || is_of_wave(member);
        let released = self.members.iter().filter(released).filter(counts);
        let unwell: Vec<&Member> = released.filter(|member| member.health.is_err()).collect();
        if wave.is_none()
            && let Some(first) = unwell.first()
        {
            // The status was lost, or a user has moved Clusters by hand.
            *wave = Some(Wave {
                number: 1,
                stage: self
                    .settings
                    .stages
                    .get(first.stage)
                    .map_or_else(String::new, |stage| stage.name.clone()),
                revision: self.goal.to_owned(),
                clusters: keys(&unwell),
                tolerated: BTreeSet::new(),
                waiting_since: None,
                healthy_since: None,
            });
        }
        let Some(wave) = wave else { return Gate::Open };
        wave.tolerated
            .retain(|one| unwell.iter().any(|member| member.key == *one));
        let pending: Vec<&Member> = unwell
            .iter()
            .copied()
            .filter(|member| !wave.tolerated.contains(&member.key))
            .collect();
        if pending.is_empty() {
            wave.waiting_since = None;
            wave.healthy_since.get_or_insert(self.now.now());
            return Gate::Open;
        }
        if resumes {
            wave.waiting_since = None;
        }
        wave.healthy_since = None;
        let since = *wave.waiting_since.get_or_insert(self.now.now());
        if !self.now.elapsed(since, self.settings.deadline) {
            return Gate::Waits(format!("wave {} waits for {}", wave.number, reasons(&pending)));
        }
        if unwell.len() > self.settings.most_unhealthy && !self.goes_back {
            return Gate::Failed(Failure {
                clusters: keys(&unwell),
                revision: self.goal.to_owned(),
                time: self.now.now(),
            });
        }
        wave.tolerated = keys(&unwell);
        wave.healthy_since = Some(self.now.now());
        Gate::Open
    }
}

fn keys(members: &[&Member]) -> BTreeSet<ObjectKey> {
    members.iter().map(|member| member.key.clone()).collect()
}

fn stopped(failure: &Failure) -> String {
    let names: Vec<String> = failure.clusters.iter().map(ToString::to_string).collect();
    format!(
        "stopped at {}: not healthy in time: {}; mend them or the class, and go on with the annotation windlass.dev/resume, or end it with spec.abort",
        failure.time,
        windlass_conditions::listed(&names, SHOWN)
    )
}

/// The first Clusters that are not healthy, and why.
fn reasons(unwell: &[&Member]) -> String {
    let shown = unwell.iter().take(SHOWN).map(|member| {
        let why = member.health.as_ref().err().map_or("", String::as_str);
        format!("{} ({why})", member.key)
    });
    let mut text: Vec<String> = shown.collect();
    if unwell.len() > SHOWN {
        text.push(format!("{} more", unwell.len() - SHOWN));
    }
    text.join(", ")
}
