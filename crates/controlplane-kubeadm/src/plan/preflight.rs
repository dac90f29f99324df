//! Whether a change of the set of Machines may begin.

use windlass_conditions::Status;
use windlass_etcd::quorum;

use super::{Plan, TROUBLED};
use crate::facts::{Certificate, CpMachine, Etcd, Facts};
use crate::health::{Health, View};
use crate::names::{PRE_TERMINATE_HOOK, machine};

/// What a change wants to do.
#[derive(Clone, Copy, Debug)]
pub enum Purpose<'m> {
    /// Add a Machine.
    ScaleUp,
    /// Delete this Machine.
    ScaleDown(&'m CpMachine),
    /// Update a Machine in place: all must be well.
    Update,
}

/// Why a change cannot begin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blockers {
    /// The specification asks for what cannot be: the fields, with reason and remedy.
    pub refused: Vec<String>,
    /// The topology is about to bring another version; this one.
    pub version_to_come: Option<String>,
    /// A Machine is still on its way out.
    pub deleting_machine: bool,
    /// An authority is missing.
    pub certificates: bool,
    /// A component is not healthy.
    pub components: bool,
    /// etcd is not healthy.
    pub etcd: bool,
    /// Why it cannot be told whether the next Machine is updated in place or replaced.
    pub undecided: Option<String>,
}

impl Blockers {
    /// One line each, as the scaling conditions show them.
    pub fn messages(&self) -> Vec<String> {
        let version = self.version_to_come.as_ref();
        let version = version.map(|v| format!("* waiting for a version upgrade to {v} to be propagated"));
        let lines = [
            (
                self.deleting_machine,
                "* waiting for a control plane Machine to complete deletion",
            ),
            (self.certificates, "* cluster certificates are missing or unknown"),
            (
                self.components,
                "* waiting for control plane components to become healthy",
            ),
            (self.etcd, "* waiting for etcd cluster to become healthy"),
        ];
        let lines = lines.iter().filter(|(holds, _)| *holds);
        let said = self.refused.iter().chain(&self.undecided);
        let said = said.map(|why| format!("* {why}"));
        said.chain(version)
            .chain(lines.map(|(_, line)| (*line).to_owned()))
            .collect()
    }
}

/// The version that the topology brings next, when the control plane does not have it yet.
pub fn version_to_come(facts: &Facts) -> Option<String> {
    let wanted = facts.cluster.topology_version.as_ref()?;
    let step = facts.cluster.upgrade_step.as_ref();
    let current = &facts.control_plane.version;
    if wanted == current || step == Some(current) {
        return None;
    }
    Some(step.unwrap_or(wanted).clone())
}

/// True when the change may begin; otherwise the plan says why not.
pub(super) fn passes(facts: &Facts, health: &Health, purpose: Purpose<'_>, plan: &mut Plan) -> bool {
    plan.blockers = Blockers::default();
    if let Some(version) = version_to_come(facts) {
        plan.note(format!(
            "Machines wait for the version upgrade to {version} of the topology"
        ));
        plan.blockers.version_to_come = Some(version);
        return false;
    }
    let scale_up = matches!(purpose, Purpose::ScaleUp);
    if scale_up && facts.certificates.iter().any(certificate_missing) {
        plan.note("no Machine is created: cluster certificates are missing or unknown");
        plan.blockers.certificates = true;
        return false;
    }
    if let Some(deleting) = facts.machines.iter().find(|m| m.deleting()) {
        plan.note(format!("Machines wait for the deletion of Machine {}", deleting.name));
        plan.blockers.deleting_machine = true;
        return false;
    }
    let (mut blockers, mut errors) = stable(facts, health, purpose);
    let replacing = facts.remediation().is_some();
    if scale_up && replacing && !errors.is_empty() {
        (blockers, errors) = bearable(facts, health);
    }
    plan.blockers = blockers;
    if errors.is_empty() {
        return true;
    }
    let provisioning = facts.machines.iter().any(|m| m.node.is_none());
    if !provisioning {
        plan.warn(
            "ControlPlaneUnhealthy",
            format!(
                "Waiting for control plane to pass preflight checks to continue reconciliation: {}",
                errors.join(", ")
            ),
        );
        plan.again_within(TROUBLED);
    }
    false
}

fn certificate_missing(certificate: &Certificate) -> bool {
    certificate.secret.found().is_none()
}

