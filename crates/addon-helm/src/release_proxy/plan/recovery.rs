//! Recovery of releases that are neither deployed nor gone, after a crash, a failure or a manual change.

use jiff::SignedDuration;
use windlass_api_ext::addons::reasons;
use windlass_controller_runtime::Moment;
use windlass_helm::Status;

use super::{About, Plan, start};
use crate::release_proxy::facts;
use crate::release_proxy::observed::{Failure, Observed, Operation, Release};

pub(super) fn plan(seen: &Observed, release: &Release, status: Status, now: &Moment) -> Plan {
    if is_in_flight(seen, release, now) {
        return in_flight(release);
    }
    let uninstall = Operation::Uninstall { keep_history: false };
    match status {
        Status::PendingUpgrade | Status::PendingRollback => {
            let operation = Operation::Rollback {
                to: rollback_target(release),
            };
            start(seen, now, operation, "an operation on it was broken off")
        }
        Status::PendingInstall => start(seen, now, uninstall, "its installation was broken off"),
        Status::Uninstalling => start(seen, now, uninstall, "its removal was broken off"),
        Status::Failed | Status::Superseded => {
            start(seen, now, Operation::Upgrade, "its newest revision is not deployed")
        }
        // Helm upgrades a release of unknown status only when one of its revisions is deployed.
        Status::Unknown if has_deployed(release) => start(
            seen,
            now,
            Operation::Upgrade,
            "the status of its newest revision is not known",
        ),
        Status::Unknown => start(
            seen,
            now,
            uninstall,
            "its status is not known, and nothing of it is deployed",
        ),
        Status::Deployed | Status::Uninstalled => Plan::rest(String::new()),
    }
}

/// The plan while another process may still be working on the release.
pub(super) fn in_flight(release: &Release) -> Plan {
    let description = match release.description.as_str() {
        "" => "no description",
        description => description,
    };
    let message = format!(
        "the release is {}, and the operation on it may still be going on: {description}",
        release.status
    );
    Plan::blocked(About::Release, facts::waiting(reasons::HELM_RELEASE_PENDING, message))
}

/// Whether another process may still be working on a release. An operation is not disturbed before its timeout has elapsed, unless it
/// was an operation of this process that has ended, or began before this process was elected: the leader before is gone, and its helm
/// with it.
pub(super) fn is_in_flight(seen: &Observed, release: &Release, now: &Moment) -> bool {
    if !release.status.is_pending() && release.status != Status::Uninstalling {
        return false;
    }
    let Some(since) = release.since else { return false };
    let was_ours = |failure: &Failure| (failure.began..=failure.ended).contains(&since);
    if seen.work.failure.as_ref().is_some_and(was_ours) || seen.alone_since.is_some_and(|alone| since < alone) {
        return false;
    }
    let timeout = SignedDuration::try_from(facts::timeout(&seen.proxy)).unwrap_or(SignedDuration::MAX);
    !now.elapsed(since, timeout)
}

fn has_deployed(release: &Release) -> bool {
    release.revisions.iter().any(|(_, status)| *status == Status::Deployed)
}

/// The revision to roll back to: the last deployed one, else the broken one itself, which is then installed completely.
fn rollback_target(release: &Release) -> u32 {
    let deployed = release
        .revisions
        .iter()
        .rev()
        .find(|(_, status)| *status == Status::Deployed);
    deployed.map_or(release.revision, |(revision, _)| *revision)
}
