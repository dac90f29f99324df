//! What is known of a workload cluster.

use jiff::{SignedDuration, Timestamp};

use crate::health::Health;

/// What is known of a workload cluster, or of something in it. "Cannot tell" is not "is not there": a plan has to match on all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Workload<T> {
    /// Nothing was tried since this process started, or the infrastructure is not provisioned yet. Nothing is known.
    NotTried(String),
    /// The cluster does not answer, or its kubeconfig is missing. What is in it now is unknown.
    Down(Outage),
    /// The cluster answers, and this was found.
    Up(T),
}

/// How long a workload cluster may be out of reach before conditions report it. Counts from its last answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GracePeriods {
    /// Until the condition RemoteConnectionProbe of the Cluster is false.
    pub connection: SignedDuration,
    /// Until conditions that come from the workload cluster are unknown.
    pub conditions: SignedDuration,
}

impl Default for GracePeriods {
    /// Those of Cluster API v1.14.
    fn default() -> Self {
        Self {
            connection: SignedDuration::from_secs(50),
            conditions: SignedDuration::from_mins(5),
        }
    }
}

/// Since when, and why, a workload cluster does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    /// The first failure since the last success, as far as this process knows; the last success when nothing has failed since. A
    /// missing kubeconfig is a failure.
    pub since: Timestamp,
    /// The last success, as far as this process knows.
    pub last_success: Option<Timestamp>,
    /// The failure, for people.
    pub why: String,
    /// When it is reported.
    pub grace: GracePeriods,
}

impl<T> Workload<T> {
    /// What is known while there is no connection, and why there is none.
    pub(crate) fn without_connection(health: &Health, why: String, grace: GracePeriods) -> Self {
        // A connection that was closed without a failure, such as for a new kubeconfig, is missing since its last success.
        match health.failing_since.or(health.last_success) {
            Some(since) => Self::Down(Outage {
                since,
                last_success: health.last_success,
                why,
                grace,
            }),
            None => Self::NotTried(why),
        }
    }

    /// Whether nothing is known of it yet.
    pub fn is_untried(&self) -> bool {
        matches!(self, Self::NotTried(_))
    }

    /// What was found, when the cluster answers.
    pub fn up(&self) -> Option<&T> {
        match self {
            Self::Up(found) => Some(found),
            Self::NotTried(_) | Self::Down(_) => None,
        }
    }

    /// Why nothing is known, when it is not.
    pub fn unknown(&self) -> Option<&str> {
        match self {
            Self::Up(_) => None,
            Self::NotTried(why) | Self::Down(Outage { why, .. }) => Some(why),
        }
    }

    /// Changes what was found.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Workload<U> {
        match self {
            Self::NotTried(why) => Workload::NotTried(why),
            Self::Down(outage) => Workload::Down(outage),
            Self::Up(found) => Workload::Up(f(found)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn check(failing_since: Option<i64>, last_success: Option<i64>, since: Option<i64>) {
        let health = Health {
            failing_since: failing_since.map(at),
            last_success: last_success.map(at),
            ..Health::default()
        };
        let known = Workload::<()>::without_connection(&health, "no".to_owned(), GracePeriods::default());
        let outage = since.map(|since| Outage {
            since: at(since),
            last_success: last_success.map(at),
            why: "no".to_owned(),
            grace: GracePeriods::default(),
        });
        assert_eq!(
            known,
            outage.map_or(Workload::NotTried("no".to_owned()), Workload::Down)
        );
    }

    #[test]
    fn a_cluster_is_down_since_its_first_failure_or_its_last_success() {
        check(None, None, None);
        check(Some(5), None, Some(5));
        check(Some(5), Some(3), Some(5));
        check(None, Some(3), Some(3));
    }
}
