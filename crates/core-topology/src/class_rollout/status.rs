//! The status of a rollout.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;
use windlass_api::codec::Part as _;
use windlass_api::kind::{ApiKind as _, Conditioned as _};
use windlass_api_ext::rollouts::{ClusterClassRolloutStatus, RolloutFailure, RolloutWave};
use windlass_conditions::{Builder, Draft};
use windlass_controller_runtime::ObjectKey;
use windlass_topology::waves::{Failure, Has, State, Wave};

use super::apply::Done;
use super::observe::Observed;
use super::plan::{Action, Decided, NOT_READY, Plan};

/// Whether Clusters get the newest revision without a user.
pub(super) const PROGRESSING: &str = "Progressing";
/// Whether all Clusters have the newest revision.
const UP_TO_DATE: &str = "UpToDate";

/// How many Clusters of a failure are named.
const NAMED: usize = 100;

/// The reason when a write has failed.
const WRITE_FAILED: &str = "WriteFailed";

pub(super) fn status(seen: &Observed, plan: &Plan, done: &Done, now: Timestamp) -> Option<Value> {
    let rollout = &seen.rollout;
    let lets_go = plan.actions.contains(&Action::RemoveFinalizer);
    // Its class is about to be looked at, or it goes.
    if lets_go || (plan.decided.is_none() && plan.blocked.is_none()) {
        return None;
    }
    let before = rollout.status.clone().unwrap_or_default();
    let mut conditions = Builder::new(rollout.conditions(), rollout.metadata.generation, now);
    let going = match &plan.decided {
        Some(decided) if rollout.is_deleting() => {
            format!(
                "is being deleted, and waits until all Clusters have revision {}: ",
                decided.newest
            )
        }
        _ => String::new(),
    };
    let mut status = match (&plan.decided, &done.failed) {
        // What was not written did not happen: the wave stays, and the reconcile is repeated.
        (Some(_), Some(error)) => {
            let message = format!("{going}{error}");
            conditions
                .set(PROGRESSING, Draft::no(WRITE_FAILED, message.clone()))
                .set(UP_TO_DATE, Draft::no("NotAllUpdated", message));
            before
        }
        (Some(decided), None) => {
            let state = decided.decision.state;
            let message = match decided.decision.message.as_str() {
                "" => String::new(),
                said => format!("{going}{said}"),
            };
            let progressing = if state.goes_on() {
                Draft::yes(state.reason(), message.clone())
            } else {
                Draft::no(state.reason(), message.clone())
            };
            let up_to_date = if state == State::Complete && decided.decision.assignments.is_empty() {
                Draft::yes("AllUpdated", "")
            } else {
                Draft::no("NotAllUpdated", message)
            };
            conditions.set(PROGRESSING, progressing).set(UP_TO_DATE, up_to_date);
            of_clusters(&before, decided, now)
        }
        (None, _) => {
            let blocked = plan.blocked.as_ref();
            let reason = blocked.map_or(NOT_READY, |blocked| blocked.reason);
            let message = blocked.map_or_else(String::new, |blocked| blocked.message.clone());
            conditions
                .set(PROGRESSING, Draft::no(reason, message.clone()))
                .set(UP_TO_DATE, Draft::unknown(reason, message));
            before
        }
    };
    status.observed_generation = rollout.metadata.generation;
    status.conditions = conditions.done();
    Some(status.to_json())
}

fn of_clusters(before: &ClusterClassRolloutStatus, decided: &Decided, now: Timestamp) -> ClusterClassRolloutStatus {
    let (decision, newest) = (&decided.decision, &decided.newest);
    let given = |key: &ObjectKey| {
        let assigned = decision.assignments.iter().find(|one| one.cluster == *key);
        assigned.map(|one| one.revision.as_str())
    };
    let mut updated = 0;
    let mut healthy = 0;
    for member in &decided.members {
        let given = given(&member.key);
        let has = match &member.revision {
            Has::This(revision) => Some(revision.as_str()),
            Has::Lost | Has::None(_) => None,
        };
        if given.or(has) == Some(newest) {
            updated += 1;
            healthy += i32::from(given.is_none() && member.health.is_ok());
        }
    }
    let is_known = before.update_revision.as_ref() == Some(newest);
    let total = i32::try_from(decided.members.len()).unwrap_or(i32::MAX);
    ClusterClassRolloutStatus {
        clusters: Some(total),
        current_revision: Some(decision.current.clone()),
        failure: decision.failure.as_ref().map(failure),
        healthy_clusters: Some(healthy),
        progress: Some(format!("{updated}/{total}")),
        update_revision: Some(newest.clone()),
        update_time: before
            .update_time
            .clone()
            .filter(|_| is_known)
            .or_else(|| Some(time(now))),
        updated_clusters: Some(updated),
        wave: decision.wave.as_ref().map(wave),
        ..ClusterClassRolloutStatus::default()
    }
}

fn time(time: Timestamp) -> Time {
    Time(windlass_conditions::whole_seconds(time))
}

/// No list of a status is longer.
const LONGEST: usize = 1000;

fn names(keys: &BTreeSet<ObjectKey>) -> Vec<String> {
    keys.iter().take(LONGEST).map(ToString::to_string).collect()
}

fn failure(failure: &Failure) -> RolloutFailure {
    let mut clusters = names(&failure.clusters);
    clusters.truncate(NAMED);
    RolloutFailure {
        clusters,
        revision: failure.revision.clone(),
        time: Some(time(failure.time)),
    }
}

fn wave(wave: &Wave) -> RolloutWave {
    RolloutWave {
        clusters: names(&wave.clusters),
        healthy_time: wave.healthy_since.map(time),
        number: wave.number,
        revision: wave.revision.clone(),
        stage: wave.stage.clone(),
        tolerated_clusters: names(&wave.tolerated),
        waiting_clusters: names(&wave.waiting),
        waiting_time: wave.waiting_since.map(time),
    }
}
