//! What a HelmReleaseProxy says about itself, from what was seen, decided and done.

use serde_json::Value;
use windlass_api_ext::addons::{HelmReleaseProxyStatus, conditions, reasons};
use windlass_conditions::{Condition, Owned, Status as Truth, Summary, carried, condition, sort, summary};
use windlass_helm::Status;
use windlass_kit::{Part as _, ReconcileError, Seen, Timestamp};

use super::observed::{Observed, Release, Way};
use super::plan::{self, About, Plan, Step};

impl windlass_kit::Done for Done {
    fn failed(&self) -> Option<&windlass_kit::ReconcileError> {
        self.failed.as_ref()
    }
}

#[cfg(test)]
#[path = "status/tests.rs"]
mod tests;

/// What became of a plan.
#[derive(Debug, Default)]
pub(super) struct Done {
    /// What failed.
    pub(super) failed: Option<ReconcileError>,
    /// Whether the object was let go, so that nothing is left to report on.
    pub(super) gone: bool,
}

/// How long a message may be: the API allows 32768 bytes, and the summary repeats what both conditions say.
const MOST_WORDS: usize = 12_000;

/// Status, reason and message of a condition.
type Verdict = (Truth, &'static str, String);

/// What is reported; nothing of an object that was let go.
pub(super) fn status(seen: &Observed, plan: &Plan, done: &Done, now: Timestamp) -> Option<Value> {
    if done.gone {
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

/// The reason of the first thing that is wrong, so that a list of objects tells what it is.
fn worst(issues: &[Owned<'_>], unknown: &[Owned<'_>], _: &[Owned<'_>]) -> String {
    let first = issues.first().or(unknown.first());
    first.map_or_else(|| reasons::READY.to_owned(), |owned| owned.condition.reason.clone())
}

fn bounded(mut message: String) -> String {
    if message.len() > MOST_WORDS {
        let end = (0..=MOST_WORDS).rev().find(|end| message.is_char_boundary(*end));
        message.truncate(end.unwrap_or_default());
        message.push_str(" ...");
    }
    message
}

fn cluster(seen: &Observed, plan: &Plan) -> Verdict {
    let said = match &plan.step {
        Step::Wait(blocked) if blocked.about == About::Cluster => Some(blocked.clone()),
        _ => plan::closed(seen),
    };
    match said {
        Some(blocked) => (Truth::False, blocked.reason, blocked.message),
        None => (Truth::True, reasons::AVAILABLE, String::new()),
    }
}

fn release(seen: &Observed, plan: &Plan) -> Verdict {
    let no = |reason, message: &str| (Truth::False, reason, message.to_owned());
    match &plan.step {
        Step::Rest(note) => rests(seen, note),
        Step::Wait(blocked) if blocked.about == About::Release => no(blocked.reason, &blocked.message),
        Step::Wait(_) => match (&seen.way, &seen.release) {
            (Way::Open, Seen::Found(release)) => as_it_is(release, ""),
            _ if seen.proxy.was_installed() => {
                let message = "what became of the release cannot be told for now".to_owned();
                (Truth::Unknown, reasons::HELM_RELEASE_GET_FAILED, message)
            }
            _ => no(reasons::PREPARING_TO_HELM_INSTALL, "the release is not installed yet"),
        },
        Step::Name(_) => no(
            reasons::PREPARING_TO_HELM_INSTALL,
            "a name for the release is stored first",
        ),
        Step::Remember => no(
            reasons::HELM_RELEASE_PENDING,
            "the release is deployed, which is noted now",
        ),
        Step::Start(operation, _) => {
            let blocked = plan::started(seen, *operation);
            no(blocked.reason, &blocked.message)
        }
        Step::Stop => no(
            reasons::HELM_RELEASE_PENDING,
            "what goes on is ended, as this HelmReleaseProxy is being deleted",
        ),
        Step::LetGo(why) => no(reasons::HELM_RELEASE_DELETED, why),
    }
}

/// What is said where nothing is to be done.
fn rests(seen: &Observed, note: &str) -> Verdict {
    match &seen.release {
        Seen::Found(release) => as_it_is(release, note),
        Seen::NotFound => {
            let message = "the release was removed since, and is not installed again".to_owned();
            (Truth::False, reasons::HELM_RELEASE_DELETED, message)
        }
        Seen::Failed(why) => (Truth::Unknown, reasons::HELM_RELEASE_GET_FAILED, why.clone()),
    }
}

fn as_it_is(release: &Release, note: &str) -> Verdict {
    if release.status == Status::Deployed {
        return (Truth::True, reasons::READY, note.to_owned());
    }
    let message = format!("the release is {}: {}", release.status, release.description);
    (Truth::False, reasons::HELM_INSTALL_OR_UPGRADE_FAILED, message)
}

/// Status and revision of the release; what was known before where it cannot be told now.
fn release_of(seen: &Observed, before: &HelmReleaseProxyStatus) -> (Option<String>, Option<i64>) {
    let is_looked_for = seen.way == Way::Open && seen.proxy.spec.release_name().is_some();
    match &seen.release {
        Seen::Found(release) => {
            let said = Some(release.status.as_str().to_owned());
            (said, Some(i64::from(release.revision)))
        }
        Seen::NotFound if is_looked_for => {
            // What failed before Helm stored anything has failed, too.
            let has_failed = seen.work.failure.is_some() && seen.work.running.is_none();
            (has_failed.then(|| Status::Failed.as_str().to_owned()), None)
        }
        Seen::NotFound | Seen::Failed(_) => (before.status.clone(), before.revision),
    }
}
