//! Which Clusters of a class get a new revision of it, and when: pure.
//!
//! A wave is at most so many Clusters of one stage. The next one begins when all Clusters that have the revision are up to date and healthy, and have
//! been for the soak time. What is known is read from the Clusters; what was found before (the wave, since when it is healthy) may be lost, and the
//! rollout then goes on with what the Clusters have.

mod gate;
mod pick;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use windlass_meta::{Moment, ObjectKey};

use gate::{Gate, stopped};
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
    /// Why no further wave begins, if none does.
    pub paused: Option<String>,
    /// The end of the rollout of a revision.
    pub abort: Option<Abort>,
}

/// The name of the last stage: of the Clusters that no selector matches.
pub const OTHERS: &str = "others";

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
    /// The revision of the class that it has.
    pub revision: Has,
    /// Whether nothing was generated for it yet, or it has come from another class.
    pub is_new: bool,
    /// Whether it was created after the newest revision.
    pub is_younger: bool,
    /// Whether it is paused.
    pub is_paused: bool,
    /// Whether its topology cannot be reconciled with the revision that it has. The newest one may be the remedy.
    pub is_stuck: bool,
    /// Whether everything has been brought to its revision and it is healthy; or why not.
    pub health: Result<(), String>,
}

/// Which revision a Cluster has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Has {
    /// This one.
    This(String),
    /// One that does not exist any more. What it was cannot be told: nothing of the Cluster changes until its wave.
    Lost,
    /// It names none. Its objects were last brought to this one, if that exists.
    None(Option<String>),
}

/// What was found before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Before {
    /// The revision that all Clusters had before this rollout.
    pub current: Option<String>,
    /// Whether that exists.
    pub current_exists: bool,
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
    /// The Clusters that have not been healthy since then.
    pub waiting: BTreeSet<ObjectKey>,
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
    /// Whether all Clusters have the revision before an aborted one.
    pub is_back: bool,
}

/// How many names a message has.
const SHOWN: usize = 3;

/// How long all Clusters must be healthy in any case: what their objects say of their Machines may be behind for a moment.
const SETTLES: SignedDuration = SignedDuration::from_secs(2);

/// Decides about the Clusters of a class whose newest revision is `target`. With `resumes`, a failure counts no more.
pub fn decide(
    settings: &Settings,
    target: &str,
    before: &Before,
    members: &[Member],
    resumes: bool,
    now: &Moment,
) -> Decision {
    let (current, is_known) = current(before, members, target);
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
        is_back: false,
        current: current.clone(),
    };
    // What has failed, or waits for a user, is not for new Clusters either.
    let is_doubtful = abort.is_some() || settings.paused.is_some() || decision.failure.is_some();
    let for_new = if is_doubtful && is_known {
        current.as_str()
    } else {
        target
    };
    let members = decision.pin(members, for_new, is_known.then_some(current.as_str()));
    if let Some(one) = members.iter().find(|member| matches!(member.revision, Has::None(_))) {
        let message = format!(
            "revision {current}, which Clusters had before, does not exist any more, and Cluster {} has lost its annotation: set its annotation \
             windlass.dev/class-revision to the revision that it has",
            one.key
        );
        return decision.ended(State::Held, message);
    }
    if abort.is_some() && !goes_back {
        let message = format!("revision {target} is not rolled out further (spec.abort)");
        return decision.ended(State::Aborted, message);
    }
    if goes_back && !is_known {
        let message = format!("revision {current} before it does not exist any more, so no Cluster goes back");
        return decision.ended(State::Aborted, message);
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
        is_lost: before.current.is_none(),
        members: &members,
        now,
    };
    rollout.step(decision, resumes)
}

