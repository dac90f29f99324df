//! The status of a HelmReleaseProxy. Pure: computed from the observation, the plan and the result of the plan.

use serde_json::Value;
use windlass_api_ext::addons::{HelmReleaseProxyStatus, conditions, reasons};
use windlass_conditions::{Condition, Owned, Status as Truth, Summary, carried, condition, sort, summary};
use windlass_controller_runtime::{Part as _, ReconcileError, Seen, Timestamp};
use windlass_helm::Status;

use super::facts;
use super::observed::{Observed, Release};
use super::plan::{About, Action, Plan};

impl windlass_controller_runtime::Done for Done {
    fn failed(&self) -> Option<&ReconcileError> {
        self.failed.as_ref()
    }
}

#[cfg(test)]
#[path = "status/tests.rs"]
mod tests;

/// The result of a plan.
#[derive(Debug, Default)]
pub(super) struct Done {
    /// The failure of an action.
    pub(super) failed: Option<ReconcileError>,
}

/// The maximum length of a message: the API allows 32768 bytes, and the summary repeats the messages of both conditions.
const LONGEST_MESSAGE: usize = 12_000;

/// Status, reason and message of a condition.
type Verdict = (Truth, &'static str, String);

/// The status. `None` for an object without finalizer, which is gone.
pub(super) fn status(seen: &Observed, plan: &Plan, done: &Done, now: Timestamp) -> Option<Value> {
    if plan.removes_finalizer() && done.failed.is_none() {
        return None;
    }
    let generation = seen.proxy.metadata.generation;
    let before = seen.proxy.status.clone().unwrap_or_default();
    let types = [conditions::CLUSTER_AVAILABLE, conditions::HELM_RELEASE_READY];
    let verdicts = [cluster(seen, plan), release(seen, plan)];
    let mut all: Vec<Condition> = Vec::new();
    for (type_, (truth, reason, message)) in types.into_iter().zip(verdicts) {
        let new = condition(type_, truth, reason, bounded(message), now, generation);
        all.push(carried(&before.conditions, new));
    }
    let how = Summary {
        compute_reason: Some(&worst),
        ..Summary::new(conditions::READY, &types)
    };
    let ready = summary(&all, &how, now, generation);
    all.push(carried(&before.conditions, ready));
    sort(&mut all);
    let (status, revision) = release_of(seen, &before);
    let status = HelmReleaseProxyStatus {
        conditions: all,
        status,
        revision,
        observed_generation: generation,
    };
    Some(status.to_json())
}

/// The reason of the first problem: a list of objects shows it.
fn worst(issues: &[Owned<'_>], unknown: &[Owned<'_>], _: &[Owned<'_>]) -> String {
    let first = issues.first().or(unknown.first());
    first.map_or_else(|| reasons::READY.to_owned(), |owned| owned.condition.reason.clone())
}

fn bounded(mut message: String) -> String {
    if message.len() > LONGEST_MESSAGE {
        let end = (0..=LONGEST_MESSAGE).rev().find(|end| message.is_char_boundary(*end));
        message.truncate(end.unwrap_or_default());
        message.push_str(" ...");
    }
    message
}

fn cluster(seen: &Observed, plan: &Plan) -> Verdict {
    let blocked = plan.blocked.clone().filter(|_| plan.about == About::Cluster);
    match blocked.or_else(|| facts::reachable(seen).err()) {
        Some(blocked) => (Truth::False, blocked.reason, blocked.message),
        None => (Truth::True, reasons::AVAILABLE, String::new()),
    }
}

fn release(seen: &Observed, plan: &Plan) -> Verdict {
    if let Some(blocked) = &plan.blocked {
        return match plan.about {
            About::Release => (Truth::False, blocked.reason, blocked.message.clone()),
            About::Cluster => without_cluster(seen),
        };
    }
    let action = plan.actions.iter().find_map(|action| during(seen, action));
    action.unwrap_or_else(|| at_rest(seen, &plan.remark))
}

/// The release while something about its cluster is missing.
fn without_cluster(seen: &Observed) -> Verdict {
    match seen.release() {
        Some(Seen::Found(release)) => unchanged(release, ""),
        _ if seen.proxy.was_installed() => {
            let message = "what became of the release cannot be told for now".to_owned();
            (Truth::Unknown, reasons::HELM_RELEASE_GET_FAILED, message)
        }
        _ => {
            let message = "the release is not installed yet".to_owned();
            (Truth::False, reasons::PREPARING_TO_HELM_INSTALL, message)
        }
    }
}

/// The release during an action that concerns it.
fn during(seen: &Observed, action: &Action) -> Option<Verdict> {
    let (reason, message) = match action {
        Action::Follow(_) | Action::Unfollow | Action::RecordCluster => return None,
        Action::StoreName(_) | Action::TakeName(_) => (
            reasons::PREPARING_TO_HELM_INSTALL,
            "a name for the release is stored first".to_owned(),
        ),
        Action::RecordInstallation => (
            reasons::HELM_RELEASE_PENDING,
            "the release is deployed, which is noted now".to_owned(),
        ),
        Action::Start(start) => {
            let progress = facts::progress(seen, start.operation);
            (progress.reason, progress.message)
        }
        Action::Stop => (
            reasons::HELM_RELEASE_PENDING,
            "what goes on is ended, as this HelmReleaseProxy is being deleted".to_owned(),
        ),
        Action::RemoveFinalizer(why) => (reasons::HELM_RELEASE_DELETED, why.clone()),
    };
    Some((Truth::False, reason, message))
}

/// The release when there is nothing to do.
fn at_rest(seen: &Observed, remark: &str) -> Verdict {
    match seen.release() {
        Some(Seen::Found(release)) => unchanged(release, remark),
        Some(Seen::NotFound) | None => {
            let message = "the release was removed since, and is not installed again".to_owned();
            (Truth::False, reasons::HELM_RELEASE_DELETED, message)
        }
        Some(Seen::Failed(why)) => (Truth::Unknown, reasons::HELM_RELEASE_GET_FAILED, why.clone()),
    }
}

fn unchanged(release: &Release, remark: &str) -> Verdict {
    if release.status == Status::Deployed {
        return (Truth::True, reasons::READY, remark.to_owned());
    }
    let message = format!("the release is {}: {}", release.status, release.description);
    (Truth::False, reasons::HELM_INSTALL_OR_UPGRADE_FAILED, message)
}

/// Status and revision of the release. The last known ones are kept while the release cannot be read.
fn release_of(seen: &Observed, before: &HelmReleaseProxyStatus) -> (Option<String>, Option<i64>) {
    match seen.release() {
        Some(Seen::Found(release)) => {
            let status = Some(release.status.as_str().to_owned());
            (status, Some(i64::from(release.revision)))
        }
        Some(Seen::NotFound) => {
            // An operation may fail before Helm has stored anything.
            let has_failed = seen.work.failure.is_some() && seen.work.running.is_none();
            (has_failed.then(|| Status::Failed.as_str().to_owned()), None)
        }
        Some(Seen::Failed(_)) | None => (before.status.clone(), before.revision),
    }
}
