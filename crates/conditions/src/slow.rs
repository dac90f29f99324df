//! The message about objects whose deletion takes long.

use jiff::{SignedDuration, Timestamp};
use windlass_meta::Moment;

use crate::{Condition, listed};

/// The age from which a deletion counts as slow.
const SLOW: SignedDuration = SignedDuration::from_mins(15);
/// Parts of a drain message, and the causes that they indicate.
const CAUSES: [(&str, &str); 4] = [
    (
        "cannot evict pod as it would violate the pod's disruption budget.",
        "PodDisruptionBudgets",
    ),
    (
        "deletionTimestamp set, but still not removed from the Node",
        "Pods not terminating",
    ),
    ("failed to evict Pod", "Pod eviction errors"),
    ("waiting for completion", "Pods not completed yet"),
];

/// The deletion state of a Machine.
#[derive(Clone, Copy, Debug)]
pub struct Going<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its deletion timestamp.
    pub since: Option<Timestamp>,
    /// Its condition Deleting.
    pub deleting: Option<&'a Condition>,
}

/// `Machine a is in deletion since more than 15m`, with the causes from their drain messages; `None` if no deletion is slow.
pub fn slow_deletions<'a>(machines: impl IntoIterator<Item = Going<'a>>, now: &Moment) -> Option<String> {
    let slow: Vec<Going<'_>> = machines
        .into_iter()
        .filter(|machine| machine.since.is_some_and(|since| now.elapsed(since, SLOW)))
        .collect();
    let names: Vec<&str> = slow.iter().map(|machine| machine.name).collect();
    let (noun, verb) = match names.len() {
        0 => return None,
        1 => ("Machine", "is"),
        _ => ("Machines", "are"),
    };
    let mut line = format!("{noun} {} {verb} in deletion since more than 15m", listed(&names, 3));
    let draining = slow.iter().filter_map(|machine| machine.deleting);
    let draining = draining.filter(|condition| condition.reason == "DrainingNode");
    let messages: Vec<&str> = draining.map(|condition| condition.message.as_str()).collect();
    line.push_str(&causes_of_delay(&messages));
    Some(line)
}

/// `, delay likely due to PodDisruptionBudgets`, from the messages of drains; empty if they name no cause.
pub fn causes_of_delay(messages: &[&str]) -> String {
    let causes: Vec<&str> = CAUSES
        .iter()
        .filter(|(part, _)| messages.iter().any(|message| message.contains(part)))
        .map(|(_, cause)| *cause)
        .collect();
    if causes.is_empty() {
        return String::new();
    }
    format!(", delay likely due to {}", causes.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Status, condition};

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_second(minutes * 60).unwrap()
    }

    fn draining(message: &str) -> Condition {
        condition("Deleting", Status::True, "DrainingNode", message, at(0), None)
    }

    fn check(machines: &[(&str, i64, Option<&Condition>)], want: Option<&str>) {
        let going = machines.iter().map(|(name, since, deleting)| Going {
            name,
            since: Some(at(*since)),
            deleting: *deleting,
        });
        assert_eq!(slow_deletions(going, &Moment::at(at(20))).as_deref(), want);
    }

    #[test]
    fn only_what_takes_longer_than_a_quarter_of_an_hour_is_named() {
        check(&[("a", 6, None)], None);
        check(&[("a", 4, None)], Some("Machine a is in deletion since more than 15m"));
        check(
            &[("a", 0, None), ("b", 0, None), ("c", 0, None), ("d", 0, None)],
            Some("Machines a, b, c, ... (1 more) are in deletion since more than 15m"),
        );
    }

    #[test]
    fn causes_stand_once_and_in_one_order() {
        let completing = draining("* Pod p: waiting for completion");
        let budget = draining("* Pod q: cannot evict pod as it would violate the pod's disruption budget. x");
        check(
            &[
                ("a", 0, Some(&completing)),
                ("b", 0, Some(&budget)),
                ("c", 0, Some(&completing)),
            ],
            Some(
                "Machines a, b, c are in deletion since more than 15m, delay likely due to PodDisruptionBudgets, Pods \
                 not completed yet",
            ),
        );
    }
}
