//! Whether the control plane can be used.

use jiff::SignedDuration;
use windlass_conditions::Status;
use windlass_controller_runtime::Moment;
use windlass_etcd::{Member, quorum};

use crate::facts::{CpMachine, Facts};
use crate::finding::Finding;
use crate::health::{Health, View};
use crate::names::{control_plane, machine};
use crate::plan::Plan;

/// Time that etcd has after the first start before silence is a problem.
const FIRST_ANSWER: SignedDuration = SignedDuration::from_secs(120);
/// Trouble shorter than this is not reported while the control plane is available.
const FLICKER: SignedDuration = SignedDuration::from_secs(10);

const KIND: &str = control_plane::AVAILABLE;
const NOT_INITIALIZED: &str = "Control plane not yet initialized";

pub(super) fn finding(facts: &Facts, plan: &Plan, certificates: bool, now: &Moment) -> Finding {
    let no = |message: &str| Finding::no(KIND, "NotAvailable", message);
    if !facts.initialized() {
        return no(NOT_INITIALIZED);
    }
    let Some(health) = &plan.health else {
        return Finding::kept(KIND, &facts.control_plane.conditions).unwrap_or_else(|| no(NOT_INITIALIZED));
    };
    let managed = facts.control_plane.managed_etcd;
    let members = facts.members();
    if managed {
        if members.is_none() {
            // A process that has just started, or lost its connection a moment ago, knows nothing better.
            let kept = Finding::kept(KIND, &facts.control_plane.conditions);
            let kept = kept.filter(|kept| health.remembered && kept.message != NOT_INITIALIZED);
            return kept.unwrap_or_else(|| silent(facts, now));
        }
        if !health.matching.matches {
            return no("The list of etcd members does not match the list of Machines and Nodes");
        }
    }
    let planes = Planes::of(health, managed, now);
    let etcd = managed.then(|| Members::of(health, members.unwrap_or_default(), now));
    let has_quorum = etcd.as_ref().is_none_or(Members::has_quorum);
    if !facts.control_plane.deleting && certificates && has_quorum && planes.healthy > 0 {
        return Finding::new(KIND, Status::True, "Available", remarks(&planes, etcd.as_ref()));
    }
    let mut messages = Vec::new();
    if facts.control_plane.deleting {
        messages.push("* Control plane metadata.deletionTimestamp is set".to_owned());
    }
    if !certificates {
        messages.push("* Control plane certificates are not available".to_owned());
    }
    if let Some(etcd) = etcd.filter(|e| !e.has_quorum()) {
        messages.push(etcd.complaint());
    }
    if planes.healthy == 0 {
        messages.push("* There are no Machines with healthy control plane components, at least 1 required".to_owned());
    }
    no(&messages.join("\n"))
}

/// etcd has not answered: not long ago it could not yet.
fn silent(facts: &Facts, now: &Moment) -> Finding {
    let conditions = &facts.control_plane.conditions;
    let initialized = windlass_conditions::get(conditions, control_plane::INITIALIZED).filter(|c| c.status == "True");
    let since = initialized.map_or(now.now(), |c| c.last_transition_time.0);
    if !now.elapsed(since, FIRST_ANSWER) {
        let message = "Waiting for etcd to report the list of members";
        return Finding::no(KIND, "NotAvailable", message);
    }
    Finding::unknown(KIND, "InspectionFailed", "Failed to get etcd members")
}

/// Machines whose components work together.
struct Planes {
    healthy: usize,
    unhealthy: usize,
}

impl Planes {
    fn of(health: &Health, managed: bool, now: &Moment) -> Self {
        let mut kinds = machine::COMPONENTS.to_vec();
        if managed {
            kinds.extend([machine::ETCD_POD, machine::ETCD_MEMBER]);
        }
        let mut planes = Self {
            healthy: 0,
            unhealthy: 0,
        };
        // A Machine without an identity at its provider has only just begun.
        let begun = health.machines.iter().filter(|v| v.facts.provider_id.is_some());
        for view in begun {
            if kinds.iter().all(|kind| view.is_true(kind)) {
                planes.healthy += 1;
            } else if troubled(view, &kinds, now) {
                planes.unhealthy += 1;
            }
        }
        planes
    }
}