/// The revision that Clusters had before this rollout, and whether it exists. Without a status, it is the one that most Clusters have which do not
/// have the newest one.
fn current(before: &Before, members: &[Member], target: &str) -> (String, bool) {
    if let Some(known) = &before.current {
        return (known.clone(), before.current_exists || known == target);
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for member in members {
        let (Has::This(revision) | Has::None(Some(revision))) = &member.revision else {
            continue;
        };
        if revision != target {
            *counts.entry(revision).or_default() += 1;
        }
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    // Where no Cluster has any yet, the class as it is now is what they all have.
    let is_first = members.iter().all(|member| member.revision != Has::Lost);
    match most {
        Some((revision, _)) => (revision.to_owned(), true),
        None => (target.to_owned(), is_first),
    }
}

impl Member {
    fn has(&self, revision: &str) -> bool {
        matches!(&self.revision, Has::This(has) if has == revision)
    }

    /// Whether its health says something about the revision that it has: it was there before the revision, or has got it in a wave.
    fn counts(&self, wave: Option<&Wave>) -> bool {
        let is_of_wave = wave.is_some_and(|wave| wave.clusters.contains(&self.key));
        !self.is_paused && (!self.is_younger || is_of_wave)
    }
}

impl Decision {
    /// Gives Clusters without a revision one: the one that their objects have, or the one `for_new` if nothing of the class was generated yet, or
    /// the one before. A Cluster of which it is not known what it has must not jump the queue.
    fn pin(&mut self, members: &[Member], for_new: &str, before: Option<&str>) -> Vec<Member> {
        let mut members = members.to_vec();
        for member in &mut members {
            let Has::None(reconciled) = &member.revision else {
                continue;
            };
            let (revision, why) = match (reconciled, before) {
                (Some(reconciled), _) => (reconciled.as_str(), "its objects have it"),
                (None, _) if member.is_new => (for_new, "it is new"),
                (None, Some(before)) => (before, "it names none"),
                (None, None) => continue,
            };
            let revision = revision.to_owned();
            self.assignments.push(Assignment {
                cluster: member.key.clone(),
                note: format!("gives Cluster {} revision {revision}: {why}", member.key),
                revision: revision.clone(),
            });
            member.revision = Has::This(revision);
        }
        members
    }

    /// Adds a sentence to the message.
    pub fn remark(&mut self, text: &str) {
        if !self.message.is_empty() {
            self.message.push_str("; ");
        }
        self.message.push_str(text);
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
    /// Whether nothing is known of what was found before.
    is_lost: bool,
    members: &'a [Member],
    now: &'a Moment,
}

impl Rollout<'_> {
    fn step(&self, mut decision: Decision, resumes: bool) -> Decision {
        if self.returns && self.is_lost {
            // Also while it is paused: nothing shows afterwards that the status was lost.
            self.find_wave(&mut decision.wave);
        }
        if let Some(why) = &self.settings.paused {
            // The time of a pause does not count.
            if let Some(wave) = &mut decision.wave {
                wave.waiting_since = None;
                wave.healthy_since = None;
            }
            return decision.ended(State::Paused, format!("no further wave begins: {why}"));
        }
        if let Some(failure) = &decision.failure {
            let message = stopped(failure);
            return decision.ended(State::Failed, message);
        }
        if !self.returns {
            self.find_wave(&mut decision.wave);
        }
        let progressing = self.progressing();
        if let Some(wave) = decision.wave.clone()
            && let Some(clusters) = self.noted(&wave)
        {
            let message = self.assign(&mut decision, &wave, &clusters);
            return decision.ended(progressing, message);
        }
        match self.gate(&mut decision.wave, resumes) {
            Gate::Waits(why) => return decision.ended(progressing, why),
            Gate::Failed(failure) => {
                let message = stopped(&failure);
                decision.failure = Some(failure);
                return decision.ended(State::Failed, message);
            }
            Gate::Open => {}
        }
        if let Some(wave) = &decision.wave
            && let Some(since) = wave.healthy_since
            && !self.now.elapsed(since, SETTLES)
        {
            let message = format!("wave {} is healthy, and is looked at for a moment", wave.number);
            return decision.ended(progressing, message);
        }
        let from = decision.current.clone();
        let next = next(
            &self.settings.stages,
            self.members,
            self.goal,
            decision.wave.as_ref(),
            |member| {
                // Clusters that are already on the way from one revision to the next get the new one, which may be the remedy.
                self.returns || !member.has(&from) || member.is_stuck || member.health.is_ok()
            },
        );
        match next {
            Next::Wave { stage, clusters } => self.begin(decision, &self.settings.stages[stage], stage, &clusters),
            Next::Held(message) => decision.ended(State::Held, message),
            Next::End if self.goes_back => {
                decision.is_back = true;
                decision.ended(State::Aborted, "all Clusters have the revision before it again")
            }
            Next::End => {
                self.goal.clone_into(&mut decision.current);
                decision.ended(State::Complete, "")
            }
        }
    }

    fn progressing(&self) -> State {
        if self.goes_back {
            State::GoingBack
        } else {
            State::InProgress
        }
    }

    /// Without a status, or after an abort that was taken back, the wave is found again: that of the last stage of which Clusters have the revision.
    /// On the way back, Clusters that never had another revision have it, too. There a wave is noted in the status before it begins, and only when all
    /// of the status is lost, it is of all Clusters that are not healthy.
    fn find_wave(&self, wave: &mut Option<Wave>) {
        if wave.is_some() {
            return;
        }
        let have = self
            .members
            .iter()
            .filter(|member| member.has(self.goal) && member.counts(None));
        let last = if self.returns {
            have.clone()
                .filter(|member| member.health.is_err())
                .map(|member| member.stage)
                .min()
        } else {
            have.clone().map(|member| member.stage).max()
        };
        let Some(last) = last else { return };
        *wave = Some(Wave {
            number: 1,
            stage: self.stage_name(last),
            revision: self.goal.to_owned(),
            clusters: have
                .filter(|member| (self.returns || member.stage == last) && member.health.is_err())
                .map(|member| member.key.clone())
                .collect(),
            tolerated: BTreeSet::new(),
            waiting: BTreeSet::new(),
            waiting_since: None,
            healthy_since: None,
        });
    }

    fn stage_name(&self, index: usize) -> String {
        self.settings
            .stages
            .get(index)
            .map_or_else(String::new, |stage| stage.name.clone())
    }

    fn begin(&self, mut decision: Decision, stage: &Stage, index: usize, clusters: &[ObjectKey]) -> Decision {
        let before = decision.wave.as_ref();
        if let Some(wave) = before
            && let Some(since) = wave.healthy_since
            && !self.goes_back
        {
            let stages = &self.settings.stages;
            let known = stages.iter().find(|stage| stage.name == wave.stage);
            // A stage that was renamed soaks as the last one.
            let soak = known.or(stages.last()).map_or(SignedDuration::ZERO, |stage| stage.soak);
            if !self.now.elapsed(since, soak) {
                let until = since
                    .checked_add(soak)
                    .map_or_else(|_| String::new(), |until| format!(" until {until}"));
                let number = wave.number;
                return decision.ended(State::Soaking, format!("wave {number} is healthy and soaks{until}"));
            }
        }
        let wave = Wave {
            number: before.map_or(1, |wave| wave.number.saturating_add(1)),
            stage: stage.name.clone(),
            revision: self.goal.to_owned(),
            clusters: clusters.iter().cloned().collect(),
            tolerated: before.map(|wave| wave.tolerated.clone()).unwrap_or_default(),
            waiting: BTreeSet::new(),
            waiting_since: None,
            healthy_since: None,
        };
        let message = if self.returns {
            let left = self.left(index);
            format!(
                "wave {} is next: {} of {left} Clusters of stage {}",
                wave.number,
                clusters.len(),
                stage.name
            )
        } else {
            self.assign(&mut decision, &wave, clusters)
        };
        decision.wave = Some(wave);
        decision.ended(self.progressing(), message)
    }

    /// The Clusters of a wave on the way back that do not have the revision yet, if it has only been noted.
    ///
    /// On that way a wave cannot be told from the Clusters that never had another revision. So it is noted in the status before the first Cluster
    /// gets the revision, and a process that dies in between goes on with the same wave.
    fn noted(&self, wave: &Wave) -> Option<Vec<ObjectKey>> {
        let of_wave = self.members.iter().filter(|member| wave.clusters.contains(&member.key));
        let mut left: Vec<ObjectKey> = of_wave
            .filter(|member| !member.has(self.goal) && !member.is_paused)
            .map(|member| member.key.clone())
            .collect();
        left.sort();
        (self.returns && wave.healthy_since.is_none() && !left.is_empty()).then_some(left)
    }

    /// How many Clusters of a stage do not have the revision.
    fn left(&self, stage: usize) -> usize {
        let of_stage = self.members.iter().filter(|member| member.stage == stage);
        of_stage.filter(|member| !member.has(self.goal)).count()
    }

    /// Gives Clusters of a wave its revision; says so.
    fn assign(&self, decision: &mut Decision, wave: &Wave, clusters: &[ObjectKey]) -> String {
        let Wave {
            number,
            revision,
            stage,
            ..
        } = wave;
        for cluster in clusters {
            // One that has lost its annotation gets what is right at once.
            decision.assignments.retain(|one| one.cluster != *cluster);
            decision.assignments.push(Assignment {
                cluster: cluster.clone(),
                revision: revision.clone(),
                note: format!("gives Cluster {cluster} revision {revision}: wave {number}, stage {stage}"),
            });
        }
        let index = self.settings.stages.iter().position(|one| one.name == *stage);
        format!(
            "wave {number} begins: {} of {} Clusters of stage {stage} that do not have revision {revision}",
            clusters.len(),
            index.map_or(clusters.len(), |index| self.left(index)),
        )
    }
}
