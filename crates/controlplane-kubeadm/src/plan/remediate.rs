//! Replaces Machines that failed their health check, as far as that is safe.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use windlass_controller_runtime::Moment;

use super::preflight::{components_survive, etcd_survives, version_to_come};
use super::{Action, Plan, Step, members};
use crate::facts::{CpMachine, Facts};
use crate::finding::Finding;
use crate::health::{Health, View};
use crate::names::{REMEDIATE_MACHINE, REMEDIATION_FOR, REMEDIATION_IN_PROGRESS, machine};

const DEFERRED: &str = "RemediationDeferred";
const IMPOSSIBLE: &str = "CannotBeRemediated";
const BEGUN: &str = "MachineDeleting";

/// What is remembered of a remediation, as the annotations hold it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Remembered {
    /// The Machine that was deleted.
    pub machine: String,
    /// When.
    pub timestamp: Timestamp,
    /// Attempts before this one.
    #[serde(default)]
    pub retry_count: i32,
}

impl Remembered {
    /// Reads an annotation.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    fn text(&self) -> String {
        serde_json::json!({
            "machine": self.machine,
            "timestamp": self.timestamp.to_string(),
            "retryCount": self.retry_count,
        })
        .to_string()
    }
}

/// What was answered to failed health checks before.
pub(super) fn answered(health: &Health) -> Vec<(String, Finding)> {
    let marked = health.machines.iter().filter(|v| v.facts.is_marked());
    let kept = marked.filter_map(|view| {
        let finding = Finding::kept(machine::OWNER_REMEDIATED, &view.facts.conditions)?;
        Some((view.facts.name.clone(), finding))
    });
    kept.collect()
}

/// Puts off the answers to failed health checks.
pub(super) fn defer(health: &Health, why: &str, plan: &mut Plan) {
    let marked = health
        .machines
        .iter()
        .filter(|v| v.facts.is_marked() && !v.facts.deleting());
    let deferred = marked.map(|view| {
        let finding = Finding::no(machine::OWNER_REMEDIATED, DEFERRED, why);
        (view.facts.name.clone(), finding)
    });
    plan.remediation = deferred.collect();
}

pub(super) fn plan(facts: &Facts, health: &Health, now: &Moment, plan: &mut Plan) -> Step {
    let in_progress = still_in_progress(facts, plan);
    let marked = health.machines.iter().filter(|v| v.facts.is_marked()).collect();
    let Some(view) = pick(facts, marked) else {
        return Step::Rest;
    };
    if view.facts.deleting() || in_progress {
        return Step::Rest;
    }
    let (finding, step) = match decide(facts, health, view, now) {
        Ok((remembered, leader)) => {
            plan.push(Action::DeleteMachine {
                name: view.facts.name.clone(),
                leader,
                why: "remediation",
            });
            plan.push(Action::Annotate {
                key: REMEDIATION_IN_PROGRESS,
                value: Some(remembered.text()),
            });
            let finding = Finding::no(machine::OWNER_REMEDIATED, BEGUN, "Machine is deleting");
            (finding, Step::Ended)
        }
        Err(refusal) => {
            plan.note(format!(
                "Machine {} is not replaced: {}",
                view.facts.name, refusal.message
            ));
            let finding = Finding::no(machine::OWNER_REMEDIATED, refusal.reason, refusal.message);
            (finding, Step::Rest)
        }
    };
    plan.remediation.retain(|(name, _)| *name != view.facts.name);
    plan.remediation.push((view.facts.name.clone(), finding));
    step
}

/// Whether a remediation waits for its replacement. The annotation of one that is over is taken off.
fn still_in_progress(facts: &Facts, plan: &mut Plan) -> bool {
    let waits = facts.remediation().is_some();
    if !waits && facts.control_plane.annotations.contains_key(REMEDIATION_IN_PROGRESS) {
        plan.push(Action::Annotate {
            key: REMEDIATION_IN_PROGRESS,
            value: None,
        });
    }
    waits
}

