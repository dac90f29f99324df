//! Versions of providers: valid versions, and the latest release.

use std::fmt;
use std::str::FromStr;

/// A version of a provider, `v1.2.3` or `v1.2.3-rc.0`. The order is that of semantic versions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(semver::Version);

/// A text that is not a version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a version of a provider: {why}; write it as in v1.2.3 or v1.2.3-rc.0")]
pub struct VersionError {
    text: String,
    why: String,
}

impl Version {
    /// Parses a version, which begins with `v`.
    pub fn parse(text: &str) -> Result<Self, VersionError> {
        let failed = |why: String| VersionError {
            text: text.to_owned(),
            why,
        };
        let bare = text
            .strip_prefix('v')
            .ok_or_else(|| failed("it does not begin with \"v\"".to_owned()))?;
        semver::Version::parse(bare)
            .map(Self)
            .map_err(|error| failed(error.to_string()))
    }

    /// The major version.
    pub fn major(&self) -> u64 {
        self.0.major
    }

    /// The minor version.
    pub fn minor(&self) -> u64 {
        self.0.minor
    }

    /// The patch version.
    pub fn patch(&self) -> u64 {
        self.0.patch
    }

    /// Whether it is a pre-release, such as `v1.2.3-rc.0`.
    pub fn is_prerelease(&self) -> bool {
        !self.0.pre.is_empty()
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.0)
    }
}

impl FromStr for Version {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        Self::parse(text)
    }
}

/// The versions among the tags of a repository, best candidate for the latest first: releases before pre-releases, then the
/// higher one. Tags that are not versions are omitted; they are available by name only.
pub fn newest_first<T: AsRef<str>>(tags: impl IntoIterator<Item = T>) -> Vec<Version> {
    let mut found: Vec<Version> = tags
        .into_iter()
        .filter_map(|tag| Version::parse(tag.as_ref()).ok())
        .collect();
    found.sort_by(|a, b| (a.is_prerelease(), b).cmp(&(b.is_prerelease(), a)));
    found.dedup();
    found
}

/// The latest version: the highest release, or the highest pre-release if there is no release.
pub fn latest<T: AsRef<str>>(tags: impl IntoIterator<Item = T>) -> Option<Version> {
    newest_first(tags).into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    // OP-011
    #[test]
    fn a_version_begins_with_v_and_has_three_numbers() {
        for text in ["v0.6.0", "v1.0.0-rc.1", "v1.14.0+build.7", "v10.20.30"] {
            assert_eq!(Version::parse(text).unwrap().to_string(), text);
        }
        for text in [
            "0.6.0", "v1", "v1.2", "latest", "", "v", "v1.2.3.4", "v01.2.3", "V1.2.3", " v1.2.3", "v1.2.x",
        ] {
            let error = Version::parse(text).unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")), "{error}");
            assert!(error.contains("v1.2.3"), "{error}");
        }
    }

    // OP-012
    #[test]
    fn the_latest_is_the_highest_release() {
        let check = |tags: &[&str], expect: Option<&str>| {
            assert_eq!(latest(tags).map(|v| v.to_string()).as_deref(), expect, "{tags:?}");
        };
        check(&["v1.0.0", "v1.1.0", "v1.2.0-rc.0"], Some("v1.1.0"));
        check(&["v1.9.0", "v1.10.0"], Some("v1.10.0"));
        check(&["v0.1.0", "v2.0.0-alpha.1"], Some("v0.1.0"));
        check(
            &["v1.0.0-beta.0", "v1.0.0-alpha.9", "v1.0.0-beta.1"],
            Some("v1.0.0-beta.1"),
        );
        check(&["api/v1.2.0", "release-1", "1.4.0"], None);
        check(&[], None);
    }

    #[test]
    fn candidates_are_listed_newest_first_without_repetition() {
        let found = newest_first(["v1.0.0", "v2.0.0-rc.0", "nightly", "v1.1.0", "v1.0.0"]);
        let words: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(words, ["v1.1.0", "v1.0.0", "v2.0.0-rc.0"]);
    }
}
