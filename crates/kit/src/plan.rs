//! What the driver reads of a plan and of what became of it: the words that all controllers share.

use std::time::Duration;

use crate::controller::Outcome;
use crate::error::ReconcileError;
use crate::events::EventType;

/// What `plan` answers: a plan, or a question about facts that it lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision<P, Q> {
    /// The plan, to be applied.
    Plan(P),
    /// Facts are missing. The driver has [`Controller::answer`](crate::Controller::answer) read them and calls `plan` again.
    Ask(Q),
}

impl<P, Q> From<P> for Decision<P, Q> {
    fn from(plan: P) -> Self {
        Self::Plan(plan)
    }
}

/// The question of controllers whose `observe` reads everything at once: there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoQuestion {}

/// What a controller decided. Every controller's `Plan` has the fields `actions`, `notes`, `requeue` and `blocked`, as far as it needs
/// them; this is how the driver reads them.
pub trait Plan: Send + Sync {
    /// Why the plan is as it is.
    fn notes(&self) -> &[Note] {
        &[]
    }

    /// When to reconcile again although no event came and no deadline passed: for what can only be polled.
    fn requeue(&self) -> Option<Duration> {
        None
    }

    /// What keeps the plan from going further.
    fn blocked(&self) -> Option<Blocked> {
        None
    }
}

impl Plan for () {}

/// What became of a plan.
pub trait Done: Send + Sync {
    /// The first action that failed; what came after it was not tried.
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

/// One reason of a plan. The driver logs a note when the previous reconcile of the object did not have it, and emits the event of a note
/// after its plan was applied.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Note {
    /// One sentence.
    pub message: String,
    /// The event that says it to people.
    pub event: Option<NoteEvent>,
}

/// The event of a [`Note`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NoteEvent {
    /// Normal or Warning.
    pub kind: EventType,
    /// Reason in CamelCase.
    pub reason: &'static str,
}

impl Note {
    /// A note for the log.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            event: None,
        }
    }

    /// A note that is also an event about the reconciled object.
    pub fn event(kind: EventType, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            event: Some(NoteEvent { kind, reason }),
        }
    }
}

/// Why a plan cannot go further, and what lets it go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// A word from a small closed set: a metric label.
    pub reason: &'static str,
    /// A sentence for the person who can act: object, field, expectation, next step.
    pub message: String,
    /// What lets it go on.
    pub until: Until,
}

/// What ends a [`Blocked`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// An event. The obstacle is an object that is watched.
    Event,
    /// Time. The obstacle is polled.
    After(Duration),
    /// Something that no watch shows: tried again with growing delay, and reported as an error.
    Backoff,
}

impl Blocked {
    /// Blocked with growing delay between attempts: the reconcile counts as failed.
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
    /// How a reconcile ends, unless its controller says otherwise: a failed action comes first, then what blocks the plan, then its
    /// requeue.
    pub fn of(plan: &impl Plan, done: &impl Done) -> Self {
        Self::from_parts(done.failed(), plan.blocked(), plan.requeue())
    }

    fn from_parts(failed: Option<&ReconcileError>, blocked: Option<Blocked>, requeue: Option<Duration>) -> Self {
        if let Some(error) = failed {
            return Self::Failed(error.clone());
        }
        let later = requeue.map_or(Self::Settled, Self::RequeueAfter);
        blocked.map_or(Self::Settled, Blocked::outcome).or(later)
    }

    /// The same, at `after` at the latest.
    #[must_use]
    pub fn within(self, after: Duration) -> Self {
        match self {
            Self::Failed(error) => Self::Failed(error.within(after)),
            other => other.or(Self::RequeueAfter(after)),
        }
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
        assert!(outcome(&plan, &failed).contains("Conflict"));
        assert!(outcome(&plan, &None).contains("Busy"));
        let plan = Fixed(Some(blocked(Until::After(second(5)))), Some(second(9)));
        assert_eq!(outcome(&plan, &None), "RequeueAfter(5s)");
        let plan = Fixed(Some(blocked(Until::Event)), Some(second(9)));
        assert_eq!(outcome(&plan, &None), "RequeueAfter(9s)");
        assert_eq!(outcome(&Fixed(None, None), &None), "Settled");
    }
}
