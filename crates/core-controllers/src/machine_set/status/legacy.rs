//! The part of a MachineSet's status that only tools for the previous API generation read.

use std::cmp::Ordering;
use std::sync::Arc;

use jiff::Timestamp;
use windlass_api::core::{Machine, MachineSetV1Beta1DeprecatedStatus, V1Beta1Condition};
use windlass_api::meta::MetaExt as _;

use crate::machine_set::observed::Observed;
use crate::machine_set::plan::{Action, Obstacle, Plan};
use crate::machine_set::status::{Done, desired, is_fully_labelled};
use crate::shared::legacy::{Legacy, LegacyConditions, aggregate, summary};
use crate::shared::machines::{Counts, legacy_conditions};
use crate::shared::numbers::len_i32;

const READY: &str = "Ready";
const MACHINES_CREATED: &str = "MachinesCreated";
const MACHINES_READY: &str = "MachinesReady";
const RESIZED: &str = "Resized";

pub(super) fn status(
    seen: &Observed,
    plan: &Plan,
    done: &Done,
    machines: &[Arc<Machine>],
    counts: &Counts,
    now: Timestamp,
) -> MachineSetV1Beta1DeprecatedStatus {
    let previous = previous(seen);
    let created = machines_created(seen, plan, done).or_else(|| before(previous, MACHINES_CREATED));
    let ready = machines_ready(machines);
    let resized = resized(seen, counts).or_else(|| before(previous, RESIZED));
    let mut all = LegacyConditions::new(previous, now);
    let known = [created.as_ref(), Some(&ready), resized.as_ref()];
    all.set(READY, &summary(known.into_iter().flatten()));
    all.set(MACHINES_READY, &ready);
    if let Some(created) = &created {
        all.set(MACHINES_CREATED, created);
    }
    if let Some(resized) = &resized {
        all.set(RESIZED, resized);
    }
    let labelled = machines.iter().filter(|machine| is_fully_labelled(&seen.set, machine));
    MachineSetV1Beta1DeprecatedStatus {
        fully_labeled_replicas: Some(len_i32(labelled.count())),
        ready_replicas: Some(counts.legacy_ready),
        available_replicas: Some(counts.legacy_available),
        conditions: all.done(),
        ..MachineSetV1Beta1DeprecatedStatus::default()
    }
}

fn previous(seen: &Observed) -> &[V1Beta1Condition] {
    let status = seen.set.status.as_ref().and_then(|status| status.deprecated.as_ref());
    status
        .and_then(|deprecated| deprecated.v1beta1.as_ref())
        .map_or(&[], |old| &old.conditions)
}

fn before(previous: &[V1Beta1Condition], type_: &str) -> Option<Legacy> {
    previous
        .iter()
        .find(|condition| condition.type_ == type_)
        .and_then(Legacy::read)
}

/// Whether Machines could be made; `None` when that has not been tried. Not every status is written, so that an attempt may
/// only show by the Machines that are there.
fn machines_created(seen: &Observed, plan: &Plan, done: &Done) -> Option<Legacy> {
    match &plan.obstacle {
        Some(Obstacle::Preflight(found)) => {
            return Some(Legacy::error("PreflightCheckFailed", found.join("; ")));
        }
        Some(Obstacle::Bootstrap(why)) => return Some(Legacy::error("BootstrapTemplateCloningFailed", why)),
        Some(Obstacle::Infrastructure(why)) => {
            return Some(Legacy::error("InfrastructureTemplateCloningFailed", why));
        }
        Some(Obstacle::Other(why) | Obstacle::Refused(why)) => {
            return Some(Legacy::error("MachineCreationFailed", why));
        }
        None => {}
    }
    let tried = plan
        .actions
        .iter()
        .any(|action| matches!(action, Action::CreateMachine(_)));
    match &done.failed {
        Some(error) if tried => Some(Legacy::error("MachineCreationFailed", error.to_string())),
        _ => {
            let enough = !seen.machines.is_empty() && len_i32(seen.machines.len()) >= desired(&seen.set);
            (tried || enough).then_some(Legacy::Good)
        }
    }
}

fn machines_ready(machines: &[Arc<Machine>]) -> Legacy {
    let states = machines.iter().filter_map(|machine| {
        let ready = legacy_conditions(machine)
            .iter()
            .find(|condition| condition.type_ == READY)?;
        Some((machine.metadata.name(), Legacy::read(ready)?))
    });
    aggregate("Machine", states)
}

/// A change of size is over when all Machines are ready, not when they were made. `None` leaves it as it was: nothing has
/// changed since the status was written.
fn resized(seen: &Observed, counts: &Counts) -> Option<Legacy> {
    let (have, want) = (len_i32(seen.machines.len()), desired(&seen.set));
    let written = seen
        .set
        .status
        .as_ref()
        .and_then(|status| status.replicas)
        .unwrap_or_default();
    let changing = |way: &str, doing: &str, have: i32| {
        let message = format!("Scaling {way} MachineSet to {want} replicas (actual {have})");
        Some(Legacy::warning(doing, message))
    };
    match have.cmp(&want) {
        Ordering::Less => changing("up", "ScalingUp", have),
        Ordering::Greater => changing("down", "ScalingDown", have),
        Ordering::Equal if counts.legacy_ready == counts.replicas => Some(Legacy::Good),
        Ordering::Equal => match written.cmp(&want) {
            Ordering::Less => changing("up", "ScalingUp", written),
            Ordering::Greater => changing("down", "ScalingDown", written),
            Ordering::Equal => None,
        },
    }
}
