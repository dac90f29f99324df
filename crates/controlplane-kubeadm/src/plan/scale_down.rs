//! One Machine less.

use std::collections::BTreeMap;

use super::preflight::{self, Purpose};
use super::{Action, Plan, Step, members};
use crate::facts::Facts;
use crate::health::{Health, View};
use crate::names::DELETE_MACHINE;

/// Plans the deletion of one Machine, out of `outdated` when there are any.
pub(super) fn plan(facts: &Facts, health: &Health, outdated: &[&str], why: &'static str, plan: &mut Plan) -> Step {
    let Some(view) = select(facts, health, outdated) else {
        return Step::Ended;
    };
    if !preflight::passes(facts, health, Purpose::ScaleDown(&view.facts), plan) {
        return Step::Ended;
    }
    match members::leadership(facts, health, view) {
        Ok(leader) => plan.push(Action::DeleteMachine {
            name: view.facts.name.clone(),
            leader,
            why,
        }),
        Err(error) => {
            plan.warn("FailedScaleDown", error.clone());
            plan.block(error);
        }
    }
    Step::Ended
}

/// Picks the Machine to delete: what is outdated and has not joined first, as nothing else can change before it is gone or joins; then
/// what a user marked, then what is outdated and broken, then what is outdated; among those the oldest of the failure domain that has
/// the most of them.
pub(super) fn select<'v>(facts: &Facts, health: &'v Health, outdated: &[&str]) -> Option<&'v View> {
    let is_outdated = |v: &View| outdated.contains(&v.facts.name.as_str());
    let is_marked = |v: &View| v.facts.annotations.contains_key(DELETE_MACHINE);
    let is_broken = |v: &View| v.facts.node.is_some() && v.is_broken(facts.control_plane.managed_etcd);
    let choices: [&dyn Fn(&View) -> bool; 6] = [
        &|v| is_outdated(v) && v.facts.node.is_none(),
        &|v| is_outdated(v) && is_marked(v),
        &|v| is_marked(v),
        &|v| is_outdated(v) && is_broken(v),
        &|v| is_outdated(v),
        &|_| true,
    ];
    let machines = &health.machines;
    let eligible: Vec<&View> = choices
        .iter()
        .map(|eligible| machines.iter().filter(|v| eligible(v)).collect())
        .find(|found: &Vec<&View>| !found.is_empty())?;
    from_fullest_domain(facts, machines, eligible)
}

fn from_fullest_domain<'v>(facts: &Facts, machines: &'v [View], eligible: Vec<&'v View>) -> Option<&'v View> {
    let known = |v: &View| {
        let domain = v.facts.failure_domain.as_ref();
        domain.is_some_and(|d| facts.cluster.failure_domains.contains(d))
    };
    let oldest = |views: Vec<&'v View>| {
        views
            .into_iter()
            .min_by_key(|v| (v.facts.created, v.facts.name.clone()))
    };
    if facts.cluster.failure_domains.is_empty() {
        return oldest(eligible);
    }
    let stray: Vec<&View> = eligible.iter().copied().filter(|v| !known(v)).collect();
    if !stray.is_empty() {
        return oldest(stray);
    }
    let count = |views: &mut dyn Iterator<Item = &'v View>| {
        let mut counts: BTreeMap<&'v str, usize> = BTreeMap::new();
        for domain in views.filter_map(|v| v.facts.failure_domain.as_deref()) {
            *counts.entry(domain).or_default() += 1;
        }
        counts
    };
    let candidates = count(&mut eligible.iter().copied());
    let all = count(&mut machines.iter());
    // The number of all Machines only decides between domains with equally many candidates.
    let fullness = |v: &View| {
        let domain = v.facts.failure_domain.as_deref();
        let of = |counts: &BTreeMap<&str, usize>| domain.and_then(|d| counts.get(d)).copied();
        (of(&candidates), of(&all))
    };
    let most = eligible.iter().map(|v| fullness(v)).max()?;
    oldest(eligible.into_iter().filter(|v| fullness(v) == most).collect())
}
