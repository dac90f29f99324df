//! The status of a MachineDeployment: pure, computed after every attempt from what was seen and done.

mod legacy;

use std::sync::Arc;

use windlass_api::core::{
    Machine, MachineDeployment, MachineDeploymentDeprecatedStatus, MachineDeploymentStatus, MachineSet,
};
use windlass_api::kind::Conditioned;
use windlass_api::meta::MetaExt as _;
use windlass_conditions::{Builder, Draft};
use windlass_contract::selector;
use windlass_controller_runtime::Moment;

use crate::machine_deployment::observed::Observed;
use crate::machine_deployment::plan::{Action, Plan, missing_templates};
use crate::machine_deployment::settings::{self, limits};
use crate::shared::keys::conditions;
use crate::shared::machine_conditions::{
    machines_ready, machines_up_to_date, no_cluster as no_cluster_of, obstacles, remediating,
};
use crate::shared::machines::{condition, counts, is, slow_deletions, versions};

/// What became of a plan.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// MachineSets that were made.
    pub created: Vec<Arc<MachineSet>>,
    /// The first action that failed; those after it were not tried.
    pub failed: Option<windlass_controller_runtime::ReconcileError>,
}

/// The status to be applied.
pub(crate) fn status(seen: &Observed, plan: &Plan, now: &Moment) -> MachineDeploymentStatus {
    let deployment = &seen.deployment;
    let machines = seen.all_machines();
    let counts = counts(&machines);
    // Nothing is known of the replicas until there is a set.
    let known = !seen.sets.is_empty();
    let mut all = Builder::new(deployment.conditions(), deployment.metadata.generation, now.now());
    all.set(
        conditions::AVAILABLE,
        available(seen, known.then_some(counts.available)),
    );
    all.set(conditions::ROLLING_OUT, rolling_out(seen, plan, &machines));
    all.set(
        conditions::REMEDIATING,
        remediating(&machines, "MachineDeployment/MachineSet"),
    );
    all.set(
        conditions::SCALING_DOWN,
        scaling_down(seen, plan, counts.replicas, &machines, now),
    );
    all.set(conditions::SCALING_UP, scaling_up(seen, plan, counts.replicas));
    all.set(conditions::MACHINES_READY, machines_ready(&machines));
    all.set(conditions::MACHINES_UP_TO_DATE, machines_up_to_date(&machines, now));
    all.set(conditions::DELETING, deleting_condition(seen, &machines, now));
    let total = seen.sets.iter().map(|set| occupied(seen, plan, set)).sum::<i32>() + planned(plan);
    let old = legacy::status(seen, plan, &counts, total, now.now());
    let count = |number: i32| known.then_some(number);
    let labels = selector::to_text(&settings::selector(deployment));
    MachineDeploymentStatus {
        replicas: count(counts.replicas),
        ready_replicas: count(counts.ready),
        available_replicas: count(counts.available),
        up_to_date_replicas: count(counts.up_to_date),
        selector: Some(labels),
        versions: versions(machines.iter().map(|machine| &**machine)),
        observed_generation: deployment.metadata.generation,
        phase: Some(phase(deployment, counts.replicas).to_owned()),
        conditions: all.done(),
        deprecated: Some(MachineDeploymentDeprecatedStatus { v1beta1: Some(old) }),
    }
}

fn target<'a>(plan: &'a Plan, set: &MachineSet) -> Option<&'a MachineSet> {
    plan.actions.iter().find_map(|action| match action {
        Action::ApplySet { set: wanted, .. } if wanted.metadata.name == set.metadata.name => Some(&**wanted),
        _ => None,
    })
}

/// Replicas that a set has or is to have, whichever is more.
fn occupied(seen: &Observed, plan: &Plan, set: &MachineSet) -> i32 {
    let wanted = target(plan, set).unwrap_or(set).spec.replicas.unwrap_or(0);
    wanted.max(crate::shared::numbers::len_i32(seen.machines_of(set).len()))
}

/// Replicas of a set that is only planned.
fn planned(plan: &Plan) -> i32 {
    let made = plan.actions.iter().filter_map(|action| match action {
        Action::ApplySet { set, from: None } => set.spec.replicas,
        _ => None,
    });
    made.sum()
}

fn phase(deployment: &MachineDeployment, have: i32) -> &'static str {
    if deployment.metadata.is_deleting() {
        return "ScalingDown";
    }
    match settings::replicas(deployment).cmp(&have) {
        std::cmp::Ordering::Greater => "ScalingUp",
        std::cmp::Ordering::Less => "ScalingDown",
        std::cmp::Ordering::Equal => "Running",
    }
}

fn available(seen: &Observed, available: Option<i32>) -> Draft {
    let deployment = &seen.deployment;
    let Some(available) = available else {
        return Draft::unknown(
            "WaitingForAvailableReplicasSet",
            "Waiting for status.availableReplicas set",
        );
    };
    let replicas = settings::replicas(deployment);
    let needed = replicas - limits(deployment).1;
    if available >= needed {
        return Draft::yes("Available", "");
    }
    if deployment.metadata.is_deleting() {
        return Draft::no("NotAvailable", "Deletion in progress");
    }
    let unavailable = settings::max_unavailable_text(deployment);
    Draft::no(
        "NotAvailable",
        format!(
            "{available} available replicas, at least {needed} required (spec.strategy.rollout.maxUnavailable is {unavailable}, spec.replicas is {replicas})"
        ),
    )
}

