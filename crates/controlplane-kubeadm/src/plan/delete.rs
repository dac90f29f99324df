//! Deletes the control plane: last of all, and then at once.

use std::sync::Arc;

use windlass_conditions::Going;
use windlass_controller_runtime::Moment;

use super::{Action, Plan, Stage};
use crate::facts::{CpMachine, Facts};
use crate::health;
use crate::names::{PRE_TERMINATE_HOOK, machine};

/// The workers that are still there, a line for each kind.
fn workers(facts: &Facts) -> Option<String> {
    let line = |(kind, names): (&str, &Vec<String>)| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        (!names.is_empty()).then(|| format!("\n* {kind}: {}", windlass_conditions::listed(&names, 5)))
    };
    let kinds = [("MachinePools", &facts.pools), ("Machines", &facts.workers)];
    let lines: String = kinds.into_iter().filter_map(line).collect();
    (!lines.is_empty()).then_some(lines)
}

pub(super) fn plan(facts: &Facts, now: &Moment, plan: &mut Plan) {
    // A Machine that a user made, and that was not taken over, is no part of the control plane.
    let is_own = |machine: &&Arc<CpMachine>| machine.is_named_after(&facts.control_plane);
    let machines: Vec<Arc<CpMachine>> = facts.machines.iter().filter(is_own).cloned().collect();
    if machines.is_empty() {
        plan.stage = Stage::Deleting("DeletionCompleted", "Deletion completed".to_owned());
        plan.push(Action::RemoveFinalizer);
        return;
    }
    plan.health = Some(health::assess(facts, now));
    if let Some(workers) = workers(facts) {
        plan.note("Machines are kept until all worker Machines and MachinePools are gone");
        plan.stage = Stage::Deleting(
            "WaitingForWorkersDeletion",
            format!("KubeadmControlPlane deletion blocked because following objects still exist:{workers}"),
        );
        return;
    }
    for machine in &machines {
        let hooked = machine.annotations.contains_key(PRE_TERMINATE_HOOK);
        if hooked || !machine.deleting() {
            plan.push(Action::TearDownMachine {
                name: machine.name.clone(),
                hooked,
                deleting: machine.deleting(),
            });
        }
    }
    let count = machines.len();
    let plural = if count == 1 { "" } else { "s" };
    let mut message = format!("Deleting {count} Machine{plural}");
    if let Some(slow) = slow(&machines, now) {
        message.push_str(" and ");
        message.push_str(&slow);
    }
    plan.stage = Stage::Deleting("WaitingForMachineDeletion", message);
}

/// Machines whose deletion takes long, and what holds them up.
pub fn slow(machines: &[Arc<CpMachine>], now: &Moment) -> Option<String> {
    let going = machines.iter().map(|m| Going {
        name: &m.name,
        since: m.deleted,
        deleting: m.condition(machine::DELETING),
    });
    windlass_conditions::slow_deletions(going, now)
}
