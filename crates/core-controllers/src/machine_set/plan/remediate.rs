//! Replacing Machines that a health check found unhealthy.

use std::cmp::Reverse;
use std::sync::Arc;

use windlass_api::core::Machine;
use windlass_api::meta::MetaExt as _;
use windlass_conditions::Draft;
use windlass_controller_runtime::Seen;

use crate::machine_deployment::settings;
use crate::machine_set::observed::Observed;
use crate::machine_set::plan::{Action, Plan, scale};
use crate::shared::keys::{annotations, conditions};
use crate::shared::machines::{condition, is, is_to_be_remediated};
use crate::shared::numbers::{Round, len_i32, resolve, written};

const DELETING: &str = "MachineDeleting";

/// Says on every unhealthy Machine what becomes of it, and deletes those whose turn it is.
pub(super) fn remediate(seen: &Observed, checks: &Result<Vec<String>, String>, plan: &mut Plan) {
    take_back(seen, plan);
    let alive = seen.machines.iter().filter(|machine| !machine.metadata.is_deleting());
    let mut sick: Vec<&Arc<Machine>> = alive.filter(|machine| is_to_be_remediated(machine)).collect();
    if sick.is_empty() {
        return;
    }
    // Those that a user marked come first, then the newest: a Machine that never came up has no workloads to disturb.
    sick.sort_by_key(|machine| {
        let asked = machine.metadata.has_annotation(annotations::REMEDIATE_MACHINE);
        let made = machine.metadata.created();
        (!asked, Reverse(made), machine.metadata.name().to_owned())
    });
    if !seen.is_current {
        let message = "Machine won't be remediated because it is pending removal due to rollout";
        say_all(&sick, &Draft::no("CannotBeRemediated", message), plan);
        return;
    }
    let against = match checks {
        Ok(found) => found
            .iter()
            .map(|line| format!("* {line}"))
            .collect::<Vec<_>>()
            .join("\n"),
        Err(why) => format!("* {why}"),
    };
    if !against.is_empty() {
        say_all(&sick, &Draft::no("RemediationDeferred", against), plan);
        return;
    }
    let (limit, limit_text) = max_in_flight(seen, sick.len());
    let running = seen.machines.iter().filter(|machine| is_running(machine));
    let free = usize::try_from(limit - len_i32(running.count())).unwrap_or(0);
    let (now, later) = sick.split_at(free.min(sick.len()));
    let message = format!(
        "Waiting because there are already too many remediations in progress (spec.strategy.remediation.maxInFlight is {limit_text})"
    );
    say_all(later, &Draft::no("RemediationDeferred", message), plan);
    for machine in now {
        say(machine, &Draft::no(DELETING, "Machine is deleting"), plan);
        scale::delete(machine, "it is unhealthy", plan);
    }
}

/// Whether the replacement of a Machine has begun and is not over. One that a user deletes meanwhile is not one of these.
fn is_running(machine: &Machine) -> bool {
    let remediated = condition(machine, conditions::OWNER_REMEDIATED);
    machine.metadata.is_deleting() && remediated.is_some_and(|have| have.status == "False" && have.reason == DELETING)
}

/// How many Machines may be replaced at once, with the setting as text. A percentage is of the replicas of the MachineDeployment.
fn max_in_flight(seen: &Observed, all: usize) -> (i32, String) {
    let limited = seen.deployment.as_ref().and_then(Seen::found).and_then(|deployment| {
        let limit = deployment.spec.remediation.as_ref()?.max_in_flight.as_ref()?;
        Some((deployment, limit))
    });
    let Some((deployment, limit)) = limited else {
        return (len_i32(all + seen.machines.len()), String::new());
    };
    let replicas = settings::replicas(deployment);
    (resolve(limit, replicas, Round::Up).unwrap_or(1), written(limit))
}

/// A Machine that became healthy again is not to be replaced.
fn take_back(seen: &Observed, plan: &mut Plan) {
    for machine in &seen.machines {
        let healthy = is(machine, conditions::HEALTH_CHECK_SUCCEEDED, "True");
        if healthy && condition(machine, conditions::OWNER_REMEDIATED).is_some() {
            plan.actions.push(Action::SayRemediation {
                machine: machine.clone(),
                verdict: None,
            });
        }
    }
}

fn say_all(machines: &[&Arc<Machine>], verdict: &Draft, plan: &mut Plan) {
    for machine in machines {
        say(machine, verdict, plan);
    }
}

fn say(machine: &Arc<Machine>, verdict: &Draft, plan: &mut Plan) {
    let said = condition(machine, conditions::OWNER_REMEDIATED).is_some_and(|have| verdict.is_said_by(have));
    if !said {
        plan.actions.push(Action::SayRemediation {
            machine: machine.clone(),
            verdict: Some(verdict.clone()),
        });
    }
}
