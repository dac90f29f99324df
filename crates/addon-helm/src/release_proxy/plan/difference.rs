//! The one place where what is wished for is compared with what is there: chart, version and values, all as data.

use semver::Version;
use serde_json::{Map, Value};
use windlass_api_ext::addons::HelmReleaseProxy;

use crate::release_proxy::observed::{Latest, Observed, Release};

/// How a release differs from what is wished for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Difference {
    /// Not at all.
    Nothing,
    /// By this.
    Found(String),
    /// Not as far as it can be told; and what cannot.
    Unknown(String),
}

/// Compares a deployed release with what is wished for.
pub(super) fn between(seen: &Observed, release: &Release) -> Difference {
    let spec = &seen.proxy.spec;
    let chart = spec.chart_name.rsplit('/').next().unwrap_or_default();
    if release.chart != chart {
        return Difference::Found(format!("it is of chart {}, not {chart}", release.chart));
    }
    let unknown = match &seen.version {
        Latest::Pinned(wanted) | Latest::Found(wanted) => {
            if !is_version(wanted, &release.version) {
                return Difference::Found(format!("its chart has version {}, not {wanted}", release.version));
            }
            None
        }
        Latest::Asking => Some(String::new()),
        Latest::Failed(why) => Some(format!(
            "whether there is a newer version of the chart cannot be told: {why}"
        )),
    };
    if !has_values(seen, release) {
        return Difference::Found("its values are others".to_owned());
    }
    unknown.map_or(Difference::Nothing, Difference::Unknown)
}

/// Whether values are laid over those that a release has.
pub(in crate::release_proxy) fn reuses_values(proxy: &HelmReleaseProxy) -> bool {
    let options = proxy.spec.options.as_ref();
    let upgrade = options.and_then(|options| options.upgrade.as_ref());
    upgrade.is_some_and(|upgrade| upgrade.reuse_values == Some(true) || upgrade.reset_then_reuse_values == Some(true))
}

fn has_values(seen: &Observed, release: &Release) -> bool {
    let Ok(wanted) = &seen.values else { return true };
    let over = wanted.data.as_ref().zip(release.data.as_ref());
    wanted.digest == release.values
        || reuses_values(&seen.proxy) && over.is_some_and(|(wanted, have)| covers(have, wanted))
}

/// Whether laying `wanted` over `have` would change nothing.
fn covers(have: &Map<String, Value>, wanted: &Map<String, Value>) -> bool {
    wanted.iter().all(|(key, wanted)| match (have.get(key), wanted) {
        (Some(Value::Object(have)), Value::Object(wanted)) => covers(have, wanted),
        (Some(have), wanted) => {
            let one = |value: &Value| Map::from_iter([(String::new(), value.clone())]);
            windlass_helm::values::same(&one(have), &one(wanted))
        }
        // Laid over others, null takes a key away.
        (None, wanted) => wanted.is_null(),
    })
}

/// Whether a chart has the version that is wished for: as Helm compares them, a leading `v` does not count, and what stands behind a
/// plus only where it was asked for.
fn is_version(wanted: &str, have: &str) -> bool {
    let read = |text: &str| Version::parse(text.strip_prefix('v').unwrap_or(text)).ok();
    match (read(wanted), read(have)) {
        (Some(wanted), Some(have)) if wanted.build.is_empty() => wanted.cmp_precedence(&have).is_eq(),
        (Some(wanted), Some(have)) => wanted == have,
        _ => wanted == have,
    }
}

/// A version that nothing has to be asked about: one alone, with all its parts.
pub(in crate::release_proxy) fn pinned(version: Option<&str>) -> Option<&str> {
    let text = version?.trim();
    Version::parse(text.strip_prefix('v').unwrap_or(text)).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    // AD-104, AD-116
    #[test]
    fn only_whole_versions_are_pinned() {
        for version in ["1.2.3", "v1.2.3", "0.1.0-rc.1", "1.2.3+build"] {
            assert_eq!(pinned(Some(version)), Some(version));
        }
        for range in ["1.2", "1", "^1.2.3", ">=1 <2", "1.2.x", "*", "1.2.3 || 2.0.0", ">1.0.0"] {
            assert_eq!(pinned(Some(range)), None, "{range}");
        }
        assert_eq!(pinned(None), None);
    }

    // AD-112
    #[test]
    fn versions_are_compared_as_helm_compares_them() {
        assert!(is_version("1.2.3", "v1.2.3") && is_version("v1.2.3", "1.2.3"));
        assert!(is_version("1.2.3", "1.2.3+build") && !is_version("1.2.3+a", "1.2.3+b"));
        assert!(!is_version("1.2.3", "1.2.4") && !is_version("1.2.3", "1.2.3-rc.1"));
        assert!(is_version("odd", "odd") && !is_version("odd", "1.0.0"));
    }

    #[test]
    fn values_laid_over_others_are_covered_where_nothing_changes() {
        let check = |have: &str, wanted: &str, expect: bool| {
            let read = |text| windlass_helm::values::parse(text).unwrap();
            assert_eq!(covers(&read(have), &read(wanted)), expect, "{have} {wanted}");
        };
        check("{a: 1, b: {c: 2, d: 3}}", "{b: {c: 2.0}}", true);
        check("{a: 1}", "{}", true);
        check("{a: 1}", "{b: null}", true);
        check("{a: 1}", "{a: null}", false);
        check("{a: 1}", "{a: 2}", false);
        check("{a: [1, 2]}", "{a: [1]}", false);
        check("{a: {b: 1}}", "{a: 1}", false);
        check("{}", "{a: 1}", false);
    }
}
