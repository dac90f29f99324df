//! The parts of plans and their results that the driver reads, common to all controllers.

use std::time::Duration;

use crate::controller::Outcome;
use crate::error::ReconcileError;
use crate::events::EventType;

/// The result of `plan`: a plan, or a question about missing facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision<P, Q> {
    /// The plan, to be applied.
    Plan(P),
    /// A question. The driver calls [`Controller::answer`](crate::Controller::answer), which reads the facts, and then `plan`
    /// again.
    Ask(Q),
}

impl<P, Q> From<P> for Decision<P, Q> {
    fn from(plan: P) -> Self {
        Self::Plan(plan)
    }
}

/// The question type of controllers whose `observe` reads everything at once. It has no values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoQuestion {}

/// A controller's decision. Every controller's `Plan` has the fields `actions`, `notes`, `requeue` and `blocked`, as far as it
/// needs them. The driver reads them through this trait.
pub trait Plan: Send + Sync {
    /// The reasons for the plan's actions, or for taking none.
    fn notes(&self) -> &[Note] {
        &[]
    }

    /// When to reconcile again without an event or a deadline. For facts that can only be polled.
    fn requeue(&self) -> Option<Duration> {
        None
    }

    /// The obstacle that keeps the plan from going further.
    fn blocked(&self) -> Option<Blocked> {
        None
    }
}

impl Plan for () {}

/// The result of applying a plan.
pub trait Done: Send + Sync {
    /// The first action that failed; later actions were not tried.
    fn failed(&self) -> Option<&ReconcileError>;
}

impl Done for () {
    fn failed(&self) -> Option<&ReconcileError> {
        None
    }
}

impl Done for Option<ReconcileError> {
    fn failed(&self) -> Option<&ReconcileError> {
        self.as_ref()
    }
}

impl Done for Result<(), ReconcileError> {
    fn failed(&self) -> Option<&ReconcileError> {
        self.as_ref().err()
    }
}

/// A reason for a part of the plan. The driver logs a note if the object's previous reconcile did not have it. It emits the event
/// of a note that names what the plan does after the plan was applied, and other events at once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Note {
    /// One sentence.
    pub message: String,
    /// The event that shows it to users.
    pub event: Option<NoteEvent>,
}

/// The event of a [`Note`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NoteEvent {
    /// Normal or Warning.
    pub kind: EventType,
    /// Reason in CamelCase.
    pub reason: &'static str,
    /// Whether it counts before the plan was applied.
    pub at_once: bool,
}

impl Note {
    /// A note for the log.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            event: None,
        }
    }

    /// A note that is also an event about the reconciled object: a Warning names an obstacle, and a Normal event what the plan does.
    pub fn event(kind: EventType, reason: &'static str, message: impl Into<String>) -> Self {
        let at_once = kind == EventType::Warning;
        Self::with_event(kind, reason, message, at_once)
    }

    /// A note with a Normal event that names a fact, which holds whether or not the plan can be applied. For what the status records:
    /// a plan that comes after the status no longer has the note.
    pub fn fact(reason: &'static str, message: impl Into<String>) -> Self {
        Self::with_event(EventType::Normal, reason, message, true)
    }

    fn with_event(kind: EventType, reason: &'static str, message: impl Into<String>, at_once: bool) -> Self {
        let event = NoteEvent { kind, reason, at_once };
        Self {
            message: message.into(),
            event: Some(event),
        }
    }
}

/// An obstacle that a plan cannot pass, and what ends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// A word from a small closed set: a metric label.
    pub reason: &'static str,
    /// A sentence for the person who can act: object, field, expectation, next step.
    pub message: String,
    /// What ends the obstacle.
    pub until: Until,
}

/// What ends a [`Blocked`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// An event. The obstacle is an object that is watched.
    Event,
    /// Time. The obstacle is polled.
    After(Duration),
    /// Something that no watch shows: retried with backoff, and reported as an error.
    Backoff,
}

impl Blocked {
    /// Blocked, retried with backoff: the reconcile counts as failed.
    pub fn failed(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            until: Until::Backoff,
        }
    }

    fn outcome(self) -> Outcome {
        match self.until {
            Until::Event => Outcome::Settled,
            Until::After(after) => Outcome::RequeueAfter(after),
            Until::Backoff => Outcome::Failed(ReconcileError::new(self.reason, self.message)),
        }
    }
}

impl Outcome {
    /// The default outcome of a reconcile: a failed action comes first, then what blocks the plan, then its requeue.
    pub fn of(plan: &impl Plan, done: &impl Done) -> Self {
        Self::from_parts(done.failed(), plan.blocked(), plan.requeue())
    }

    fn from_parts(failed: Option<&ReconcileError>, blocked: Option<Blocked>, requeue: Option<Duration>) -> Self {
        let outcome = match failed {
            Some(error) => Self::Failed(error.clone()),
            None => blocked.map_or(Self::Settled, Blocked::outcome),
        };
        match requeue {
            Some(after) => outcome.within(after),
            None => outcome,
        }
    }

    /// The same outcome, but with a requeue after `after` at the latest.
    #[must_use]
    pub fn within(self, after: Duration) -> Self {
        self.or(Self::RequeueAfter(after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed(Option<Blocked>, Option<Duration>);

    impl Plan for Fixed {
        fn requeue(&self) -> Option<Duration> {
            self.1
        }

        fn blocked(&self) -> Option<Blocked> {
            self.0.clone()
        }
    }

    fn blocked(until: Until) -> Blocked {
        Blocked {
            reason: "Busy",
            message: "it is busy".to_owned(),
            until,
        }
    }

    #[test]
    fn a_failure_comes_before_an_obstacle_and_an_obstacle_before_a_requeue() {
        let second = Duration::from_secs;
        let plan = Fixed(Some(blocked(Until::Backoff)), Some(second(9)));
        let failed = Some(ReconcileError::new("Conflict", "changed"));
        let outcome = |plan: &Fixed, done: &Option<ReconcileError>| format!("{:?}", Outcome::of(plan, done));
        assert!(outcome(&plan, &failed).contains("Conflict") && outcome(&plan, &failed).contains("9s"));
        assert!(outcome(&plan, &None).contains("Busy") && outcome(&plan, &None).contains("9s"));
        let plan = Fixed(Some(blocked(Until::After(second(5)))), Some(second(9)));
        assert_eq!(outcome(&plan, &None), "RequeueAfter(5s)");
        let plan = Fixed(Some(blocked(Until::Event)), Some(second(9)));
        assert_eq!(outcome(&plan, &None), "RequeueAfter(9s)");
        assert_eq!(outcome(&Fixed(None, None), &None), "Settled");
    }

    #[test]
    fn a_failure_keeps_the_earliest_requeue() {
        let second = Duration::from_secs;
        let failed = || Outcome::Failed(ReconcileError::new("Conflict", "changed"));
        let most = |outcome: Outcome| match outcome {
            Outcome::Failed(error) => error.most(),
            other => panic!("{other:?}"),
        };
        let requeue = || Outcome::RequeueAfter(second(7));
        assert_eq!(most(requeue().or(failed())), Some(second(7)));
        assert_eq!(most(failed().within(second(9)).or(requeue())), Some(second(7)));
        assert_eq!(
            most(failed().within(second(9)).or(failed().within(second(8)))),
            Some(second(8))
        );
        assert_eq!(most(failed().or(failed().within(second(8)))), Some(second(8)));
        assert_eq!(most(failed().or(Outcome::Settled)), None);
    }
}
