//! Conditions that sum up those of the Machines.

use jiff::{SignedDuration, Timestamp};
use windlass_conditions::Status;
use windlass_conditions::{Aggregate, Condition, Reasons, Source, aggregate};
use windlass_controller_runtime::Moment;

use crate::facts::{CpMachine, Facts};
use crate::finding::Finding;
use crate::names::{control_plane, machine};
use crate::plan::Plan;

/// Time in which a new Machine gets its first conditions.
const FIRST: SignedDuration = SignedDuration::from_secs(10);

/// All Machines are ready.
pub(super) fn ready(facts: &Facts, now: Timestamp) -> Finding {
    let sources = facts.machines.iter();
    let sources: Vec<_> = sources.map(|m| (m.name.as_str(), m.conditions.clone())).collect();
    sum_up(
        machine::READY,
        control_plane::MACHINES_READY,
        &sources,
        Reasons {
            issue: "NotReady",
            unknown: "ReadyUnknown",
            info: "Ready",
        },
        now,
    )
}

/// All Machines are as asked for.
pub(super) fn up_to_date(facts: &Facts, plan: &Plan, now: &Moment) -> Finding {
    let fresh = |m: &CpMachine| {
        let health = plan.health.as_ref()?;
        let view = health.machines.iter().find(|v| v.facts.name == m.name)?;
        let finding = view.finding(machine::UP_TO_DATE)?;
        Some(finding.stamp(&m.conditions, m.generation, now.now()))
    };
    let sources = facts.machines.iter().filter_map(|m| {
        let condition = fresh(m).or_else(|| m.condition(machine::UP_TO_DATE).cloned());
        // A new Machine that has nothing to say yet is no news.
        if condition.is_none() && !now.elapsed(m.created, FIRST) {
            return None;
        }
        Some((m.name.as_str(), condition.into_iter().collect()))
    });
    let sources: Vec<_> = sources.collect();
    sum_up(
        machine::UP_TO_DATE,
        control_plane::MACHINES_UP_TO_DATE,
        &sources,
        Reasons {
            issue: "NotUpToDate",
            unknown: "UpToDateUnknown",
            info: "UpToDate",
        },
        now.now(),
    )
}

/// What is said about the Machines that are being replaced.
pub(super) fn remediation(sources: &[(&str, Vec<Condition>)], now: Timestamp) -> String {
    sum_up(
        machine::OWNER_REMEDIATED,
        control_plane::REMEDIATING,
        sources,
        Reasons::default(),
        now,
    )
    .draft
    .message
}

fn sum_up(
    source: &'static str,
    target: &'static str,
    machines: &[(&str, Vec<Condition>)],
    reasons: Reasons<'_>,
    now: Timestamp,
) -> Finding {
    let sources: Vec<Source<'_>> = machines
        .iter()
        .map(|(name, conditions)| Source {
            kind: "Machine",
            name,
            control_plane: true,
            conditions,
        })
        .collect();
    let how = Aggregate {
        reasons,
        ..Aggregate::new(source, target)
    };
    match aggregate(&sources, &how, now, None) {
        Some(sum) => Finding::new(target, Status::parse(&sum.status), sum.reason, sum.message),
        None => Finding::yes(target, "NoReplicas"),
    }
}
