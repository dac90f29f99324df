//! Findings about etcd members, and whether members and Machines belong together.

use jiff::SignedDuration;
use windlass_controller_runtime::Moment;
use windlass_etcd::{Alarm, Member};

use super::{Reasons, View, sum_up, waits_for};
use crate::facts::{Etcd, Facts, Reached};
use crate::finding::Finding;
use crate::names::{control_plane, machine};

/// Time in which a new Node's member is expected to show up.
const JOIN_TIME: SignedDuration = SignedDuration::from_secs(120);

/// Whether members and Machines belong together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matching {
    /// Every settled Machine has a member and every member a Machine.
    pub matches: bool,
    /// Members without a Machine, said for people.
    pub errors: Vec<String>,
}

/// Adds the finding about each Machine's member.
pub(super) fn add_findings(facts: &Facts, reached: &Reached, machines: &mut [View], now: &Moment) -> Matching {
    if !facts.control_plane.managed_etcd {
        return Matching {
            matches: true,
            errors: Vec::new(),
        };
    }
    for view in &mut *machines {
        let finding = of_machine(reached, view);
        view.findings.push(finding);
    }
    compare(reached, machines, now)
}

fn of_machine(reached: &Reached, view: &View) -> Finding {
    const KIND: &str = machine::ETCD_MEMBER;
    if reached.nodes.is_err() {
        let message = "Failed to get the Node hosting the etcd member";
        return Finding::unknown(KIND, "InspectionFailed", message);
    }
    if view.facts.deleting() {
        return Finding::no(KIND, "Deleting", "Machine is deleting");
    }
    let Some(node) = &view.facts.node else {
        return Finding::unknown(KIND, "InspectionFailed", waits_for(&view.facts));
    };
    let (members, alarms) = match &reached.etcd {
        Etcd::Members { members, alarms, .. } => (members, alarms),
        Etcd::Failed(error) => {
            let message = format!("Failed to connect to etcd: {error}");
            return Finding::unknown(KIND, "InspectionFailed", message);
        }
        Etcd::NotAsked => {
            return Finding::unknown(KIND, "InspectionFailed", "Failed to connect to etcd");
        }
    };
    let Some(member) = members.iter().find(|m| m.name == *node) else {
        let message = format!("Etcd doesn't have an etcd member for Node {node}");
        return Finding::no(KIND, "NotHealthy", message);
    };
    if member.learner {
        let message = "Waiting for learner etcd member to be promoted";
        return Finding::no(KIND, "NotHealthy", message);
    }
    let raised = raised(alarms, member);
    if raised.is_empty() {
        return Finding::yes(KIND, "Healthy");
    }
    let message = format!("Etcd reports alarms: {}", raised.join(", "));
    Finding::no(KIND, "NotHealthy", message)
}

fn raised(alarms: &[Alarm], member: &Member) -> Vec<String> {
    let mine = alarms.iter().filter(|a| a.member == member.id);
    mine.map(|a| a.kind.to_string()).collect()
}

fn compare(reached: &Reached, machines: &mut [View], now: &Moment) -> Matching {
    let Some(members) = reached.etcd.members() else {
        return Matching {
            matches: machines.iter().all(|v| v.facts.node.is_none()),
            errors: Vec::new(),
        };
    };
    let mut matches = true;
    for view in &mut *machines {
        let Some(node) = &view.facts.node else {
            continue;
        };
        if members.iter().any(|m| m.name == *node) {
            continue;
        }
        // Also of a deleting Machine: that its member is gone says more than that it is deleting.
        if let Some(finding) = view.findings.iter_mut().find(|f| f.kind == machine::ETCD_MEMBER) {
            let message = format!("Etcd doesn't have an etcd member for Node {node}");
            *finding = Finding::no(machine::ETCD_MEMBER, "NotHealthy", message);
        }
        if !view.facts.deleting() && joined_long_ago(reached, node, now) {
            matches = false;
        }
    }
    let provisioning = machines.iter().any(|v| v.facts.node.is_none());
    let mut errors = Vec::new();
    for member in members {
        let name = Some(member.name.as_str());
        if machines.iter().any(|v| v.facts.node.as_deref() == name) {
            continue;
        }
        let name = if member.is_started() {
            member.name.clone()
        } else {
            format!("{} (Name not yet assigned)", member.id.0)
        };
        errors.push(format!("Etcd member {name} does not have a corresponding Machine"));
        matches &= provisioning;
    }
    Matching { matches, errors }
}

/// Whether a Node has been there long enough for its member to be expected. Unknown while Nodes cannot be read: then it counts as new.
fn joined_long_ago(reached: &Reached, node: &str, now: &Moment) -> bool {
    match &reached.nodes {
        Ok(nodes) => nodes
            .iter()
            .filter(|n| n.name == node)
            .any(|n| n.created.is_some_and(|created| now.elapsed(created, JOIN_TIME))),
        Err(_) => false,
    }
}

/// The finding about etcd as a whole; none with an external etcd.
pub(super) fn aggregate(facts: &Facts, machines: &[View], matching: &Matching) -> Option<Finding> {
    if !facts.control_plane.managed_etcd {
        return None;
    }
    if facts.reached().is_some_and(|r| r.nodes.is_err()) {
        let message = "Failed to get Nodes hosting the etcd cluster";
        return Some(Finding::unknown(control_plane::ETCD, "InspectionFailed", message));
    }
    let reasons = Reasons {
        good: "Healthy",
        bad: "NotHealthy",
        unknown: "HealthUnknown",
    };
    Some(sum_up(
        control_plane::ETCD,
        &[machine::ETCD_MEMBER],
        machines,
        &matching.errors,
        &reasons,
        "etcd member",
    ))
}
