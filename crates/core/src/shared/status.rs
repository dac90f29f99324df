//! Building status conditions: what did not change keeps its transition time.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use windlass_api::Condition;
use windlass_conditions::{carried, sort};

/// Status, reason and message of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// True, False or Unknown.
    pub status: &'static str,
    /// One word.
    pub reason: String,
    /// For people.
    pub message: String,
}

impl Verdict {
    pub(crate) fn yes(reason: &str, message: impl Into<String>) -> Self {
        Self {
            status: "True",
            reason: reason.to_owned(),
            message: message.into(),
        }
    }

    pub(crate) fn no(reason: &str, message: impl Into<String>) -> Self {
        Self {
            status: "False",
            reason: reason.to_owned(),
            message: message.into(),
        }
    }

    pub(crate) fn unknown(reason: &str, message: impl Into<String>) -> Self {
        Self {
            status: "Unknown",
            reason: reason.to_owned(),
            message: message.into(),
        }
    }
}

/// The conditions one controller owns on one object.
pub(crate) struct Conditions<'a> {
    previous: &'a [Condition],
    generation: Option<i64>,
    now: Timestamp,
    built: Vec<Condition>,
}

impl<'a> Conditions<'a> {
    pub(crate) fn new(previous: &'a [Condition], generation: Option<i64>, now: Timestamp) -> Self {
        Self {
            previous,
            generation,
            now,
            built: Vec::new(),
        }
    }

    /// Adds a condition. Its transition time is that of the previous one unless the status changed.
    pub(crate) fn set(&mut self, type_: &str, verdict: Verdict) -> &mut Self {
        let new = Condition {
            type_: type_.to_owned(),
            status: verdict.status.to_owned(),
            reason: verdict.reason,
            message: verdict.message,
            observed_generation: self.generation,
            last_transition_time: Time(self.now),
        };
        self.built.push(carried(self.previous, new));
        self
    }

    /// The conditions, in the order that all objects have them in.
    pub(crate) fn done(mut self) -> Vec<Condition> {
        sort(&mut self.built);
        self.built
    }
}

/// `X`, `X and Y`.
pub(crate) fn and(words: &[String]) -> String {
    words.join(" and ")
}
