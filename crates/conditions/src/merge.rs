//! Merges conditions into one: status and reason.

use jiff::Timestamp;

use crate::{Condition, Status};

/// The priority of a condition in a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// A problem.
    Issue,
    /// The status is unknown.
    Unknown,
    /// No problem.
    Info,
}

/// A function that returns the priority of a condition.
pub type GetPriority<'a> = &'a dyn Fn(&Condition) -> Priority;
/// A function that returns the reason, from the issues, the unknown conditions and the infos.
pub type ComputeReason<'a> = &'a dyn Fn(&[Owned<'_>], &[Owned<'_>], &[Owned<'_>]) -> String;

/// Reasons of a merged condition, by the worst of what was merged.
#[derive(Clone, Copy, Debug)]
pub struct Reasons<'a> {
    /// At least one issue.
    pub issue: &'a str,
    /// No issue, at least one unknown.
    pub unknown: &'a str,
    /// Nothing but infos.
    pub info: &'a str,
}

impl Default for Reasons<'_> {
    fn default() -> Self {
        Self {
            issue: "IssuesReported",
            unknown: "UnknownReported",
            info: "InfoReported",
        }
    }
}

/// A condition and its object.
#[derive(Clone, Debug)]
pub struct Owned<'a> {
    /// Kind of the object.
    pub kind: &'a str,
    /// Name of the object.
    pub name: &'a str,
    /// True for Machines of a control plane, which are named first.
    pub control_plane: bool,
    /// The condition; in place of a missing condition, one with the earliest time.
    pub condition: Condition,
}

/// The result of a merge, without its message.
#[derive(Clone, Debug)]
pub struct Merged<'a> {
    /// The worst status.
    pub status: Status,
    /// The reason.
    pub reason: String,
    /// Issues, in order.
    pub issues: Vec<Owned<'a>>,
    /// Unknown ones, in order.
    pub unknown: Vec<Owned<'a>>,
    /// Infos, in order.
    pub infos: Vec<Owned<'a>>,
}

/// The default priority: False is an issue, and for `negative` types True is.
pub fn default_priority(condition: &Condition, negative: &[&str]) -> Priority {
    let is_negative = negative.contains(&condition.type_.as_str());
    match (condition.status.as_str(), is_negative) {
        ("True", true) | ("False", false) => Priority::Issue,
        ("True", false) | ("False", true) => Priority::Info,
        _ => Priority::Unknown,
    }
}

/// The options of a merge.
pub(crate) struct Strategy<'a> {
    pub(crate) priority: &'a dyn Fn(&Condition) -> Priority,
    pub(crate) reasons: Reasons<'a>,
    pub(crate) compute_reason: Option<ComputeReason<'a>>,
    /// False when True is bad.
    pub(crate) positive: bool,
}

/// Sorts by the order of types, then the oldest first, and splits by priority. `conditions` must not be empty.
pub(crate) fn merge<'a>(conditions: &mut Vec<Owned<'a>>, types: &[&str], strategy: &Strategy<'_>) -> Merged<'a> {
    conditions.sort_by_key(|owned| {
        let place = types.iter().position(|t| *t == owned.condition.type_);
        (place.unwrap_or(types.len()), owned.condition.last_transition_time.0)
    });
    let (mut issues, mut unknown, mut infos) = (Vec::new(), Vec::new(), Vec::new());
    for owned in conditions.iter() {
        match (strategy.priority)(&owned.condition) {
            Priority::Issue => issues.push(owned.clone()),
            Priority::Unknown => unknown.push(owned.clone()),
            Priority::Info => infos.push(owned.clone()),
        }
    }
    let (status, default_reason) = if !issues.is_empty() {
        (Status::from(!strategy.positive), strategy.reasons.issue)
    } else if !unknown.is_empty() {
        (Status::Unknown, strategy.reasons.unknown)
    } else {
        (Status::from(strategy.positive), strategy.reasons.info)
    };
    let reason = match strategy.compute_reason {
        Some(compute) => compute(&issues, &unknown, &infos),
        None => default_reason.to_owned(),
    };
    Merged {
        status,
        reason,
        issues,
        unknown,
        infos,
    }
}

/// The time of conditions in place of missing ones: before all others.
pub(crate) const BEGINNING: Timestamp = Timestamp::MIN;
