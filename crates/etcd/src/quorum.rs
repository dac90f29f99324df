//! Changes of the member list that preserve the quorum.

/// Members with a vote that must agree for the cluster to take writes.
pub fn needed(voters: usize) -> usize {
    voters / 2 + 1
}

/// True when enough of the voters are healthy.
pub fn holds(voters: usize, healthy: usize) -> bool {
    voters > 0 && healthy >= needed(voters)
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
}
