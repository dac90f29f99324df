//! What keeps a declared provider from going further. Plain data: reads, plans and writes all report obstacles in these words.

use std::time::Duration;

use jiff::SignedDuration;
use windlass_kit::Until;

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

    /// As the driver reads it.
    pub fn for_driver(&self) -> windlass_kit::Blocked {
        windlass_kit::Blocked {
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
