//! CoreDNS: its releases, and how a Corefile is brought from one of them to a later one.
//!
//! The facts (which release no longer reads an option, and what takes its place) are those of `coredns/corefile-migration` v1.0.34, which
//! kubeadm and Cluster API v1.14 use.

mod migration;

pub use migration::migrate;
use windlass_meta::{KubernetesVersion, ParseVersionError};

/// A version of CoreDNS: major, minor and patch. Other parts of a tag do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(u64, u64, u64);

impl Version {
    /// The version of an image tag, which has `_` where versions have `+`.
    pub fn of_tag(tag: &str) -> Result<Self, ParseVersionError> {
        let version = KubernetesVersion::parse_tolerant(&tag.replace('_', "+"))?;
        Ok(Self(version.major(), version.minor(), version.patch()))
    }

    /// The first version whose image is `coredns/coredns` in the registry of Kubernetes, where older ones are `coredns`.
    pub const RENAMED: Self = Self(1, 8, 0);

    /// The releases after this one, oldest first.
    pub fn later(self) -> impl Iterator<Item = Self> {
        RELEASES.iter().copied().filter(move |release| *release > self)
    }

    /// Whether Corefiles of this version can be migrated.
    pub fn is_known(self) -> bool {
        RELEASES.contains(&self)
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// Why a Corefile cannot be migrated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MigrationError {
    /// The release that it was written for is not known.
    #[error("start version '{0}' not supported")]
    From(Version),
    /// The release that it is for is not known, or is an older one.
    #[error("cannot migrate up to '{to}' from '{from}'")]
    To {
        /// The release that it was written for.
        from: Version,
        /// The release that it is for.
        to: Version,
    },
    /// It is no Corefile.
    #[error("Corefile: {0}")]
    Syntax(String),
    /// It has a plugin that has to move to a server of its own, which is possible in the server of all zones only.
    #[error(
        "Corefile: \"forward {zone}\" in server \"{server}\" cannot be moved to a server of its own; move it to a server \"{zone}\""
    )]
    Stub {
        /// The zone that is forwarded.
        zone: String,
        /// The server in which the plugin stands.
        server: String,
    },
}

/// The releases between two, the second among them, in order.
fn steps(from: Version, to: Version) -> Result<&'static [Version], MigrationError> {
    let begin = RELEASES.iter().position(|release| *release == from);
    let begin = begin.ok_or(MigrationError::From(from))?;
    let end = RELEASES.iter().position(|release| *release == to);
    match end.filter(|end| *end >= begin) {
        Some(end) => Ok(&RELEASES[begin + 1..=end]),
        None => Err(MigrationError::To { from, to }),
    }
}

/// Whether a Corefile of one release can be migrated to another.
pub fn can_migrate(from: Version, to: Version) -> Result<(), MigrationError> {
    steps(from, to).map(drop)
}

/// The releases that a migration goes through, oldest first.
const RELEASES: &[Version] = &[
    Version(1, 1, 3),
    Version(1, 1, 4),
    Version(1, 2, 0),
    Version(1, 2, 1),
    Version(1, 2, 2),
    Version(1, 2, 3),
    Version(1, 2, 4),
    Version(1, 2, 5),
    Version(1, 2, 6),
    Version(1, 3, 0),
    Version(1, 3, 1),
    Version(1, 4, 0),
    Version(1, 5, 0),
    Version(1, 5, 1),
    Version(1, 5, 2),
    Version(1, 6, 0),
    Version(1, 6, 1),
    Version(1, 6, 2),
    Version(1, 6, 3),
    Version(1, 6, 4),
    Version(1, 6, 5),
    Version(1, 6, 6),
    Version(1, 6, 7),
    Version(1, 6, 9),
    Version(1, 7, 0),
    Version(1, 7, 1),
    Version(1, 8, 0),
    Version(1, 8, 3),
    Version(1, 8, 4),
    Version(1, 8, 5),
    Version(1, 8, 6),
    Version(1, 8, 7),
    Version(1, 9, 0),
    Version(1, 9, 1),
    Version(1, 9, 2),
    Version(1, 9, 3),
    Version(1, 9, 4),
    Version(1, 10, 0),
    Version(1, 10, 1),
    Version(1, 11, 0),
    Version(1, 11, 1),
    Version(1, 11, 3),
    Version(1, 11, 4),
    Version(1, 12, 0),
    Version(1, 12, 1),
    Version(1, 12, 2),
    Version(1, 12, 3),
    Version(1, 12, 4),
    Version(1, 13, 0),
    Version(1, 13, 1),
    Version(1, 13, 2),
    Version(1, 14, 0),
    Version(1, 14, 1),
    Version(1, 14, 2),
    Version(1, 14, 3),
    Version(1, 14, 4),
    Version(1, 14, 6),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_corefile_is_migrated_forward_between_known_releases() {
        let version = |tag: &str| Version::of_tag(tag).unwrap();
        assert_eq!(version("v1.11.3_vmware.1"), Version(1, 11, 3));
        assert!(Version::of_tag("latest").is_err());
        assert_eq!(can_migrate(version("1.11.1"), version("1.12.0")), Ok(()));
        let error = |from, to| can_migrate(version(from), version(to)).unwrap_err().to_string();
        assert_eq!(error("1.12.0", "1.11.1"), "cannot migrate up to '1.11.1' from '1.12.0'");
        assert_eq!(error("1.6.8", "1.12.0"), "start version '1.6.8' not supported");
        assert!(can_migrate(version("1.12.0"), version("9.0.0")).is_err());
        assert!(RELEASES.is_sorted());
    }
}
