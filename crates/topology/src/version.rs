//! Kubernetes versions as topologies compare them.
//!
//! Build metadata counts (`v1.31.2+vmware.2` is newer than `+vmware.1`), unlike in plain semantic versioning. Words in it can be
//! anything, such as hashes: builds with different words differ, and neither is older.

use std::cmp::Ordering;

use semver::Version;
use windlass_meta::{KubernetesVersion, compare_builds};

/// Reads `v1.31.2`, `1.31.2` or `1.31`: control planes of some providers have no patch.
pub fn parse(text: &str) -> Option<Version> {
    KubernetesVersion::parse_tolerant(text)
        .ok()
        .map(KubernetesVersion::semantic)
}

/// Whether a text is a version with all its parts, as topologies have them.
pub fn is_full(text: &str) -> bool {
    text.parse::<KubernetesVersion>().is_ok()
}

/// The form every generated object carries: with a leading `v`.
pub fn canonical(text: &str) -> String {
    if text.is_empty() || text.starts_with('v') {
        text.to_owned()
    } else {
        format!("v{text}")
    }
}

/// The order of two versions; none for different builds of one release that have no order.
pub fn compare(a: &Version, b: &Version) -> Option<Ordering> {
    match a.cmp_precedence(b) {
        Ordering::Equal => compare_builds(&a.build, &b.build),
        different => Some(different),
    }
}

/// Whether `a` is older than `b`; versions that cannot be read are never older.
pub fn older(a: &str, b: &str) -> bool {
    match (parse(a), parse(b)) {
        (Some(a), Some(b)) => compare(&a, &b) == Some(Ordering::Less),
        _ => false,
    }
}

/// Whether `a` has to be brought to `b`: it is older, or another build of the same release without an order.
pub fn behind(a: &str, b: &str) -> bool {
    match (parse(a), parse(b)) {
        (Some(a), Some(b)) => is_behind(&a, &b),
        _ => false,
    }
}

/// [`behind`] for versions that were read.
pub fn is_behind(a: &Version, b: &Version) -> bool {
    matches!(compare(a, b), None | Some(Ordering::Less))
}

/// The version that is furthest behind on the way to `target`.
pub fn furthest_behind<'a>(versions: impl Iterator<Item = &'a str>, target: &str) -> Option<&'a str> {
    versions.reduce(|a, b| if b != target && behind(b, a) { b } else { a })
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
        assert!(older("v1.31.2+vmware.9", "v1.31.2+vmware.10"));
        assert!(older("v1.31.2", "v1.31.2+a"));
    }

    #[test]
    fn control_planes_may_have_no_patch() {
        assert!(!behind("1.31", "v1.31.0"));
        assert!(behind("1.31", "v1.32.0"));
        assert!(is_full("v1.31.0+a") && !is_full("v1.31"));
    }

    #[test]
    fn builds_with_different_words_have_no_order() {
        let (one, other) = ("v1.31.2+rke2r9", "v1.31.2+rke2r10");
        for (a, b) in [(one, other), (other, one)] {
            assert!(!older(a, b));
            assert!(behind(a, b));
        }
        assert!(!behind(one, one));
        assert!(!behind("v1.31.3", "v1.31.2+x"));
        assert_eq!(furthest_behind([one, other].into_iter(), other), Some(one));
        assert_eq!(furthest_behind([other, one].into_iter(), other), Some(one));
        assert_eq!(furthest_behind(["v1.31.1", one].into_iter(), other), Some("v1.31.1"));
    }
}
