//! Deletes the control plane: last of all, and then at once.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::{Action, Plan, Stage};
use crate::facts::{CpMachine, Facts};
use crate::finding::listed;
use crate::health;
use crate::names::{PRE_TERMINATE_HOOK, machine};

/// A deletion that takes longer than this is told as slow.
const SLOW: SignedDuration = SignedDuration::from_mins(15);

pub(super) fn plan(facts: &Facts, now: Timestamp, plan: &mut Plan) {
    if facts.machines.is_empty() {
        plan.stage = Stage::Deleting("DeletionCompleted", "Deletion completed".to_owned());
        plan.push(Action::RemoveFinalizer);
        return;
    }
    plan.health = Some(health::assess(facts, now));
    if !facts.workers.is_empty() {
        let workers: Vec<&str> = facts.workers.iter().map(String::as_str).collect();
        plan.stage = Stage::Deleting(
            "WaitingForWorkersDeletion",
            format!(
                "KubeadmControlPlane deletion blocked because following objects still exist:\n* Machines: {}",
                shown(&workers)
            ),
        );
        return;
    }
    for machine in &facts.machines {
        let hooked = machine.annotations.contains_key(PRE_TERMINATE_HOOK);
        if hooked || !machine.deleting() {
            plan.push(Action::TearDownMachine {
                name: machine.name.clone(),
                uid: machine.uid.clone(),
                hooked,
                deleting: machine.deleting(),
            });
        }
    }
    let count = facts.machines.len();
    let plural = if count == 1 { "" } else { "s" };
    let mut message = format!("Deleting {count} Machine{plural}");
    if let Some(slow) = slow(&facts.machines, now) {
        message.push_str(" and ");
        message.push_str(&slow);
    }
    plan.stage = Stage::Deleting("WaitingForMachineDeletion", message);
}

fn shown(names: &[&str]) -> String {
    const SHOWN: usize = 5;
    if names.len() <= SHOWN {
        return names.join(", ");
    }
    format!("{}, ... ({} more)", names[..SHOWN].join(", "), names.len() - SHOWN)
}

/// Machines whose deletion takes long, and what holds them up.
pub fn slow(machines: &[Arc<CpMachine>], now: Timestamp) -> Option<String> {
    let slow: Vec<&Arc<CpMachine>> = machines
        .iter()
        .filter(|m| m.deleted.is_some_and(|at| now.duration_since(at) > SLOW))
        .collect();
    if slow.is_empty() {
        return None;
    }
    let names: Vec<&str> = slow.iter().map(|m| m.name.as_str()).collect();
    let (plural, are) = if names.len() == 1 { ("", "is") } else { ("s", "are") };
    let mut text = format!(
        "Machine{plural} {} {are} in deletion since more than 15m",
        listed(&names)
    );
    let causes = [
        (
            "cannot evict pod as it would violate the pod's disruption budget.",
            "PodDisruptionBudgets",
        ),
        (
            "deletionTimestamp set, but still not removed from the Node",
            "Pods not terminating",
        ),
        ("failed to evict Pod", "Pod eviction errors"),
        ("waiting for completion", "Pods not completed yet"),
    ];
    let said = |sign: &str| {
        slow.iter().any(|m| {
            m.condition(machine::DELETING)
                .is_some_and(|c| c.reason == "DrainingNode" && c.message.contains(sign))
        })
    };
    let causes: Vec<&str> = causes
        .iter()
        .filter(|(sign, _)| said(sign))
        .map(|(_, name)| *name)
        .collect();
    if !causes.is_empty() {
        text.push_str(", delay likely due to ");
        text.push_str(&causes.join(", "));
    }
    Some(text)
}