/// The Machine that is worst off.
fn pick<'v>(facts: &Facts, marked: Vec<&'v View>) -> Option<&'v View> {
    let managed = facts.control_plane.managed_etcd;
    marked.into_iter().min_by_key(|v| {
        let healthy = |kind: &str| v.is_true(kind);
        (
            !v.facts.annotations.contains_key(REMEDIATE_MACHINE),
            v.facts.node.is_some(),
            managed && healthy(machine::ETCD_MEMBER),
            managed && healthy(machine::ETCD_POD),
            healthy(machine::API_SERVER),
            healthy(machine::CONTROLLER_MANAGER),
            healthy(machine::SCHEDULER),
            healthy(machine::NODE_LABELS),
            v.facts.created,
            v.facts.name.clone(),
        )
    })
}

/// Why a Machine is not replaced now.
struct Refusal {
    reason: &'static str,
    message: String,
}

fn refuse<T>(reason: &'static str, message: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal {
        reason,
        message: message.into(),
    })
}

fn decide(
    facts: &Facts,
    health: &Health,
    view: &View,
    now: &Moment,
) -> Result<(Remembered, Option<super::MoveLeader>), Refusal> {
    if let Some(version) = version_to_come(facts) {
        return refuse(
            DEFERRED,
            format!(
                "KubeadmControlPlane can't remediate while waiting for a version upgrade to {version} to be propagated from Cluster.spec.topology"
            ),
        );
    }
    let remembered = within_limits(facts, &view.facts, now)?;
    if !facts.initialized() {
        return Ok((remembered, None));
    }
    if facts.machines.len() <= 1 {
        return refuse(
            IMPOSSIBLE,
            "KubeadmControlPlane can't remediate if current replicas are less or equal to 1",
        );
    }
    if facts.machines.iter().any(|m| !m.is_unhealthy() && m.node.is_none()) {
        return refuse(
            DEFERRED,
            "KubeadmControlPlane waiting for control plane Machine provisioning to complete before triggering remediation",
        );
    }
    if facts.machines.iter().any(|m| m.deleting()) {
        return refuse(
            DEFERRED,
            "KubeadmControlPlane waiting for control plane Machine deletion to complete before triggering remediation",
        );
    }
    let managed = facts.control_plane.managed_etcd;
    if managed && facts.members().is_none_or(<[_]>::is_empty) {
        return refuse(DEFERRED, "Failed to check etcd cluster health before remediation");
    }
    let member = view.facts.node.as_deref().filter(|_| managed);
    let safe = components_survive(health, Some(&view.facts.name))
        && member.is_none_or(|node| etcd_survives(facts, health, false, Some(node)));
    if !safe {
        return refuse(
            IMPOSSIBLE,
            "KubeadmControlPlane can't remediate this Machine because this could result in loosing Kubernetes control plane components or in etcd quorum loss",
        );
    }
    match members::leadership(facts, health, view) {
        Ok(leader) => Ok((remembered, leader)),
        Err(error) => refuse(IMPOSSIBLE, error),
    }
}

/// Counts attempts for the same problem: a replacement that fails soon again is the same problem.
fn within_limits(facts: &Facts, machine: &CpMachine, now: &Moment) -> Result<Remembered, Refusal> {
    let mut next = Remembered {
        machine: machine.name.clone(),
        timestamp: windlass_conditions::whole_seconds(now.now()),
        retry_count: 0,
    };
    let last = machine.annotations.get(REMEDIATION_FOR);
    let Some(last) = last.and_then(|text| Remembered::parse(text)) else {
        return Ok(next);
    };
    let limits = &facts.control_plane.remediation;
    if now.elapsed(last.timestamp, signed(limits.min_healthy_period)) {
        return Ok(next);
    }
    let period = signed(limits.retry_period);
    if !now.elapsed(last.timestamp, period) {
        return refuse(
            DEFERRED,
            format!(
                "KubeadmControlPlane can't remediate this machine because the operation already failed in the latest {} (RetryPeriodSeconds)",
                windlass_meta::GoDuration::from_secs(period.as_secs())
            ),
        );
    }
    if let Some(most) = limits.max_retry
        && last.retry_count >= most
    {
        return refuse(
            IMPOSSIBLE,
            format!(
                "KubeadmControlPlane can't remediate this machine because the operation already failed {most} times (MaxRetry)"
            ),
        );
    }
    next.retry_count = last.retry_count + 1;
    Ok(next)
}

fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}
