//! Kubernetes versions.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize, de};

/// A Kubernetes version: `v1.32.1`, `1.32.1-rc.0`, `v1.32.1+build.7`.
///
/// Comparison follows semantic versioning, so build metadata does not count.
#[derive(Clone, Debug)]
pub struct KubernetesVersion {
    version: semver::Version,
}

/// Why a text is not a version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a version: expected MAJOR.MINOR.PATCH, such as \"v1.32.1\" ({reason})")]
pub struct ParseVersionError {
    text: String,
    reason: String,
}

impl KubernetesVersion {
    /// A release.
    pub const fn new(major: u64, minor: u64, patch: u64) -> Self {
        Self {
            version: semver::Version::new(major, minor, patch),
        }
    }

    /// Like parsing, but a missing minor or patch is zero: `1.32`, `v1`. What is short has no pre-release or build.
    pub fn parse_tolerant(text: &str) -> Result<Self, ParseVersionError> {
        let bare = text.trim();
        let bare = bare.strip_prefix('v').unwrap_or(bare);
        let core_end = bare.find(['-', '+']).unwrap_or(bare.len());
        let (core, tail) = bare.split_at(core_end);
        let mut parts: Vec<&str> = core
            .split('.')
            .map(|part| match part.trim_start_matches('0') {
                "" if !part.is_empty() => "0",
                stripped => stripped,
            })
            .collect();
        while parts.len() < 3 && tail.is_empty() {
            parts.push("0");
        }
        let whole = format!("{}{tail}", parts.join("."));
        semver::Version::parse(&whole)
            .map(|version| Self { version })
            .map_err(|error| ParseVersionError {
                text: text.to_owned(),
                reason: error.to_string(),
            })
    }

    /// As semantic version.
    pub fn semantic(self) -> semver::Version {
        self.version
    }

    /// The first number.
    pub fn major(&self) -> u64 {
        self.version.major
    }

    /// The second number.
    pub fn minor(&self) -> u64 {
        self.version.minor
    }

    /// The third number.
    pub fn patch(&self) -> u64 {
        self.version.patch
    }

    /// What follows `+`.
    pub fn build(&self) -> &str {
        self.version.build.as_str()
    }

    /// The order of two versions in which build metadata counts, too, as providers number their builds. `None` for builds of one release
    /// that have no order, see [`compare_builds`].
    pub fn compare_with_build(&self, other: &Self) -> Option<Ordering> {
        match self.cmp(other) {
            Ordering::Equal => compare_builds(self.build(), other.build()),
            different => Some(different),
        }
    }

    /// `v1.32`: how kubeadm and kubelet configuration, RBAC roles and images of a minor are named.
    pub fn major_minor(&self) -> String {
        format!("{}.{}", self.version.major, self.version.minor)
    }

    /// Whether both are of the same major and minor.
    pub fn same_minor(&self, other: &Self) -> bool {
        (self.major(), self.minor()) == (other.major(), other.minor())
    }

    /// Whether `self` is `major.minor` or later; pre-releases of that minor count as it.
    pub fn at_least_minor(&self, major: u64, minor: u64) -> bool {
        (self.major(), self.minor()) >= (major, minor)
    }
}

/// The order of the build metadata of two versions, part by part: `vmware.1` is older than `vmware.2`. Words in it can be anything, such
/// as hashes: builds with different words differ, and neither is older.
pub fn compare_builds(one: &str, other: &str) -> Option<Ordering> {
    let (mut one, mut other) = (one.split('.'), other.split('.'));
    let number = |part: &str| part.parse::<u64>().ok();
    loop {
        let parts = (
            one.next().filter(|part| !part.is_empty()),
            other.next().filter(|part| !part.is_empty()),
        );
        match parts {
            (None, None) => return Some(Ordering::Equal),
            (None, Some(_)) => return Some(Ordering::Less),
            (Some(_), None) => return Some(Ordering::Greater),
            (Some(a), Some(b)) if a == b => {}
            (Some(a), Some(b)) => match (number(a), number(b)) {
                (Some(a), Some(b)) if a == b => {}
                (Some(a), Some(b)) => return Some(a.cmp(&b)),
                (Some(_), None) => return Some(Ordering::Less),
                (None, Some(_)) => return Some(Ordering::Greater),
                (None, None) => return None,
            },
        }
    }
}

impl PartialEq for KubernetesVersion {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for KubernetesVersion {}

impl PartialOrd for KubernetesVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for KubernetesVersion {
    fn cmp(&self, other: &Self) -> Ordering {
        self.version.cmp_precedence(&other.version)
    }
}

impl FromStr for KubernetesVersion {
    type Err = ParseVersionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        semver::Version::parse(text.strip_prefix('v').unwrap_or(text))
            .map(|version| Self { version })
            .map_err(|error| ParseVersionError {
                text: text.to_owned(),
                reason: error.to_string(),
            })
    }
}

impl fmt::Display for KubernetesVersion {
    /// Always with the leading `v`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.version)
    }
}

impl Serialize for KubernetesVersion {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for KubernetesVersion {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> KubernetesVersion {
        text.parse().unwrap()
    }

    #[test]
    fn a_leading_v_is_optional_and_always_printed() {
        assert_eq!(version("1.32.1").to_string(), "v1.32.1");
        assert_eq!(version("v1.32.1-rc.0+b7").to_string(), "v1.32.1-rc.0+b7");
        assert_eq!(version("v1.32.1").major_minor(), "1.32");
    }

    #[test]
    fn what_is_no_version_says_so() {
        for text in ["", "v", "1.32", "vv1.32.0", "1.32.01", "latest", "1.2.3.4"] {
            assert!(text.parse::<KubernetesVersion>().is_err(), "{text}");
        }
        let error = "1.32".parse::<KubernetesVersion>().unwrap_err().to_string();
        assert!(
            error.contains("\"1.32\"") && error.contains("MAJOR.MINOR.PATCH"),
            "{error}"
        );
    }

    #[test]
    fn the_tolerant_parser_fills_in() {
        let check = |text: &str, expect: &str| {
            assert_eq!(
                KubernetesVersion::parse_tolerant(text).unwrap().to_string(),
                expect,
                "{text}"
            );
        };
        check("1.32", "v1.32.0");
        check("v1", "v1.0.0");
        check(" v1.32.01-alpha.1 ", "v1.32.1-alpha.1");
        for text in ["one", "vv1.32.0", "1.32+k3s1", "1.32-rc.1", "1.2.3.4"] {
            assert!(KubernetesVersion::parse_tolerant(text).is_err(), "{text}");
        }
    }

    #[test]
    fn pre_releases_come_before_and_builds_are_equal() {
        assert!(version("v1.32.0-rc.1") < version("v1.32.0"));
        assert!(version("v1.32.0-alpha.10") > version("v1.32.0-alpha.9"));
        assert_eq!(version("v1.32.0+a"), version("v1.32.0+b"));
    }
}
