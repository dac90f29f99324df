//! Conditions without generation and time, and the builder that adds these.

use std::borrow::Cow;

use jiff::Timestamp;

use crate::set::{carried, condition};
use crate::{Condition, Status, sort};

/// Status, reason and message of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// The status.
    pub status: Status,
    /// The reason, one word.
    pub reason: Cow<'static, str>,
    /// The message, for people.
    pub message: String,
}

impl Draft {
    /// A condition with any status.
    pub fn new(status: Status, reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self {
            status,
            reason: reason.into(),
            message: message.into(),
        }
    }

    /// A condition with status True.
    pub fn yes(reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self::new(Status::True, reason, message)
    }

    /// A condition with status False.
    pub fn no(reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self::new(Status::False, reason, message)
    }

    /// A condition with status Unknown.
    pub fn unknown(reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self::new(Status::Unknown, reason, message)
    }

    /// The draft of a stored condition, to write it again.
    pub fn of(stored: &Condition) -> Self {
        Self::new(
            Status::parse(&stored.status),
            stored.reason.clone(),
            stored.message.clone(),
        )
    }

    /// Whether a stored condition has the same status, reason and message.
    pub fn is_said_by(&self, stored: &Condition) -> bool {
        stored.status == self.status.as_str() && stored.reason == self.reason && stored.message == self.message
    }

    /// The condition to write. Its transition time changes only if the status differs from that in `previous`.
    pub fn stamp(self, type_: &str, previous: &[Condition], generation: Option<i64>, now: Timestamp) -> Condition {
        let new = condition(type_, self.status, &self.reason, self.message, now, generation);
        carried(previous, new)
    }
}

/// Builds the conditions that one controller owns on one object.
#[derive(Debug)]
pub struct Builder<'a> {
    previous: &'a [Condition],
    generation: Option<i64>,
    now: Timestamp,
    built: Vec<Condition>,
}

impl<'a> Builder<'a> {
    /// A builder that takes transition times from the object's existing conditions.
    pub fn new(previous: &'a [Condition], generation: Option<i64>, now: Timestamp) -> Self {
        Self {
            previous,
            generation,
            now,
            built: Vec::new(),
        }
    }

    /// Adds a condition.
    pub fn set(&mut self, type_: &str, draft: Draft) -> &mut Self {
        self.built
            .push(draft.stamp(type_, self.previous, self.generation, self.now));
        self
    }

    /// The conditions, in the common order.
    pub fn done(mut self) -> Vec<Condition> {
        sort(&mut self.built);
        self.built
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn only_another_status_moves_the_transition_time() {
        let mut first = Builder::new(&[], Some(1), at(10));
        first
            .set("B", Draft::yes("Fine", ""))
            .set("A", Draft::no("Bad", "because"));
        let first = first.done();
        let mut second = Builder::new(&first, Some(2), at(20));
        second
            .set("A", Draft::no("Worse", ""))
            .set("B", Draft::unknown("Lost", ""));
        let second = second.done();
        let state = |c: &Condition| {
            (
                c.type_.clone(),
                c.last_transition_time.0.as_second(),
                c.observed_generation,
            )
        };
        assert_eq!(
            second.iter().map(state).collect::<Vec<_>>(),
            [("A".to_owned(), 10, Some(2)), ("B".to_owned(), 20, Some(2)),]
        );
        assert_eq!(Draft::of(&second[0]), Draft::no("Worse", ""));
    }

    #[test]
    fn an_odd_status_is_unknown() {
        assert_eq!(Status::parse("True"), Status::True);
        assert_eq!(Status::parse("true"), Status::Unknown);
    }
}
