//! Kubernetes versions as topologies compare them.
//!
//! Build metadata counts (`v1.31.2+vmware.2` is newer than `+vmware.1`), unlike in plain semantic versioning.

use semver::Version;

/// Reads `v1.31.2` or `1.31.2`.
pub fn parse(text: &str) -> Option<Version> {
    let bare = text.strip_prefix('v').unwrap_or(text);
    Version::parse(bare).ok()
}

/// The form every generated object carries: with a leading `v`.
pub fn canonical(text: &str) -> String {
    if text.is_empty() || text.starts_with('v') {
        text.to_owned()
    } else {
        format!("v{text}")
    }
}

/// Whether `a` is older than `b`; versions that cannot be read are never older.
pub fn older(a: &str, b: &str) -> bool {
    match (parse(a), parse(b)) {
        (Some(a), Some(b)) => a < b,
        _ => false,
    }
}

/// How many minor releases lie between two versions of one major release; another major counts as many.
pub fn minors_between(from: &Version, to: &Version) -> u64 {
    if from.major == to.major {
        to.minor.saturating_sub(from.minor)
    } else {
        u64::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // TO-205
    #[test]
    fn adds_the_leading_v() {
        assert_eq!(canonical("1.28.0"), "v1.28.0");
        assert_eq!(canonical("v1.28.0"), "v1.28.0");
    }

    // TO-305
    #[test]
    fn build_metadata_counts() {
        assert!(older("v1.31.2+vmware.1", "v1.31.2+vmware.2"));
        assert!(older("v1.31.2-rc.1", "v1.31.2"));
        assert!(!older("v1.31.2", "v1.31.2"));
        assert!(!older("x", "v1.31.2"));
    }
}