/// Every Machine has a Node, and everything on it is healthy.
fn stable(facts: &Facts, health: &Health, purpose: Purpose<'_>) -> (Blockers, Vec<String>) {
    let mut blockers = Blockers::default();
    let mut errors = Vec::new();
    let mut kinds = machine::COMPONENTS.to_vec();
    if facts.control_plane.managed_etcd {
        kinds.extend([machine::ETCD_POD, machine::ETCD_MEMBER]);
    }
    for view in &health.machines {
        let name = &view.facts.name;
        if matches!(purpose, Purpose::ScaleDown(excluded) if excluded.name == *name) {
            continue;
        }
        if view.facts.node.is_none() {
            blockers.components = true;
            blockers.etcd = facts.control_plane.managed_etcd;
            errors.push(format!(
                "Machine {name} does not have a corresponding Node yet (Machine.status.nodeRef not set)"
            ));
            continue;
        }
        for kind in &kinds {
            let finding = view.finding(kind);
            let status = finding.map(|f| f.status);
            let problem = match status {
                Some(Status::True) => continue,
                Some(Status::False) => "false",
                Some(Status::Unknown) => "unknown",
                None => "missing",
            };
            if *kind == machine::ETCD_MEMBER {
                blockers.etcd = true;
            } else {
                blockers.components = true;
            }
            let said = finding.map_or("", |f| f.message.as_str());
            errors.push(format!("Machine {name} reports {kind} condition is {problem} ({said})"));
        }
    }
    (blockers, errors)
}

/// While a remediated Machine is replaced: what is left must work, and go on working with one more.
fn bearable(facts: &Facts, health: &Health) -> (Blockers, Vec<String>) {
    let mut blockers = Blockers::default();
    let mut errors = Vec::new();
    if !components_survive(health, None) {
        blockers.components = true;
        errors.push("no control plane Machine has all components healthy".to_owned());
    }
    if facts.control_plane.managed_etcd {
        if facts.members().is_none_or(<[_]>::is_empty) {
            errors.push("the list of etcd members is not known".to_owned());
        } else if !etcd_survives(facts, health, true, None) {
            blockers.etcd = true;
            errors.push("adding a control plane Machine can cost etcd its quorum".to_owned());
        }
    }
    (blockers, errors)
}

/// At least one Machine other than the one that goes has all components healthy, together with its etcd.
pub(super) fn components_survive(health: &Health, without: Option<&str>) -> bool {
    let managed = health.etcd.is_some();
    health.machines.iter().any(|view| {
        without != Some(view.facts.name.as_str())
            && view.components_healthy()
            && (!managed || (view.is_true(machine::ETCD_POD) && view.is_true(machine::ETCD_MEMBER)))
    })
}

/// etcd has a quorum after the change, counting everything doubtful as bad.
pub(super) fn etcd_survives(facts: &Facts, health: &Health, adds_member: bool, removed: Option<&str>) -> bool {
    let Some(Etcd::Members { members, alarms, .. }) = facts.reached().map(|r| &r.etcd) else {
        return false;
    };
    let mut voters = 0;
    let mut unhealthy = 0;
    if adds_member {
        voters += 1;
        // The second member has to come up for a quorum of two in any case.
        unhealthy += usize::from(members.len() > 1);
    }
    for member in members {
        if removed == Some(member.name.as_str()) && member.is_started() {
            continue;
        }
        if member.learner || !member.is_started() {
            return false;
        }
        voters += 1;
        let name = Some(member.name.as_str());
        let machine = health.machines.iter().find(|v| v.facts.node.as_deref() == name);
        let healthy = match machine {
            Some(view) => member_healthy(facts, view),
            None => !alarms.iter().any(|a| a.member == member.id),
        };
        unhealthy += usize::from(!healthy);
    }
    quorum::holds(voters, voters.saturating_sub(unhealthy))
}

/// A deleting Machine's member works until the Machine is let go: its condition only says that it is deleting, its pod
/// says more. Without this, two deleted Machines of three would wait for one another for ever.
fn member_healthy(facts: &Facts, view: &View) -> bool {
    if !view.facts.deleting() {
        return view.is_true(machine::ETCD_MEMBER);
    }
    let pods = facts.reached().map(|r| &r.pods);
    let (Some(Ok(pods)), Some(node)) = (pods, &view.facts.node) else {
        return false;
    };
    view.facts.annotations.contains_key(PRE_TERMINATE_HOOK)
        && pods
            .get(&format!("etcd-{node}"))
            .is_some_and(|pod| pod.true_conditions.iter().any(|c| c == "Ready"))
}
