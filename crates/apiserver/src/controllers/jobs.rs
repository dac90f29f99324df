//! The running jobs of the task, and those to retry. Each job concerns one object and waits for no other job, so that a webhook
//! that delays one job delays no other.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{FuturesUnordered, StreamExt as _};
use tokio::time::Instant;

use crate::controllers::owner_graph::Action;
use crate::error::ApiError;

/// The largest number of concurrent jobs.
const CONCURRENT: usize = 128;
/// The largest number of concurrent jobs that have failed before.
const FAILED_BEFORE: usize = 32;
/// Backoff of a failed job: this time, doubled with each failure ...
const RETRY: Duration = Duration::from_millis(200);
/// ... up to this time.
const MAX_RETRY: Duration = Duration::from_secs(10);

/// A job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Job {
    /// An action on one object, because of its owners or dependents.
    Action(Action),
    /// Empty a namespace that is being deleted.
    Namespace(String),
    /// Remove the objects of a definition that is being deleted.
    Definition(String),
    /// Assign the names of a deleted definition to those of the group that wait for them.
    Names(String),
}

/// The object of a job.
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

/// A job and its result.
pub(super) type Done = (Job, Result<(), ApiError>);

/// The jobs.
#[derive(Default)]
pub(super) struct Jobs {
    running: FuturesUnordered<BoxFuture<'static, Done>>,
    /// The subjects of running jobs, and whether to check them again afterwards.
    subjects: HashMap<Subject, bool>,
    /// The waiting jobs in order: first those that have not failed before.
    fresh: VecDeque<Subject>,
    failed: VecDeque<Subject>,
    waiting: HashMap<Subject, Job>,
    /// The number of running jobs that have failed before.
    retrying: usize,
    /// The number of failures by subject.
    failures: HashMap<Subject, u32>,
    later: BTreeMap<Instant, Vec<Job>>,
    /// The subjects that were recently due. If no job is needed any more, their failures are dropped.
    looked_at: Vec<Subject>,
}

impl Jobs {
    /// Adds a job. It runs as soon as there is room.
    pub(super) fn push(&mut self, job: Job) {
        let subject = job.subject();
        if let Some(again) = self.subjects.get_mut(&subject) {
            *again = true;
            return;
        }
        // The latest job for a subject replaces an earlier one.
        if self.waiting.insert(subject.clone(), job).is_some() {
            return;
        }
        if self.failures.contains_key(&subject) {
            self.failed.push_back(subject);
        } else {
            self.fresh.push_back(subject);
        }
    }

    /// Starts as many jobs as there is room for.
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

    /// Waits for the next job to end; returns `None` at once if none runs.
    pub(super) async fn next(&mut self) -> Option<Done> {
        self.running.next().await
    }

    /// The next job that has already ended.
    pub(super) fn ended(&mut self) -> Option<Done> {
        self.running.next().now_or_never().flatten()
    }

    /// Records the result of a job. Returns the job if its subject must be checked again at once.
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

    /// When the next failed job is due.
    pub(super) fn due_at(&self) -> Option<Instant> {
        self.later.keys().next().copied()
    }

    /// Subjects of failed jobs that are due.
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
