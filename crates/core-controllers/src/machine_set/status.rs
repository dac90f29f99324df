//! The status of a MachineSet: pure, computed after every attempt from what was seen and done.

mod legacy;

use std::collections::BTreeSet;
use std::sync::Arc;

use windlass_api::core::{Machine, MachineSet, MachineSetDeprecatedStatus, MachineSetStatus};
use windlass_api::kind::Conditioned;
use windlass_api::meta::MetaExt as _;
use windlass_conditions::{Builder, Draft};
use windlass_contract::selector;
use windlass_controller_runtime::{Moment, Seen};

use crate::machine_set::observed::Observed;
use crate::machine_set::plan::{Obstacle, Plan, desired_replicas};
use crate::shared::keys::{conditions, labels};
use crate::shared::machine_conditions::{machines_ready, machines_up_to_date, no_cluster, remediating};
use crate::shared::machines::{counts, slow_deletions, versions};
use crate::shared::numbers::len_i32;
use crate::shared::status::and;

/// What became of a plan.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// Machines that were made.
    pub created: Vec<Arc<Machine>>,
    /// Machines that were taken over.
    pub adopted: Vec<Arc<Machine>>,
    /// The first action that failed.
    pub failed: Option<windlass_controller_runtime::ReconcileError>,
}

/// The Machines as they are after the plan.
fn machines_after(seen: &Observed, done: &Done) -> Vec<Arc<Machine>> {
    let mut known: BTreeSet<&str> = BTreeSet::new();
    let all = seen.machines.iter().chain(&done.adopted).chain(&done.created);
    all.filter(|machine| known.insert(machine.metadata.name()))
        .cloned()
        .collect()
}

/// The status to be applied.
pub(crate) fn status(seen: &Observed, plan: &Plan, done: &Done, now: &Moment) -> MachineSetStatus {
    let set = &seen.set;
    let machines = machines_after(seen, done);
    let counts = counts(&machines);
    let mut all = Builder::new(set.conditions(), set.metadata.generation, now.now());
    all.set(conditions::REMEDIATING, remediating(&machines, "MachineSet"));
    all.set(conditions::SCALING_DOWN, scaling_down(set, plan, &machines, now));
    all.set(conditions::SCALING_UP, scaling_up(seen, plan, &machines));
    all.set(conditions::MACHINES_READY, machines_ready(&machines));
    all.set(conditions::MACHINES_UP_TO_DATE, machines_up_to_date(&machines, now));
    all.set(conditions::DELETING, deleting_condition(set, &machines, now));
    let old = legacy::status(seen, plan, done, &machines, &counts, now.now());
    MachineSetStatus {
        replicas: Some(counts.replicas),
        ready_replicas: Some(counts.ready),
        available_replicas: Some(counts.available),
        up_to_date_replicas: Some(counts.up_to_date),
        selector: Some(selector::to_text(&set.spec.selector)).filter(|text| !text.is_empty()),
        versions: versions(machines.iter().map(|machine| &**machine)),
        observed_generation: set.metadata.generation,
        conditions: all.done(),
        deprecated: Some(MachineSetDeprecatedStatus { v1beta1: Some(old) }),
    }
}

fn desired(set: &MachineSet) -> i32 {
    if set.metadata.is_deleting() {
        0
    } else {
        desired_replicas(set)
    }
}

/// The templates that are missing, in words; `None` when all are there.
fn missing_templates(seen: &Observed) -> Option<String> {
    let spec = &seen.set.spec.template.spec;
    let mut missing = Vec::new();
    if let (Some(reference), Some(Seen::NotFound)) = (&spec.bootstrap.config_ref, &seen.bootstrap_template) {
        missing.push(reference.kind.clone());
    }
    if seen.infrastructure_template.is_not_found() {
        missing.push(spec.infrastructure_ref.kind.clone());
    }
    match missing.len() {
        0 => None,
        1 => Some(format!("{} does not exist", missing[0])),
        _ => Some(format!("{} do not exist", and(&missing))),
    }
}

/// Why the spec is not acted on.
fn refused(plan: &Plan) -> Option<&str> {
    match &plan.obstacle {
        Some(Obstacle::Refused(why)) => Some(why),
        _ => None,
    }
}

fn scaling_up(seen: &Observed, plan: &Plan, machines: &[Arc<Machine>]) -> Draft {
    let (have, want) = (len_i32(machines.len()), desired(&seen.set));
    let missing = missing_templates(seen);
    if have >= want
        && let Some(why) = refused(plan)
    {
        return Draft::no("NotScalingUp", format!("Nothing is changed because {why}"));
    }
    if have >= want {
        let message = match missing {
            Some(missing) if !seen.set.metadata.is_deleting() => {
                format!("Scaling up would be blocked because {missing}")
            }
            _ => String::new(),
        };
        return Draft::no("NotScalingUp", message);
    }
    let mut message = format!("Scaling up from {have} to {want} replicas");
    let mut reasons: Vec<String> = missing.into_iter().collect();
    if seen.cluster.is_not_found() {
        reasons.push(no_cluster(&seen.set.spec.cluster_name));
    }
    match &plan.obstacle {
        Some(Obstacle::Preflight(found)) => reasons.extend(found.iter().cloned()),
        Some(Obstacle::Other(why) | Obstacle::Refused(why)) => reasons.push(why.clone()),
        Some(Obstacle::Bootstrap(why) | Obstacle::Infrastructure(why)) if reasons.is_empty() => {
            reasons.push(why.clone());
        }
        _ => {}
    }
    if !reasons.is_empty() {
        message.push_str(" is blocked because:");
        for reason in &reasons {
            message.push_str("\n* ");
            message.push_str(reason);
        }
    }
    Draft::yes("ScalingUp", message)
}

fn scaling_down(set: &MachineSet, plan: &Plan, machines: &[Arc<Machine>], now: &Moment) -> Draft {
    let (have, want) = (len_i32(machines.len()), desired(set));
    if have <= want || refused(plan).is_some() {
        return Draft::no("NotScalingDown", "");
    }
    let mut message = format!("Scaling down from {have} to {want} replicas");
    if let Some(slow) = slow_deletions(machines, now) {
        message.push('\n');
        message.push_str(&slow);
    }
    Draft::yes("ScalingDown", message)
}

fn deleting_condition(set: &MachineSet, machines: &[Arc<Machine>], now: &Moment) -> Draft {
    if !set.metadata.is_deleting() {
        return Draft::no("NotDeleting", "");
    }
    let mut message = match machines.len() {
        0 => "Deletion completed".to_owned(),
        1 => "Deleting 1 Machine".to_owned(),
        many => format!("Deleting {many} Machines"),
    };
    if let Some(slow) = slow_deletions(machines, now) {
        message.push('\n');
        message.push_str(&slow);
    }
    Draft::yes("Deleting", message)
}

/// Whether a Machine carries all labels of the set's template.
fn is_fully_labelled(set: &MachineSet, machine: &Machine) -> bool {
    let template = set.spec.template.metadata.iter().flat_map(|meta| &meta.labels);
    let mut wanted = template.filter(|(key, _)| key.as_str() != labels::CLUSTER_NAME);
    wanted.all(|(key, value)| machine.metadata.label(key) == Some(value))
}

impl windlass_controller_runtime::Done for Done {
    fn failed(&self) -> Option<&windlass_controller_runtime::ReconcileError> {
        self.failed.as_ref()
    }
}

#[cfg(test)]
mod tests;
