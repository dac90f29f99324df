//! etcd members: those that stand in the way, and those of Machines that go.

use std::cmp::Reverse;
use windlass_conditions::Status;

use windlass_controller_runtime::Seen;
use windlass_etcd::Member;
use windlass_meta::KubernetesVersion;

use super::preflight::{components_survive, etcd_survives};
use super::{Action, LeavingMember, MoveLeader, Plan, Step, TROUBLED};
use crate::facts::{CpMachine, Etcd, Facts};
use crate::health::{Health, View};
use crate::names::{PRE_TERMINATE_HOOK, PRE_TERMINATE_PREFIX, machine};

/// Removes a member without a Machine, once no Machine is on its way in that could be behind it.
pub(super) fn remove_unexpected(facts: &Facts, health: &Health, plan: &mut Plan) -> Step {
    let healthy = health.etcd.as_ref().is_none_or(|f| f.status == Status::True);
    if healthy || facts.machines.is_empty() || facts.machines.iter().any(|m| m.node.is_none()) {
        return Step::Rest;
    }
    let strangers = strangers(facts);
    let Some(member) = strangers.first() else {
        return Step::Rest;
    };
    if member.is_started() && !etcd_survives(facts, health, false, Some(&member.name)) {
        plan.block(format!(
            "etcd member {} has no Machine and should leave, but etcd could lose its quorum; bring the other members back first",
            member.name
        ));
        return Step::Ended;
    }
    plan.note(format!("etcd member {} is removed: it has no Machine", member.name));
    plan.push(Action::RemoveMember(leaving(facts, member)));
    Step::Ended
}

/// Lets the oldest deleting Machine go once everything else about its deletion is done.
pub(super) fn release_deleting(facts: &Facts, health: &Health, plan: &mut Plan) -> Step {
    let mut deleting: Vec<&View> = health.machines.iter().filter(|v| v.facts.deleting()).collect();
    deleting.sort_by_key(|v| (v.facts.deleted, v.facts.name.clone()));
    let Some(view) = deleting.first() else {
        return Step::Rest;
    };
    let released = |v: &View| !v.facts.annotations.contains_key(PRE_TERMINATE_HOOK);
    // One at a time: a Machine that was let go has to be gone first.
    if deleting.iter().any(|v| released(v)) || !waits_for_us(facts, &view.facts) {
        return Step::Ended;
    }
    let release = |leader, member| Action::ReleaseMachine {
        name: view.facts.name.clone(),
        leader,
        member,
    };
    if facts.machines.len() <= 1 {
        plan.push(release(None, None));
        return Step::Ended;
    }
    if !components_survive(health, Some(&view.facts.name)) {
        plan.blockers.components = true;
        return Step::Ended;
    }
    if !facts.control_plane.managed_etcd {
        plan.push(release(None, None));
        return Step::Ended;
    }
    let Some(members) = facts.members() else {
        plan.blockers.etcd = true;
        return Step::Ended;
    };
    let node = match node_name(facts, &view.facts) {
        Seen::Found(node) => node,
        Seen::NotFound => {
            match strangers(facts).first() {
                // It never became a Node, so it has no member.
                None => plan.push(release(None, None)),
                Some(member) => release_unlinked(facts, health, view, member, plan),
            }
            return Step::Ended;
        }
        Seen::Failed(why) => {
            plan.note(format!(
                "Machine {} is not released: whether it has an etcd member is not known: {why}",
                view.facts.name
            ));
            plan.blockers.etcd = true;
            plan.again_within(TROUBLED);
            return Step::Ended;
        }
    };
    let member = members.iter().find(|m| m.name == node);
    if member.is_some() && !etcd_survives(facts, health, false, Some(&node)) {
        plan.blockers.etcd = true;
        return Step::Ended;
    }
    match leadership(facts, health, view) {
        Ok(leader) => plan.push(release(leader, member.map(|m| leaving(facts, m)))),
        Err(error) => plan.block(error),
    }
    Step::Ended
}

/// The members that are on no Node of a Machine, by name.
fn strangers(facts: &Facts) -> Vec<&Member> {
    let members = facts.members().unwrap_or_default().iter();
    let mut strangers: Vec<&Member> = members
        .filter(|member| {
            let name = Some(member.name.as_str());
            !facts.machines.iter().any(|m| m.node.as_deref() == name)
        })
        .collect();
    strangers.sort_by_key(|member| (&member.name, member.id));
    strangers
}

