//! Aggregates the same condition of many objects into one condition.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::merge::{BEGINNING, Strategy, merge};
use crate::message::aggregated;
use crate::{
    ComputeReason, Condition, GetPriority, NOT_YET_REPORTED, Owned, Reasons, Status, condition, default_priority, get,
};

/// An object whose condition is aggregated.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Its kind.
    pub kind: &'a str,
    /// Its name.
    pub name: &'a str,
    /// True for a Machine of a control plane.
    pub control_plane: bool,
    /// Its conditions.
    pub conditions: &'a [Condition],
}

/// Options of an aggregation.
#[derive(Clone, Copy)]
pub struct Aggregate<'a> {
    /// Type at the sources.
    pub source: &'a str,
    /// Type of the new condition.
    pub target: &'a str,
    /// True when True is bad, at the sources and in the new condition.
    pub negative: bool,
    /// Reasons.
    pub reasons: Reasons<'a>,
    /// Another way to compute the reason.
    pub compute_reason: Option<ComputeReason<'a>>,
    /// Another priority of conditions.
    pub priority: Option<GetPriority<'a>>,
}

impl<'a> Aggregate<'a> {
    /// An aggregation with default options.
    pub fn new(source: &'a str, target: &'a str) -> Self {
        Self {
            source,
            target,
            negative: false,
            reasons: Reasons::default(),
            compute_reason: None,
            priority: None,
        }
    }
}

impl std::fmt::Debug for Aggregate<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Aggregate")
            .field("source", &self.source)
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

