//! Versions as repositories name them.

use semver::Version;

/// Parses a tag as a version: `v1.2.3`, with the `v` of `spec.version`. Other tags are not versions of a provider.
pub(crate) fn parse(tag: &str) -> Option<Version> {
    Version::parse(tag.strip_prefix('v')?).ok()
}

/// The versions among tags, in rising order, without duplicates.
pub(crate) fn sorted(tags: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut versions: Vec<_> = tags.into_iter().filter_map(|tag| Some((parse(&tag)?, tag))).collect();
    versions.sort();
    versions.dedup();
    versions.into_iter().map(|(_, tag)| tag).collect()
}

/// Best first: stable versions from the highest, then pre-releases from the highest.
pub fn candidates(versions: &[String]) -> Vec<&str> {
    let mut parsed: Vec<_> = versions
        .iter()
        .filter_map(|tag| Some((parse(tag)?, tag.as_str())))
        .collect();
    parsed.sort_by(|(a, _), (b, _)| a.pre.is_empty().cmp(&b.pre.is_empty()).then_with(|| a.cmp(b)).reverse());
    parsed.into_iter().map(|(_, tag)| tag).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_version_is_the_highest_stable_one() {
        // OP-012
        let check = |tags: &[&str], best: Option<&str>| {
            let tags = sorted(tags.iter().map(|&tag| tag.to_owned()));
            assert_eq!(candidates(&tags).first().copied(), best, "{tags:?}");
        };
        check(&["v1.0.0", "v1.1.0", "v1.2.0-rc.0"], Some("v1.1.0"));
        check(&["v1.9.0", "v1.10.0", "v1.2.0"], Some("v1.10.0"));
        check(&["v1.2.0-rc.0", "v1.2.0-rc.1", "v1.2.0-beta.9"], Some("v1.2.0-rc.1"));
        check(&["nightly", "v1", "latest", "1.0.0"], None);
        check(&[], None);
    }
}
