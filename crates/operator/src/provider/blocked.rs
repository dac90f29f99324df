//! What keeps a declared provider from going further. Plain data: reads, plans and writes all report obstacles in these words.

use std::time::Duration;

use jiff::SignedDuration;
use windlass_controller_runtime::Until;

use crate::awaited::Awaited;

/// Delay before the next reconcile when a watch could not be started.
pub const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// The longest delay before a retry when no watch shows that the obstacle is gone, as with a repository.
pub const TRY_WITHIN: Duration = Duration::from_mins(5);
/// Delay before a release is tried again that could not be installed.
pub const TRY_AGAIN: SignedDuration = SignedDuration::from_mins(10);

/// An obstacle, with the condition that reports it and the objects whose change may remove it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The step that cannot be taken. It chooses the condition that reports the obstacle.
    pub stage: Stage,
    /// The reason of the condition and of the event.
    pub reason: &'static str,
    /// The obstacle, and what to do about it.
    pub message: String,
    /// What ends it.
    pub until: Until,
    /// Objects whose change also leads to a reconcile.
    pub awaited: Vec<Awaited>,
}

impl Blocked {
    /// An obstacle that ends with an event.
    pub fn new(stage: Stage, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            stage,
            reason,
            message: message.into(),
            until: Until::Event,
            awaited: Vec::new(),
        }
    }

    /// With more objects whose change leads to a reconcile.
    #[must_use]
    pub fn awaiting(mut self, awaited: impl IntoIterator<Item = Awaited>) -> Self {
        self.awaited.extend(awaited);
        self
    }

    /// With another end.
    #[must_use]
    pub fn until(mut self, until: Until) -> Self {
        self.until = until;
        self
    }

    /// Both obstacles as one, which is reported as this one and ends with the first of the two.
    #[must_use]
    pub fn and(self, other: &Self) -> Self {
        let until = match (self.until, other.until) {
            (Until::Backoff, _) | (_, Until::Backoff) => Until::Backoff,
            (Until::After(one), Until::After(another)) => Until::After(one.min(another)),
            (after @ Until::After(_), Until::Event) | (Until::Event, after @ Until::After(_)) => after,
            (Until::Event, Until::Event) => Until::Event,
        };
        let message = format!("{}; {}", self.message, other.message);
        let both = Self { message, until, ..self };
        both.awaiting(other.awaited.iter().cloned())
    }

    /// As the driver reads it.
    pub fn for_driver(&self) -> windlass_controller_runtime::Blocked {
        windlass_controller_runtime::Blocked {
            reason: self.reason,
            message: self.message.clone(),
            until: self.until,
        }
    }
}

/// The step that an obstacle prevents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The preflight checks: nothing is done before they pass.
    Preflight,
    /// Installing, or replacing the installed release.
    Install,
    /// Scaling up after a pause.
    Unpause,
    /// Removing.
    Remove,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_obstacles_end_with_the_first_of_them() {
        let (soon, late) = (Until::After(LOOK_AGAIN), Until::After(TRY_WITHIN));
        let check = |one: Until, another: Until, expect: Until| {
            for (one, another) in [(one, another), (another, one)] {
                let first = Blocked::new(Stage::Preflight, "X", "x").until(one);
                let both = first.and(&Blocked::new(Stage::Install, "Y", "y").until(another));
                assert_eq!(both, Blocked::new(Stage::Preflight, "X", "x; y").until(expect));
            }
        };
        check(Until::Event, Until::Event, Until::Event);
        check(Until::Event, late, late);
        check(soon, late, soon);
        check(Until::Event, Until::Backoff, Until::Backoff);
        check(late, Until::Backoff, Until::Backoff);
    }
}
