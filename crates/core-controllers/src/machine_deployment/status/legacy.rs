//! The part of a MachineDeployment's status that only tools for the previous API generation read.

use jiff::Timestamp;
use windlass_api::core::{MachineDeploymentV1Beta1DeprecatedStatus, MachineSet, V1Beta1Condition};

use crate::machine_deployment::observed::Observed;
use crate::machine_deployment::plan::Plan;
use crate::machine_deployment::settings;
use crate::machine_deployment::status::new_set;
use crate::shared::legacy::{Legacy, LegacyConditions};
use crate::shared::machines::Counts;
use crate::shared::numbers::len_i32;

pub(super) fn status(
    seen: &Observed,
    plan: &Plan,
    counts: &Counts,
    total: i32,
    now: Timestamp,
) -> MachineDeploymentV1Beta1DeprecatedStatus {
    let new = new_set(seen, plan);
    let available = available(seen, counts);
    let mut all = LegacyConditions::new(previous(seen), now);
    all.set("Ready", &available);
    all.set("Available", &available);
    all.set("MachineSetReady", &set_ready(new.map(|set| &**set)));
    MachineDeploymentV1Beta1DeprecatedStatus {
        updated_replicas: Some(new.map_or(0, |set| len_i32(seen.machines_of(set).len()))),
        ready_replicas: Some(counts.legacy_ready),
        available_replicas: Some(counts.legacy_available),
        unavailable_replicas: Some((total - counts.legacy_available).max(0)),
        conditions: all.done(),
    }
}

fn previous(seen: &Observed) -> &[V1Beta1Condition] {
    let status = seen
        .deployment
        .status
        .as_ref()
        .and_then(|status| status.deprecated.as_ref());
    status
        .and_then(|deprecated| deprecated.v1beta1.as_ref())
        .map_or(&[], |old| &old.conditions)
}

fn available(seen: &Observed, counts: &Counts) -> Legacy {
    let needed = settings::replicas(&seen.deployment) - settings::limits(&seen.deployment).1;
    if counts.legacy_available >= needed {
        return Legacy::Good;
    }
    let have = counts.legacy_available;
    let message = format!("Minimum availability requires {needed} replicas, current {have} available");
    Legacy::warning("WaitingForAvailableMachines", message)
}

/// The set's own Ready of the same generation.
fn set_ready(new: Option<&MachineSet>) -> Legacy {
    let deprecated = new.and_then(|set| set.status.as_ref()?.deprecated.as_ref()?.v1beta1.as_ref());
    let ready = deprecated.and_then(|old| old.conditions.iter().find(|condition| condition.type_ == "Ready"));
    ready
        .and_then(Legacy::read)
        .unwrap_or_else(|| Legacy::info("WaitingForMachineSet", ""))
}