/// A deleting Machine without a linked Node may run a member that no Machine is known to run. That member leaves first: the host of a
/// member that stays would take a vote of the quorum along.
fn release_unlinked(facts: &Facts, health: &Health, view: &View, member: &Member, plan: &mut Plan) {
    let name = &view.facts.name;
    let mut others = facts.machines.iter().filter(|m| m.name != *name);
    let wait = if let Some(other) = others.find(|m| m.node.is_none()) {
        format!("it may run on Machine {}, which has no Node yet, either", other.name)
    } else if member.is_started() && !etcd_survives(facts, health, false, Some(&member.name)) {
        "etcd could lose its quorum without it".to_owned()
    } else {
        plan.note(format!(
            "etcd member {} is removed: it has no Machine, or it runs on Machine {name}, which is being deleted",
            member.name
        ));
        plan.push(Action::RemoveMember(leaving(facts, member)));
        return;
    };
    plan.note(format!(
        "Machine {name} is not released: etcd member {} may run on it, but {wait}",
        member.name
    ));
    plan.blockers.etcd = true;
    plan.again_within(TROUBLED);
}

/// True when the Machine's own controller is done with everything but our hook.
fn waits_for_us(facts: &Facts, machine: &CpMachine) -> bool {
    let version = KubernetesVersion::parse_tolerant(&facts.control_plane.version);
    // From v1.31 on kubelet talks to the local API server, which stops working with its member: others go first.
    let last = version.is_ok_and(|v| v.at_least_minor(1, 31));
    let others = machine
        .annotations
        .keys()
        .any(|k| k.starts_with(PRE_TERMINATE_PREFIX) && k != PRE_TERMINATE_HOOK);
    if last && others {
        return false;
    }
    machine
        .condition(machine::DELETING)
        .is_some_and(|c| c.status == "True" && c.reason == "WaitingForPreTerminateHook")
}

/// A member that leaves, and the Nodes whose members may be asked to remove it.
fn leaving(facts: &Facts, member: &Member) -> LeavingMember {
    let machines = facts.machines.iter().filter(|m| !m.deleting());
    let nodes = machines.filter_map(|m| m.node.as_ref());
    LeavingMember {
        id: member.id,
        name: member.name.clone(),
        through: nodes.filter(|node| **node != member.name).cloned().collect(),
    }
}

/// The Node of a Machine, also of one whose Node was not linked yet.
fn node_name(facts: &Facts, machine: &CpMachine) -> Seen<String> {
    if let Some(node) = &machine.node {
        return Seen::Found(node.clone());
    }
    let id = match (&machine.provider_id, &machine.infra) {
        (Some(id), _) => id.as_str(),
        (None, Seen::Found(infra)) => match infra["spec"]["providerID"].as_str() {
            Some(id) => id,
            None => return Seen::NotFound,
        },
        (None, Seen::NotFound) => return Seen::NotFound,
        (None, Seen::Failed(why)) => {
            let kind = machine.infra_kind();
            return Seen::Failed(format!("{kind} {} cannot be read: {why}", machine.name));
        }
    };
    match facts.reached().map(|r| &r.nodes) {
        Some(Ok(nodes)) => {
            let node = nodes.iter().find(|n| n.provider_id.as_deref() == Some(id));
            node.map(|node| node.name.clone()).into()
        }
        Some(Err(why)) => Seen::Failed(format!("Nodes cannot be read: {why}")),
        None => Seen::Failed("the workload cluster does not answer".to_owned()),
    }
}

/// Where leadership goes before this Machine's member does; nowhere when it does not lead.
pub(super) fn leadership(facts: &Facts, health: &Health, leaving: &View) -> Result<Option<MoveLeader>, String> {
    if !facts.control_plane.managed_etcd {
        return Ok(None);
    }
    // A member may lead before the Machine knows its Node. What cannot be looked up now is looked up again before the member leaves.
    let Seen::Found(node) = &node_name(facts, &leaving.facts) else {
        return Ok(None);
    };
    let Some(Etcd::Members { members, leader, .. }) = facts.reached().map(|r| &r.etcd) else {
        return Err("etcd's leader is not known, so leadership cannot be moved".to_owned());
    };
    let leads = members.iter().any(|m| m.id == *leader && m.name == *node);
    if !leads {
        return Ok(None);
    }
    let mut candidates: Vec<&View> = health
        .machines
        .iter()
        .filter(|v| v.facts.node.is_some() && !v.facts.deleting() && v.facts.name != leaving.facts.name)
        .collect();
    candidates.sort_by_key(|v| {
        (
            !v.is_true(machine::ETCD_MEMBER),
            !v.is_true(machine::HEALTH_CHECK_SUCCEEDED),
            !v.is_true(machine::UP_TO_DATE),
            Reverse(v.facts.created),
            v.facts.name.clone(),
        )
    });
    let to: Vec<_> = candidates
        .iter()
        .filter_map(|v| {
            let node = v.facts.node.as_ref()?;
            let member = members.iter().find(|m| m.name == *node && !m.learner)?;
            Some((member.id, node.clone()))
        })
        .collect();
    if to.is_empty() {
        return Err(format!(
            "etcd's leader is on Node {node}, and there is no other member that could lead"
        ));
    }
    Ok(Some(MoveLeader { from: node.clone(), to }))
}
