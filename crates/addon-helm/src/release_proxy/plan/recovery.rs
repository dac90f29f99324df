//! What becomes of releases that are neither deployed nor gone: whatever a crash, a failure or a person left.

use std::time::Duration;

use windlass_api_ext::addons::{reasons, values};
use windlass_helm::Status;
use windlass_kit::Timestamp;
use windlass_meta::GoDuration;

use super::{About, Again, Plan, Step, start};
use crate::release_proxy::observed::{Failure, Observed, Operation, Release};

/// How long an operation may take where the text of its timeout cannot be read.
const TIMEOUT: Duration = Duration::from_mins(10);

pub(super) fn plan(seen: &Observed, release: &Release, status: Status, now: Timestamp) -> Plan {
    if let Some(left) = in_flight(seen, release, now) {
        let plan = Plan::wait(About::Release, reasons::HELM_RELEASE_PENDING, told(release));
        return plan.again(Again::After(left));
    }
    let again = Operation::Uninstall { keep_history: false };
    match status {
        Status::PendingUpgrade | Status::PendingRollback => {
            let operation = Operation::Rollback { to: way_back(release) };
            start(seen, now, operation, "an operation on it was broken off")
        }
        Status::PendingInstall => start(seen, now, again, "its installation was broken off"),
        Status::Uninstalling => start(seen, now, again, "its removal was broken off"),
        Status::Failed | Status::Superseded => {
            start(seen, now, Operation::Upgrade, "its newest revision is not deployed")
        }
        // Helm upgrades what it does not know only where something is deployed.
        Status::Unknown if has_deployed(release) => start(
            seen,
            now,
            Operation::Upgrade,
            "the status of its newest revision is not known",
        ),
        Status::Unknown => start(
            seen,
            now,
            again,
            "its status is not known, and nothing of it is deployed",
        ),
        Status::Deployed | Status::Uninstalled => Plan::of(Step::Rest(String::new())),
    }
}

/// What is said of an operation that somebody else has going on.
pub(super) fn told(release: &Release) -> String {
    format!(
        "the release is {}, and whoever works on it may still be at it: {}",
        release.status,
        if release.description.is_empty() {
            "no description"
        } else {
            &release.description
        }
    )
}

/// How long somebody may still be working on a release: an operation that is younger than its timeout is not disturbed, unless it was
/// one of this process that has ended.
pub(super) fn in_flight(seen: &Observed, release: &Release, now: Timestamp) -> Option<Duration> {
    if !release.status.is_pending() && release.status != Status::Uninstalling {
        return None;
    }
    let since = release.since?;
    let was_ours = |failure: &Failure| (failure.began..=failure.ended).contains(&since);
    if seen.work.failure.as_ref().is_some_and(was_ours) {
        return None;
    }
    // A clock that is ahead of ours holds nothing up for longer than the timeout.
    let elapsed = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    timeout(seen).checked_sub(elapsed).filter(|left| !left.is_zero())
}

/// How long an operation may take.
pub(in crate::release_proxy) fn timeout(seen: &Observed) -> Duration {
    let said = seen
        .proxy
        .spec
        .options
        .as_ref()
        .and_then(|options| options.timeout.as_deref());
    let said = said.filter(|text| !text.is_empty()).unwrap_or(values::DEFAULT_TIMEOUT);
    said.parse::<GoDuration>().map_or(TIMEOUT, GoDuration::to_std)
}

fn has_deployed(release: &Release) -> bool {
    release.revisions.iter().any(|(_, status)| *status == Status::Deployed)
}

/// The revision to go back to: the last that was deployed, else the broken one itself, which then gets what it wanted.
fn way_back(release: &Release) -> u32 {
    let deployed = release
        .revisions
        .iter()
        .rev()
        .find(|(_, status)| *status == Status::Deployed);
    deployed.map_or(release.revision, |(revision, _)| *revision)
}