fn rolling_out(seen: &Observed, plan: &Plan, machines: &[Arc<Machine>]) -> Draft {
    let stale = machines
        .iter()
        .filter(|machine| is(machine, conditions::UP_TO_DATE, "False"));
    let count = stale.clone().count();
    if count == 0 {
        return Draft::no("NotRollingOut", "");
    }
    let mut why: Vec<&str> = stale
        .filter_map(|machine| condition(machine, conditions::UP_TO_DATE))
        .flat_map(|condition| condition.message.lines())
        .map(|line| line.trim_start_matches("* "))
        .filter(|line| !line.is_empty())
        .collect();
    // Versions first: they are what people look for.
    why.sort_by_key(|line| (!line.starts_with("Version "), *line));
    why.dedup();
    let mut message = format!("Rolling out {count} not up-to-date replicas");
    let own = plan.refused.iter().chain(&plan.undecided).cloned();
    let obstacles = own.chain(obstacles_of_sets(seen));
    for line in why.into_iter().map(str::to_owned).chain(obstacles) {
        message.push_str("\n* ");
        message.push_str(&line);
    }
    Draft::yes("RollingOut", message)
}

fn wanted(seen: &Observed) -> i32 {
    if seen.deployment.metadata.is_deleting() {
        0
    } else {
        settings::replicas(&seen.deployment)
    }
}

/// Why MachineSets make no Machines, each with the name of the set.
fn obstacles_of_sets(seen: &Observed) -> Vec<String> {
    let of_set = |set: &Arc<MachineSet>| {
        let name = set.metadata.name().to_owned();
        let all = obstacles(set).into_iter();
        all.map(move |why| format!("MachineSet {name} makes no Machines: {why}"))
    };
    seen.sets.iter().flat_map(of_set).collect()
}

fn scaling_up(seen: &Observed, plan: &Plan, have: i32) -> Draft {
    let want = wanted(seen);
    if let (true, Some(why)) = (have >= want, &plan.refused) {
        return Draft::no("NotScalingUp", format!("Nothing is changed because {why}"));
    }
    let is_deleting = seen.deployment.metadata.is_deleting();
    let missing = missing_templates(seen).filter(|_| !is_deleting);
    if have >= want {
        let message = missing.map(|missing| format!("Scaling up would be blocked because {missing}"));
        return Draft::no("NotScalingUp", message.unwrap_or_default());
    }
    let no_cluster = seen.cluster.is_not_found();
    let no_cluster = no_cluster.then(|| no_cluster_of(&seen.deployment.spec.cluster_name));
    let own = plan.refused.iter().chain(&plan.undecided).cloned();
    let own = own.chain(no_cluster).chain(missing);
    let reasons: Vec<String> = own.chain(obstacles_of_sets(seen)).collect();
    let message = format!("Scaling up from {have} to {want} replicas");
    let message = match reasons.as_slice() {
        [] => message,
        [one] => format!("{message} is blocked because {one}"),
        more => format!("{message} is blocked because:\n* {}", more.join("\n* ")),
    };
    Draft::yes("ScalingUp", message)
}

fn scaling_down(seen: &Observed, plan: &Plan, have: i32, machines: &[Arc<Machine>], now: &Moment) -> Draft {
    let want = wanted(seen);
    if have <= want || plan.refused.is_some() {
        return Draft::no("NotScalingDown", "");
    }
    let mut message = format!("Scaling down from {have} to {want} replicas");
    if let Some(slow) = slow_deletions(machines, now) {
        message.push('\n');
        message.push_str(&slow);
    }
    Draft::yes("ScalingDown", message)
}

fn deleting_condition(seen: &Observed, machines: &[Arc<Machine>], now: &Moment) -> Draft {
    if !seen.deployment.metadata.is_deleting() {
        return Draft::no("NotDeleting", "");
    }
    let mut message = match (machines.len(), seen.sets.len()) {
        (0, 0) => "Deletion completed".to_owned(),
        (0, sets) => format!("Deleting {sets} MachineSets"),
        (1, _) => "Deleting 1 Machine".to_owned(),
        (many, _) => format!("Deleting {many} Machines"),
    };
    if let Some(slow) = slow_deletions(machines, now) {
        message.push('\n');
        message.push_str(&slow);
    }
    Draft::yes("Deleting", message)
}

/// The set with the current template, as it was seen.
fn new_set<'a>(seen: &'a Observed, plan: &Plan) -> Option<&'a Arc<MachineSet>> {
    let new = plan.new.as_deref()?;
    seen.sets.iter().find(|set| set.metadata.name() == new)
}

impl windlass_controller_runtime::Done for Done {
    fn failed(&self) -> Option<&windlass_controller_runtime::ReconcileError> {
        self.failed.as_ref()
    }
}

#[cfg(test)]
mod tests;
