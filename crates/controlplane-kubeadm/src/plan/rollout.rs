//! Replaces Machines that are not what is asked for, or updates them in place, one at a time.

use windlass_cluster_cache::Workload;

use super::in_place::{self, Instead};
use super::preflight::components_survive;
use super::{Plan, Step, scale_down, scale_up};
use crate::desired;
use crate::facts::{CpMachine, Facts};
use crate::health::Health;
use crate::question::Question;

/// The Machines to be replaced.
pub(super) fn outdated(health: &Health) -> Vec<&str> {
    let views = health.machines.iter();
    let outdated = views.filter(|v| !v.up_to_date.holds() && !v.facts.deleting());
    outdated.map(|v| v.facts.name.as_str()).collect()
}

/// Whether a Machine is to be replaced that has not joined: it may never do so, and nothing else can change before it is gone.
fn is_stuck(facts: &Facts, health: &Health) -> bool {
    let outdated = health.machines.iter().filter(|view| !view.up_to_date.holds());
    let mut joining = outdated
        .map(|view| &view.facts)
        .filter(|m| m.node.is_none() && !m.deleting());
    // A Machine without a linked Node may be the cluster itself. It goes only if another one runs the cluster, or if there is none yet:
    // the first Machine may come up all the same, unless it has another version.
    joining.any(|m| {
        if facts.initialized() {
            components_survive(health, Some(&m.name))
        } else {
            m.version != facts.control_plane.version && has_no_cluster(facts, m)
        }
    })
}

/// Whether `kubeadm init` has not ended on the first Machine, as far as can be known.
fn has_no_cluster(facts: &Facts, first: &CpMachine) -> bool {
    let is_unseen = match &facts.workload {
        Workload::Up(reached) => reached.kubeadm_config == Ok(false),
        Workload::Down(outage) => outage.last_success.is_none(),
        Workload::NotTried(_) => false,
    };
    is_unseen && !first.has_been_up()
}

pub(super) fn plan(facts: &Facts, health: &Health, plan: &mut Plan, question: &mut Question) -> Step {
    let outdated = outdated(health);
    if outdated.is_empty() {
        return Step::Rest;
    }
    let control_plane = &facts.control_plane;
    let most = control_plane.replicas.saturating_add(control_plane.max_surge);
    let most = usize::try_from(most).unwrap_or_default();
    let is_stuck = is_stuck(facts, health);
    if facts.machines.len() >= most || is_stuck {
        // Nothing goes that could not be made again.
        if let Err(why) = desired::infra_machine(facts, "") {
            plan.warn("FailedScaleDown", why.clone());
            plan.block(why);
            return Step::Ended;
        }
        let next = scale_down::select(facts, health, &outdated).filter(|_| !is_stuck);
        if let Some(view) = next
            && matches!(in_place::instead(facts, health, view, plan, question), Instead::Ended)
        {
            return Step::Ended;
        }
        let before = plan.actions.len();
        let step = scale_down::plan(facts, health, &outdated, "rollout", plan);
        // Also without a Machine that joins: workers read the configuration, too.
        if plan.actions.len() > before && facts.initialized() {
            plan.actions.splice(before..before, scale_up::preparations(facts));
        }
        return step;
    }
    scale_up::plan(facts, health, plan)
}
