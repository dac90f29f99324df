//! Changes of the member list that preserve the quorum.

/// Members with a vote that must agree for the cluster to take writes.
pub fn needed(voters: usize) -> usize {
    voters / 2 + 1
}

/// True when enough of the voters are healthy.
pub fn holds(voters: usize, healthy: usize) -> bool {
    voters > 0 && healthy >= needed(voters)
}

/// True when the cluster has a quorum after the removal of one member that is `removed_is_healthy`.
///
/// Removing the last voter is never safe.
pub fn holds_after_removal(voters: usize, healthy: usize, removed_is_healthy: bool) -> bool {
    let Some(left) = voters.checked_sub(1).filter(|left| *left > 0) else {
        return false;
    };
    holds(left, healthy.saturating_sub(usize::from(removed_is_healthy)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_majority_is_needed() {
        let table: Vec<usize> = (1..=5).map(needed).collect();
        assert_eq!(table, [1, 2, 2, 3, 3]);
        assert!(!holds(0, 0));
    }

    #[test]
    fn removals_are_judged_by_what_is_left() {
        assert!(holds_after_removal(3, 3, true));
        assert!(holds_after_removal(3, 2, false));
        assert!(!holds_after_removal(3, 2, true));
        assert!(holds_after_removal(2, 1, false));
        assert!(!holds_after_removal(2, 1, true));
        assert!(!holds_after_removal(1, 1, true));
    }
}
