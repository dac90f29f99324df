//! Changes of the member list that preserve the quorum.

/// Members with a vote that must agree for the cluster to take writes.
pub fn needed(voters: usize) -> usize {
    voters / 2 + 1
}

/// True when enough of the voters are healthy.
pub fn holds(voters: usize, healthy: usize) -> bool {
    voters > 0 && healthy >= needed(voters)
}

/// Why etcd does not let a voter leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Too many of the others have never started.
    #[error("etcdserver: re-configuration failed due to not enough started members")]
    NotEnoughStarted,
    /// Too many of the others are not connected.
    #[error("etcdserver: unhealthy cluster")]
    Unhealthy,
}

/// The voters that stay when one leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Staying {
    /// How many there are.
    pub voters: usize,
    /// How many of them have a name.
    pub started: usize,
    /// How many of them are connected.
    pub connected: usize,
}

/// Whether a member lets another voter leave. It refuses what would cost the quorum, with `--strict-reconfig-check` as is the default. A
/// voter that is not connected is no part of the quorum that works. It only has to leave enough members that have started
/// (`mayRemoveMember` in etcd's server.go, where a member counts as connected after five seconds).
///
/// # Errors
/// What etcd answers.
pub fn may_leave(leaving_is_connected: bool, staying: Staying) -> Result<(), Refused> {
    let needed = needed(staying.voters);
    if staying.started < needed {
        return Err(Refused::NotEnoughStarted);
    }
    if leaving_is_connected && staying.connected < needed {
        return Err(Refused::Unhealthy);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_voter_leaves_when_the_others_have_a_quorum() {
        let staying = |voters, started, connected| Staying {
            voters,
            started,
            connected,
        };
        let table = [
            (true, staying(2, 2, 2), Ok(())),
            (true, staying(1, 1, 1), Ok(())),
            (true, staying(2, 2, 1), Err(Refused::Unhealthy)),
            (false, staying(2, 2, 1), Ok(())),
            (true, staying(1, 1, 0), Err(Refused::Unhealthy)),
            (true, staying(2, 1, 1), Err(Refused::NotEnoughStarted)),
            (true, staying(0, 0, 0), Err(Refused::NotEnoughStarted)),
        ];
        for (connected, staying, expected) in table {
            assert_eq!(may_leave(connected, staying), expected, "{connected} {staying:?}");
        }
    }

    #[test]
    fn a_majority_is_needed() {
        let table: Vec<usize> = (1..=5).map(needed).collect();
        assert_eq!(table, [1, 2, 2, 3, 3]);
        assert!(!holds(0, 0));
    }
}
