//! Supported versions of helm.

use std::fmt;

/// The oldest supported version.
pub(crate) const OLDEST: Version = Version { major: 3, minor: 14 };

/// Features of the oldest supported version.
pub(crate) const BECAUSE: &str = "labels on releases and resetThenReuseValues";

/// The version of helm, as far as flags depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version {
    pub(crate) major: u32,
    pub(crate) minor: u32,
}

impl Version {
    /// Parses `v3.22.0`, with or without a suffix. Builds from source may lack the patch number: `v3.22`, `v3.22+unreleased`.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut parts = text.trim().trim_start_matches('v').splitn(3, '.');
        let (major, minor) = (parts.next()?.parse().ok()?, parts.next()?);
        let minor = match parts.next() {
            Some(_) => minor,
            None => minor.split(['-', '+']).next()?,
        };
        let minor = minor.parse().ok()?;
        Some(Self { major, minor })
    }

    /// Whether it is helm 4 or later, where flags have other names, and server-side apply is the default.
    pub(crate) fn is_four(self) -> bool {
        self.major >= 4
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_helm_tells_them() {
        let read = |text: &str| Version::read(text).map(|version| version.to_string());
        assert_eq!(read("v3.22.0\n").as_deref(), Some("v3.22"));
        assert_eq!(read("v4.3.1+g0123456").as_deref(), Some("v4.3"));
        assert_eq!(read("v3.20.0-rc.1").as_deref(), Some("v3.20"));
        assert_eq!(read("v3.22\n").as_deref(), Some("v3.22"));
        assert_eq!(read("v3.22+unreleased").as_deref(), Some("v3.22"));
        for odd in ["", "v3", "v3.", "v3.-rc", "Client: &version.Version{}", "v3.x.0", "{}"] {
            assert_eq!(read(odd), None, "{odd}");
        }
        assert!(Version::read("v3.9.4") < Some(OLDEST));
        assert!(Version::read("v4.0.0") > Some(OLDEST));
    }
}
