//! Summarizes several conditions of an object in one.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::merge::{BEGINNING, Strategy, merge};
use crate::message::indented;
use crate::{
    ComputeReason, Condition, GetPriority, NOT_YET_REPORTED, Owned, Priority, Reasons, Status, condition,
    default_priority,
};

/// Changes the lines of a message before they are joined.
pub type TransformMessages<'a> = &'a dyn Fn(Vec<String>) -> Vec<String>;

/// Options of a summary.
#[derive(Clone, Copy)]
pub struct Summary<'a> {
    /// Type of the new condition; True is good.
    pub target: &'a str,
    /// The types to summarize, the most important first.
    pub for_types: &'a [&'a str],
    /// Types for which True is bad.
    pub negative: &'a [&'a str],
    /// Types that are ignored if missing; other missing types count as Unknown.
    pub ignore_if_missing: &'a [&'a str],
    /// Conditions that replace those of the object.
    pub overrides: &'a [Condition],
    /// Reasons.
    pub reasons: Reasons<'a>,
    /// Another way to compute the reason.
    pub compute_reason: Option<ComputeReason<'a>>,
    /// Another priority of conditions, which then has to handle `negative`.
    pub priority: Option<GetPriority<'a>>,
    /// Changes the lines of the message.
    pub transform: Option<TransformMessages<'a>>,
}

impl<'a> Summary<'a> {
    /// A summary with default options.
    pub fn new(target: &'a str, for_types: &'a [&'a str]) -> Self {
        Self {
            target,
            for_types,
            negative: &[],
            ignore_if_missing: &[],
            overrides: &[],
            reasons: Reasons::default(),
            compute_reason: None,
            priority: None,
            transform: None,
        }
    }
}

impl std::fmt::Debug for Summary<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Summary")
            .field("target", &self.target)
            .field("for_types", &self.for_types)
            .finish_non_exhaustive()
    }
}

/// The summary: False with any issue, else Unknown with any unknown, else True. With nothing to summarize it is Unknown.
pub fn summary(conditions: &[Condition], how: &Summary<'_>, now: Timestamp, generation: Option<i64>) -> Condition {
    let mut in_scope: Vec<Owned<'_>> = how
        .for_types
        .iter()
        .filter_map(|type_| chosen(conditions, type_, how))
        .map(own)
        .collect();
    if in_scope.is_empty() {
        return condition(
            how.target,
            Status::Unknown,
            NOT_YET_REPORTED,
            "Condition not yet reported",
            now,
            generation,
        );
    }
    let default = |c: &Condition| default_priority(c, how.negative);
    let priority: GetPriority<'_> = how.priority.unwrap_or(&default);
    let strategy = Strategy {
        priority,
        reasons: how.reasons,
        compute_reason: how.compute_reason,
        positive: true,
    };
    let merged = merge(&mut in_scope, how.for_types, &strategy);
    let mut lines: Vec<String> = in_scope
        .iter()
        .filter_map(|owned| line(&owned.condition, priority(&owned.condition), merged.status))
        .collect();
    if let Some(transform) = how.transform {
        lines = transform(lines);
    }
    condition(
        how.target,
        merged.status,
        &merged.reason,
        lines.join("\n"),
        now,
        generation,
    )
}

/// The condition of a type: the override, the object's, or one in place of a missing condition.
fn chosen(conditions: &[Condition], type_: &str, how: &Summary<'_>) -> Option<Condition> {
    let find = |list: &[Condition]| list.iter().find(|c| c.type_ == type_).cloned();
    if let Some(present) = find(conditions) {
        return Some(find(how.overrides).unwrap_or(present));
    }
    if how.ignore_if_missing.contains(&type_) {
        return None;
    }
    Some(Condition {
        type_: type_.to_owned(),
        status: Status::Unknown.as_str().to_owned(),
        reason: NOT_YET_REPORTED.to_owned(),
        message: "Condition not yet reported".to_owned(),
        last_transition_time: Time(BEGINNING),
        observed_generation: None,
    })
}

