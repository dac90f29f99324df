//! Decides when a connection is lost. Pure: probes and times are arguments.

use jiff::Timestamp;

/// The health of the connection to one workload cluster. It survives reconnects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// The time of the last probe.
    pub last_probe: Option<Timestamp>,
    /// The time of the last success.
    pub last_success: Option<Timestamp>,
    /// The number of failures since then.
    pub failures: u32,
    /// The time of the first of these failures, or since when no attempt could be made.
    pub failing_since: Option<Timestamp>,
    /// Why this process refuses the API server, if it does: its address is denied, or it sent too much.
    pub refused: Option<String>,
}

/// The result of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Probe {
    /// The server answered.
    Answered,
    /// The server does not accept our credentials (any more).
    Unauthorized,
    /// No answer, or not a usable one.
    Failed(String),
}

/// The consequence of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Keep the connection.
    Keep,
    /// The connection is lost: connect again.
    Disconnect,
}

impl Health {
    /// Records a probe over an existing connection.
    pub(crate) fn probed(&mut self, probe: &Probe, now: Timestamp, threshold: u32) -> Verdict {
        self.last_probe = Some(now);
        match probe {
            Probe::Answered => {
                self.last_success = Some(now);
                self.failures = 0;
                self.failing_since = None;
                Verdict::Keep
            }
            Probe::Unauthorized => {
                self.failed(now);
                Verdict::Disconnect
            }
            Probe::Failed(_) => {
                self.failed(now);
                if self.failures >= threshold {
                    Verdict::Disconnect
                } else {
                    Verdict::Keep
                }
            }
        }
    }

    /// Records that no attempt could be made, although the cluster may exist, or that a request between two probes was not answered.
    pub(crate) fn silent(&mut self, now: Timestamp) {
        self.failing_since.get_or_insert(now);
    }

    /// Records a failed attempt to connect.
    pub(crate) fn connect_failed(&mut self, now: Timestamp) {
        self.last_probe = Some(now);
        self.failed(now);
    }

    /// Records why the API server is refused.
    pub(crate) fn refuse(&mut self, why: &str) {
        self.refused = Some(why.to_owned());
    }

    /// Records that the API server is not refused any more. Whether there was a change.
    pub(crate) fn accept(&mut self) -> bool {
        self.refused.take().is_some()
    }

    fn failed(&mut self, now: Timestamp) {
        self.failures = self.failures.saturating_add(1);
        self.failing_since.get_or_insert(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn given_up_after_enough_failures_in_a_row() {
        let mut health = Health::default();
        let failed = Probe::Failed("no".to_owned());
        assert_eq!(health.probed(&Probe::Answered, at(0), 3), Verdict::Keep);
        assert_eq!(health.probed(&failed, at(1), 3), Verdict::Keep);
        assert_eq!(health.probed(&failed, at(2), 3), Verdict::Keep);
        assert_eq!(health.probed(&Probe::Answered, at(3), 3), Verdict::Keep);
        assert_eq!(health.failures, 0);
        for second in 4..6 {
            assert_eq!(health.probed(&failed, at(second), 3), Verdict::Keep);
        }
        assert_eq!(health.probed(&failed, at(6), 3), Verdict::Disconnect);
        assert_eq!(health.last_success, Some(at(3)));
        assert_eq!(health.last_probe, Some(at(6)));
    }

    #[test]
    fn refused_credentials_end_the_connection_at_once() {
        let mut health = Health::default();
        assert_eq!(health.probed(&Probe::Unauthorized, at(1), 5), Verdict::Disconnect);
    }

    #[test]
    fn failed_attempts_do_not_move_the_last_success() {
        let mut health = Health::default();
        health.probed(&Probe::Answered, at(1), 5);
        health.connect_failed(at(2));
        health.connect_failed(at(3));
        assert_eq!((health.last_success, health.failures), (Some(at(1)), 2));
        assert_eq!(health.failing_since, Some(at(2)));
        health.probed(&Probe::Answered, at(4), 5);
        assert_eq!(health.failing_since, None);
        health.silent(at(5));
        health.connect_failed(at(6));
        assert_eq!((health.failing_since, health.failures), (Some(at(5)), 1));
    }
}
