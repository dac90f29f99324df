//! The time limits of the deletion's stages.

use jiff::{SignedDuration, Timestamp};
use windlass_controller_runtime::Moment;

/// For how long a stage is waited for.
pub(super) struct Limit {
    /// The field of `spec.deletion` that sets the time.
    pub(super) field: &'static str,
    /// The time in seconds; none and zero mean that there is no limit.
    pub(super) seconds: Option<i32>,
    /// The beginning of the time.
    pub(super) since: Timestamp,
}

impl Limit {
    /// The time; none without a limit.
    fn duration(&self) -> Option<SignedDuration> {
        let seconds = self.seconds.filter(|seconds| *seconds > 0)?;
        Some(SignedDuration::from_secs(i64::from(seconds)))
    }

    /// Whether the time is over.
    pub(super) fn has_passed(&self, now: &Moment) -> bool {
        self.duration().is_some_and(|limit| now.elapsed(self.since, limit))
    }

    /// That the time is over.
    pub(super) fn passed(&self) -> String {
        let seconds = self.seconds.unwrap_or_default();
        format!("spec.deletion.{} ({seconds} s) has passed", self.field)
    }

    /// What the condition says while it is unknown whether the Machine has a Node.
    pub(super) fn waits_for_answer(&self, now: &Moment) -> String {
        let field = self.field;
        let end = self.duration().and_then(|limit| self.since.checked_add(limit).ok());
        let until = match end {
            Some(_) if self.has_passed(now) => String::new(),
            Some(end) => format!(", until {} (spec.deletion.{field})", written(end)),
            None => format!(": set spec.deletion.{field} for a limit"),
        };
        format!("Waiting for the workload cluster to tell whether the Machine has a Node{until}")
    }
}

/// An instant as the status of objects writes it.
pub(super) fn written(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
