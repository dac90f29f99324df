//! What the task has under way, and what it will try again. Each job is alone with its object; none waits for another, so that one
//! that a webhook holds up holds up nobody else.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{FuturesUnordered, StreamExt as _};
use tokio::time::Instant;

use crate::controllers::owner_graph::Action;
use crate::error::ApiError;

/// Jobs under way at once.
const CONCURRENT: usize = 128;
/// Of these, so many that have failed before.
const FAILED_BEFORE: usize = 32;
/// When something could not be done it is tried again after this time, and after twice as much when it fails again ...
const RETRY: Duration = Duration::from_millis(200);
/// ... but not after more.
const MAX_RETRY: Duration = Duration::from_secs(10);

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Job {
    /// To one object, because of its owners or dependents.
    Action(Action),
    /// Empty a namespace that is being deleted.
    Namespace(String),
    /// Remove the objects of a definition that is being deleted.
    Definition(String),
    /// Give the names of a definition that has gone to those of the group that wait for them.
    Names(String),
}

/// What a job is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Subject {
    Object(Arc<str>),
    Namespace(String),
    Definition(String),
    Names(String),
}

impl Job {
    fn subject(&self) -> Subject {
        match self {
            Self::Action(Action::Delete { uid, .. } | Action::Disown { uid, .. } | Action::Release { uid, .. }) => {
                Subject::Object(Arc::clone(uid))
            }
            Self::Namespace(name) => Subject::Namespace(name.clone()),
            Self::Definition(name) => Subject::Definition(name.clone()),
            Self::Names(group) => Subject::Names(group.clone()),
        }
    }
}

/// A job, and what came of it.
pub(super) type Done = (Job, Result<(), ApiError>);

/// The jobs.
#[derive(Default)]
pub(super) struct Jobs {
    running: FuturesUnordered<BoxFuture<'static, Done>>,
    /// What the running jobs are about, and whether it must be looked at again when they are done.
    subjects: HashMap<Subject, bool>,
    /// What is to be done about the rest, in order: first those that have not failed before.
    fresh: VecDeque<Subject>,
    failed: VecDeque<Subject>,
    waiting: HashMap<Subject, Job>,
    /// How many of the running have failed before.
    retrying: usize,
    /// How often something has failed.
    failures: HashMap<Subject, u32>,
    later: BTreeMap<Instant, Vec<Job>>,
    /// What was due lately: if nothing is to be done about it any more, its failures are history.
    looked_at: Vec<Subject>,
}

impl Jobs {
    /// Has something done, as soon as there is room.
    pub(super) fn push(&mut self, job: Job) {
        let subject = job.subject();
        if let Some(again) = self.subjects.get_mut(&subject) {
            *again = true;
            return;
        }
        // What was found last is what is to be done.
        if self.waiting.insert(subject.clone(), job).is_some() {
            return;
        }
        if self.failures.contains_key(&subject) {
            self.failed.push_back(subject);
        } else {
            self.fresh.push_back(subject);
        }
    }

    /// Starts what there is room for.
    pub(super) fn start(&mut self, run: impl Fn(Job) -> BoxFuture<'static, Done>) {
        for subject in std::mem::take(&mut self.looked_at) {
            if !self.waiting.contains_key(&subject) && !self.subjects.contains_key(&subject) {
                self.failures.remove(&subject);
            }
        }
        while self.running.len() < CONCURRENT {
            let next = match self.fresh.pop_front() {
                None if self.retrying < FAILED_BEFORE => self.failed.pop_front().inspect(|_| self.retrying += 1),
                other => other,
            };
            let Some(subject) = next else {
                return;
            };
            let Some(job) = self.waiting.remove(&subject) else {
                continue;
            };
            self.subjects.insert(subject, false);
            self.running.push(run(job));
        }
    }

    /// Waits for the next job to end; returns at once, with nothing, when none runs.
    pub(super) async fn next(&mut self) -> Option<Done> {
        self.running.next().await
    }

    /// The next job that has ended already.
    pub(super) fn ended(&mut self) -> Option<Done> {
        self.running.next().now_or_never().flatten()
    }

    /// Takes note of what came of a job; returns it when its subject must be looked at again at once.
    pub(super) fn finish(&mut self, (job, result): Done, now: Instant) -> Option<Job> {
        let subject = job.subject();
        let again = self.subjects.remove(&subject).unwrap_or(false);
        if self.failures.contains_key(&subject) {
            self.retrying = self.retrying.saturating_sub(1);
        }
        match result {
            Err(error) if error.code != 404 => {
                tracing::debug!(%error, ?job, "will be tried again");
                let times = self.failures.entry(subject).or_insert(0);
                let wait = RETRY.saturating_mul(1 << (*times).min(10)).min(MAX_RETRY);
                *times += 1;
                self.later.entry(now + wait).or_default().push(job);
                None
            }
            _ => {
                self.failures.remove(&subject);
                again.then_some(job)
            }
        }
    }

    /// When the next one that has failed is due.
    pub(super) fn due_at(&self) -> Option<Instant> {
        self.later.keys().next().copied()
    }

    /// Those that have failed and are due.
    pub(super) fn due(&mut self, now: Instant) -> Vec<Job> {
        let rest = self.later.split_off(&(now + Duration::from_nanos(1)));
        let due = std::mem::replace(&mut self.later, rest);
        let due: Vec<Job> = due.into_values().flatten().collect();
        self.looked_at.extend(due.iter().map(Job::subject));
        due
    }
}

#[cfg(test)]
mod tests;
