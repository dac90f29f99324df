//! Decides what follows an attempt to connect, or the end of a connection. Pure.

use std::time::Duration;

use windlass_controller_runtime::transport::Refusal;

/// An API server that was connected for so long starts again with the shortest delays.
pub(crate) const SETTLED: Duration = Duration::from_hours(1);

/// What follows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The connection was lost or ended on purpose: connect again at once.
    Again,
    /// The attempt failed: wait.
    Wait(String),
    /// An address is denied: wait, longer if that comes `again` soon.
    Deny { refusal: Refusal, again: bool },
    /// The API server sent too much: wait for long.
    Punish(Refusal),
}

/// What follows an attempt that `failed`, or a connection that `lasted` for so long. A refusal counts in both cases: a name may lead to an
/// allowed address at the attempt, and to a denied one when a watch opens its own connection.
pub(crate) fn next(failed: Option<String>, refusal: Option<Refusal>, lasted: Duration) -> Next {
    match (refusal, failed) {
        (Some(refusal @ Refusal::Excess(_)), _) => Next::Punish(refusal),
        (Some(refusal @ Refusal::Address(_)), _) => Next::Deny {
            refusal,
            again: lasted < SETTLED,
        },
        (None, Some(why)) => Next::Wait(why),
        (None, None) => Next::Again,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_delays_the_next_attempt_also_after_a_connection() {
        let (failed, short) = (|| Some("no".to_owned()), Duration::from_secs(1));
        let address = || Refusal::Address("denied".to_owned());
        let excess = || Refusal::Excess("too much".to_owned());
        let denied = |again: bool| Next::Deny {
            refusal: address(),
            again,
        };
        assert_eq!(next(None, None, short), Next::Again);
        assert_eq!(next(failed(), None, Duration::ZERO), Next::Wait("no".to_owned()));
        assert_eq!(next(failed(), Some(address()), Duration::ZERO), denied(true));
        assert_eq!(next(None, Some(address()), short), denied(true));
        assert_eq!(next(None, Some(address()), SETTLED), denied(false));
        for failed in [failed(), None] {
            assert_eq!(next(failed, Some(excess()), short), Next::Punish(excess()));
        }
    }
}
