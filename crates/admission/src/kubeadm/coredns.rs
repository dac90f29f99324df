//! Versions of CoreDNS, and which of them a Corefile can be migrated between.

use windlass_meta::{KubernetesVersion, ParseVersionError};

/// A version of CoreDNS: major, minor and patch. Other parts of a tag do not count.
pub(crate) type Version = (u64, u64, u64);

/// The versions that a migration goes through, oldest first: the releases that `coredns/corefile-migration` v1.0.34 knows.
const RELEASES: &[Version] = &[
    (1, 1, 3),
    (1, 1, 4),
    (1, 2, 0),
    (1, 2, 1),
    (1, 2, 2),
    (1, 2, 3),
    (1, 2, 4),
    (1, 2, 5),
    (1, 2, 6),
    (1, 3, 0),
    (1, 3, 1),
    (1, 4, 0),
    (1, 5, 0),
    (1, 5, 1),
    (1, 5, 2),
    (1, 6, 0),
    (1, 6, 1),
    (1, 6, 2),
    (1, 6, 3),
    (1, 6, 4),
    (1, 6, 5),
    (1, 6, 6),
    (1, 6, 7),
    (1, 6, 9),
    (1, 7, 0),
    (1, 7, 1),
    (1, 8, 0),
    (1, 8, 3),
    (1, 8, 4),
    (1, 8, 5),
    (1, 8, 6),
    (1, 8, 7),
    (1, 9, 0),
    (1, 9, 1),
    (1, 9, 2),
    (1, 9, 3),
    (1, 9, 4),
    (1, 10, 0),
    (1, 10, 1),
    (1, 11, 0),
    (1, 11, 1),
    (1, 11, 3),
    (1, 11, 4),
    (1, 12, 0),
    (1, 12, 1),
    (1, 12, 2),
    (1, 12, 3),
    (1, 12, 4),
    (1, 13, 0),
    (1, 13, 1),
    (1, 13, 2),
    (1, 14, 0),
    (1, 14, 1),
    (1, 14, 2),
    (1, 14, 3),
    (1, 14, 4),
    (1, 14, 6),
];

/// The version of an image tag. Tags have `_` where versions have `+`.
pub(crate) fn version(tag: &str) -> Result<Version, ParseVersionError> {
    let version = KubernetesVersion::parse_tolerant(&tag.replace('_', "+"))?;
    Ok((version.major(), version.minor(), version.patch()))
}

/// Whether the Corefile of one version can be migrated to another.
pub(crate) fn can_migrate(from: Version, to: Version) -> Result<(), String> {
    let text = |(major, minor, patch): Version| format!("{major}.{minor}.{patch}");
    let Some(at) = RELEASES.iter().position(|release| *release == from) else {
        return Err(format!("start version '{}' not supported", text(from)));
    };
    if RELEASES[at..].contains(&to) {
        return Ok(());
    }
    Err(format!("cannot migrate up to '{}' from '{}'", text(to), text(from)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_corefile_is_migrated_forward_between_known_releases() {
        assert_eq!(version("v1.11.3_vmware.1"), Ok((1, 11, 3)));
        assert!(version("latest").is_err());
        assert_eq!(can_migrate((1, 11, 1), (1, 12, 0)), Ok(()));
        assert_eq!(
            can_migrate((1, 12, 0), (1, 11, 1)),
            Err("cannot migrate up to '1.11.1' from '1.12.0'".to_owned())
        );
        assert_eq!(
            can_migrate((1, 6, 8), (1, 12, 0)),
            Err("start version '1.6.8' not supported".to_owned())
        );
        assert!(can_migrate((1, 12, 0), (9, 0, 0)).is_err());
        assert!(RELEASES.is_sorted());
    }
}