/// The aggregate: the worst status, with the most important messages and the objects that report them. `None` without sources.
pub fn aggregate(
    sources: &[Source<'_>],
    how: &Aggregate<'_>,
    now: Timestamp,
    generation: Option<i64>,
) -> Option<Condition> {
    if sources.is_empty() {
        return None;
    }
    let mut in_scope: Vec<Owned<'_>> = sources.iter().map(|source| owned(source, how.source)).collect();
    let negative: &[&str] = if how.negative { &[how.source] } else { &[] };
    let default = |c: &Condition| default_priority(c, negative);
    let priority: GetPriority<'_> = how.priority.unwrap_or(&default);
    let strategy = Strategy {
        priority,
        reasons: how.reasons,
        compute_reason: how.compute_reason,
        positive: !how.negative,
    };
    let merged = merge(&mut in_scope, &[how.source], &strategy);
    let weigh = |owned: &Owned<'_>| priority(&owned.condition);
    let message = if merged.issues.is_empty() && merged.unknown.is_empty() {
        aggregated(&merged.infos, true, weigh)
    } else {
        let speaking: Vec<_> = merged.issues.into_iter().chain(merged.unknown).collect();
        aggregated(&speaking, false, weigh)
    };
    Some(condition(
        how.target,
        merged.status,
        &merged.reason,
        message,
        now,
        generation,
    ))
}

fn owned<'a>(source: &Source<'a>, type_: &str) -> Owned<'a> {
    let condition = get(source.conditions, type_).cloned().unwrap_or_else(|| Condition {
        type_: type_.to_owned(),
        status: Status::Unknown.as_str().to_owned(),
        reason: NOT_YET_REPORTED.to_owned(),
        message: format!("Condition {type_} not yet reported"),
        last_transition_time: Time(BEGINNING),
        observed_generation: None,
    });
    Owned {
        kind: source.kind,
        name: source.name,
        control_plane: source.control_plane,
        condition,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Object {
        name: String,
        control_plane: bool,
        conditions: Vec<Condition>,
    }

    fn object(name: &str, control_plane: bool, status: Option<(Status, &str)>) -> Object {
        let conditions = status
            .map(|(status, message)| condition("Ready", status, "R", message, Timestamp::UNIX_EPOCH, None))
            .into_iter()
            .collect();
        Object {
            name: name.to_owned(),
            control_plane,
            conditions,
        }
    }

    fn run(objects: &[Object], how: &Aggregate<'_>) -> (String, String, String) {
        let sources: Vec<_> = objects
            .iter()
            .map(|o| Source {
                kind: "Machine",
                name: &o.name,
                control_plane: o.control_plane,
                conditions: &o.conditions,
            })
            .collect();
        let c = aggregate(&sources, how, Timestamp::UNIX_EPOCH, None).unwrap();
        (c.status, c.reason, c.message)
    }

    fn check(objects: &[Object], how: &Aggregate<'_>, expect: (&str, &str, &str)) {
        let (status, reason, message) = run(objects, how);
        assert_eq!((status.as_str(), reason.as_str(), message.as_str()), expect);
    }

    fn bad(name: &str, message: &str) -> Object {
        object(name, false, Some((Status::False, message)))
    }

    #[test]
    fn without_sources_there_is_nothing_to_say() {
        assert!(
            aggregate(
                &[],
                &Aggregate::new("Ready", "MachinesReady"),
                Timestamp::UNIX_EPOCH,
                None
            )
            .is_none()
        );
    }

    #[test]
    fn objects_with_the_same_message_are_named_together() {
        let how = Aggregate::new("Ready", "MachinesReady");
        check(
            &[bad("b", "x"), bad("a", "x")],
            &how,
            ("False", "IssuesReported", "* Machines a, b: x"),
        );
        check(&[bad("a", "x")], &how, ("False", "IssuesReported", "* Machine a: x"));
        let many: Vec<_> = ["e", "d", "c", "b", "a"].iter().map(|n| bad(n, "x")).collect();
        check(
            &many,
            &how,
            ("False", "IssuesReported", "* Machines a, b, c, ... (2 more): x"),
        );
    }

    #[test]
    fn at_most_three_messages_and_counts_of_the_rest() {
        let how = Aggregate::new("Ready", "MachinesReady");
        let objects = [
            bad("a", "m1"),
            bad("b", "m2"),
            bad("c", "m3"),
            bad("d", "m4"),
            bad("e", "m5"),
            object("f", false, None),
        ];
        check(
            &objects,
            &how,
            (
                "False",
                "IssuesReported",
                "* Machine a: m1\n* Machine b: m2\n* Machine c: m3\nAnd 2 Machines with other issues\nAnd 1 Machine with status unknown",
            ),
        );
    }

    #[test]
    fn control_plane_machines_then_issues_then_frequent_messages_go_first() {
        let how = Aggregate::new("Ready", "MachinesReady");
        let objects = [
            object("w1", false, Some((Status::Unknown, "unknown"))),
            bad("w2", "rare"),
            bad("w3", "often"),
            bad("w4", "often"),
            object("cp", true, Some((Status::Unknown, "cp unknown"))),
        ];
        check(
            &objects,
            &how,
            (
                "False",
                "IssuesReported",
                "* Machine cp: cp unknown\n* Machines w3, w4: often\n* Machine w2: rare\nAnd 1 Machine with status unknown",
            ),
        );
    }

    #[test]
    fn nested_bullets_are_indented() {
        let how = Aggregate::new("Ready", "MachinesReady");
        check(
            &[bad("a", "* NodeHealthy: no\n* Infra: no")],
            &how,
            (
                "False",
                "IssuesReported",
                "* Machine a:\n  * NodeHealthy: no\n  * Infra: no",
            ),
        );
    }

    #[test]
    fn missing_is_unknown_and_infos_speak_when_all_is_well() {
        let how = Aggregate::new("Ready", "MachinesReady");
        check(
            &[object("a", false, None)],
            &how,
            (
                "Unknown",
                "UnknownReported",
                "* Machine a: Condition Ready not yet reported",
            ),
        );
        let well = [
            object("a", false, Some((Status::True, ""))),
            object("b", false, Some((Status::True, "hello"))),
        ];
        check(&well, &how, ("True", "InfoReported", "* Machine b: hello"));
    }

    #[test]
    fn negative_conditions_turn_the_status_round() {
        let how = Aggregate {
            negative: true,
            reasons: Reasons {
                issue: "RollingOut",
                unknown: "RollingOutUnknown",
                info: "NotRollingOut",
            },
            ..Aggregate::new("Ready", "RollingOut")
        };
        check(
            &[object("a", false, Some((Status::False, "")))],
            &how,
            ("False", "NotRollingOut", ""),
        );
        check(
            &[object("a", false, Some((Status::True, "3 machines")))],
            &how,
            ("True", "RollingOut", "* Machine a: 3 machines"),
        );
    }
}