/// True when something has been wrong for longer than a moment.
fn troubled(view: &View, kinds: &[&str], now: &Moment) -> bool {
    kinds.iter().any(|kind| {
        view.status(kind).is_some_and(|s| s != Status::True)
            && view
                .facts
                .condition(kind)
                .is_some_and(|c| c.status != "True" && now.elapsed(c.last_transition_time.0, FLICKER))
    })
}

/// The members, judged by the Machines they run on.
struct Members {
    all: usize,
    voters: usize,
    learners: usize,
    healthy: usize,
    unhealthy: usize,
}

impl Members {
    fn of(health: &Health, members: &[Member], now: &Moment) -> Self {
        let mut counts = Self {
            all: members.len(),
            voters: 0,
            learners: 0,
            healthy: 0,
            unhealthy: 0,
        };
        let provisioning: Vec<&View> = health.machines.iter().filter(|v| v.facts.node.is_none()).collect();
        let mut newcomer = match provisioning.as_slice() {
            [only] => Some(*only),
            _ => None,
        };
        for member in members {
            if member.learner || !member.is_started() {
                counts.learners += 1;
            } else {
                counts.voters += 1;
            }
            if !member.is_started() {
                // It has only been announced; it counts neither for nor against.
                counts.healthy += 1;
                continue;
            }
            let name = Some(member.name.as_str());
            let of_node = |v: &&View| v.facts.node.as_deref() == name;
            let view = health.machines.iter().find(of_node).or_else(|| newcomer.take());
            match view {
                Some(view) if view.is_true(machine::ETCD_MEMBER) => counts.healthy += 1,
                Some(view) if troubled(view, &[machine::ETCD_MEMBER], now) => {
                    counts.unhealthy += 1;
                }
                // Trouble of a moment, as while a member has just joined.
                Some(view) if young(&view.facts) => counts.healthy += 1,
                Some(_) => {}
                None => counts.unhealthy += 1,
            }
        }
        counts
    }

    fn has_quorum(&self) -> bool {
        self.healthy >= quorum::needed(self.voters)
    }

    fn complaint(&self) -> String {
        let learners = match self.learners {
            0 => String::new(),
            n => format!(" {n} learner etcd member,"),
        };
        let needed = quorum::needed(self.voters);
        let all = self.all;
        match self.healthy {
            0 => format!(
                "* There are no healthy etcd member,{learners} at least {needed} healthy member required for etcd quorum"
            ),
            1 => format!(
                "* 1 of {all} etcd members is healthy,{learners} at least {needed} healthy member required for etcd quorum"
            ),
            n => format!(
                "* {n} of {all} etcd members are healthy,{learners} at least {needed} healthy member required for etcd quorum"
            ),
        }
    }
}

/// A Machine whose Node is not linked yet.
fn young(machine: &CpMachine) -> bool {
    machine.node.is_none()
}

/// What should be known although the control plane is available.
fn remarks(planes: &Planes, etcd: Option<&Members>) -> String {
    let mut messages = Vec::new();
    if let Some(etcd) = etcd.filter(|e| e.unhealthy > 0) {
        let needed = quorum::needed(etcd.voters);
        let (healthy, all) = (etcd.healthy, etcd.all);
        messages.push(if healthy == 1 {
            format!(
                "* 1 of {all} etcd members is healthy, at least {needed} healthy member required for etcd quorum"
            )
        } else {
            format!(
                "* {healthy} of {all} etcd members are healthy, at least {needed} healthy member required for etcd quorum"
            )
        });
    }
    if planes.unhealthy > 0 {
        let healthy = planes.healthy;
        let all = healthy + planes.unhealthy;
        let are = if healthy == 1 { "Machine has" } else { "Machines have" };
        messages.push(format!(
            "* {healthy} of {all} {are} healthy control plane components, at least 1 required"
        ));
    }
    messages.join("\n")
}