fn own(condition: Condition) -> Owned<'static> {
    Owned {
        kind: "",
        name: "",
        control_plane: false,
        condition,
    }
}

/// The line of a condition: always for issues and unknown ones; for infos only if all is well and the message is not empty.
fn line(condition: &Condition, priority: Priority, status: Status) -> Option<String> {
    if priority == Priority::Info && (status != Status::True || condition.message.is_empty()) {
        return None;
    }
    let text = if condition.message.is_empty() {
        format!(" {}", condition.reason)
    } else {
        indented(&condition.message)
    };
    Some(format!("* {}:{text}", condition.type_))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn c(type_: &str, status: Status, message: &str) -> Condition {
        condition(
            type_,
            status,
            &format!("Reason{type_}"),
            message,
            Timestamp::UNIX_EPOCH,
            None,
        )
    }

    fn check(conditions: &[Condition], how: &Summary<'_>, expect: (&str, &str, &str)) {
        let got = summary(conditions, how, Timestamp::UNIX_EPOCH, Some(1));
        assert_eq!((got.status.as_str(), got.reason.as_str(), got.message.as_str()), expect);
    }

    #[test]
    fn issues_then_unknown_in_the_users_order_infos_left_out() {
        let how = Summary::new("Ready", &["A", "B", "C", "D"]);
        let have = [
            c("C", Status::False, "c is bad"),
            c("A", Status::Unknown, ""),
            c("B", Status::True, "fine"),
        ];
        check(
            &have,
            &how,
            (
                "False",
                "IssuesReported",
                "* A: ReasonA\n* C: c is bad\n* D: Condition not yet reported",
            ),
        );
    }

    #[test]
    fn all_well_shows_infos_that_say_something() {
        let how = Summary {
            reasons: Reasons {
                issue: "NotReady",
                unknown: "ReadyUnknown",
                info: "Ready",
            },
            ..Summary::new("Ready", &["A", "B"])
        };
        check(
            &[c("A", Status::True, "two\nlines"), c("B", Status::True, "")],
            &how,
            ("True", "Ready", "* A:\n  * two\n  * lines"),
        );
    }

    #[test]
    fn missing_conditions_may_be_ignored() {
        let how = Summary {
            ignore_if_missing: &["B"],
            ..Summary::new("Ready", &["A", "B"])
        };
        check(&[c("A", Status::True, "")], &how, ("True", "InfoReported", ""));
        let nothing = Summary {
            ignore_if_missing: &["A"],
            ..Summary::new("Ready", &["A"])
        };
        check(
            &[],
            &nothing,
            ("Unknown", "NotYetReported", "Condition not yet reported"),
        );
    }

    #[test]
    fn negative_types_and_overrides_count() {
        let instead = [c("A", Status::True, "shown instead")];
        let how = Summary {
            negative: &["Deleting"],
            overrides: &instead,
            ..Summary::new("Ready", &["Deleting", "A"])
        };
        check(
            &[c("Deleting", Status::False, ""), c("A", Status::False, "hidden")],
            &how,
            ("True", "InfoReported", "* A: shown instead"),
        );
        check(
            &[c("Deleting", Status::True, "draining"), c("A", Status::True, "")],
            &how,
            ("False", "IssuesReported", "* Deleting: draining"),
        );
    }

    #[test]
    fn lines_can_be_transformed_and_weights_changed() {
        let shout = |lines: Vec<String>| lines.iter().map(|l| l.to_uppercase()).collect();
        let soft = |c: &Condition| {
            if c.type_ == "A" {
                Priority::Info
            } else {
                Priority::Issue
            }
        };
        let how = Summary {
            transform: Some(&shout),
            priority: Some(&soft),
            ..Summary::new("Ready", &["A", "B"])
        };
        check(
            &[c("A", Status::False, "x"), c("B", Status::True, "y")],
            &how,
            ("False", "IssuesReported", "* B: Y"),
        );
    }
}
