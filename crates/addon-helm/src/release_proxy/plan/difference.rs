//! The one place where the desired release is compared with the actual one: chart, version and values, all as data.

use semver::Version;
use serde_json::{Map, Value};

use crate::release_proxy::facts::reuses_values;
use crate::release_proxy::observed::{Latest, Observed, Release};

/// How a release differs from the desired one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Difference {
    /// It does not differ.
    Nothing,
    /// It differs in this.
    Found(String),
    /// It does not differ in anything that can be compared. The text is about the rest.
    Unknown(String),
}

/// Compares a deployed release with the desired one.
pub(super) fn between(seen: &Observed, release: &Release) -> Difference {
    let spec = &seen.proxy.spec;
    let chart = spec.chart_name.rsplit('/').next().unwrap_or_default();
    // An artifact in a registry may have another name than the chart in it, as mirrors do, and then always differs.
    let is_named_like_its_chart = !spec.repo_url.starts_with("oci://");
    if is_named_like_its_chart && release.chart != chart {
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

fn has_values(seen: &Observed, release: &Release) -> bool {
    let Ok(wanted) = &seen.values else { return true };
    let over = wanted.data.as_ref().zip(release.data.as_ref());
    wanted.digest == release.values
        || reuses_values(&seen.proxy) && over.is_some_and(|(wanted, have)| covers(have, wanted))
}

/// Whether merging `wanted` into `have` changes nothing.
fn covers(have: &Map<String, Value>, wanted: &Map<String, Value>) -> bool {
    wanted.iter().all(|(key, wanted)| match (have.get(key), wanted) {
        (Some(Value::Object(have)), Value::Object(wanted)) => covers(have, wanted),
        (Some(have), wanted) => {
            let one = |value: &Value| Map::from_iter([(String::new(), value.clone())]);
            windlass_helm::values::same(&one(have), &one(wanted))
        }
        // A null removes a key when values are merged.
        (None, wanted) => wanted.is_null(),
    })
}

/// Whether a chart has the desired version. As Helm compares versions, a leading `v` does not count, and build metadata counts only when
/// the desired version has some.
fn is_version(wanted: &str, have: &str) -> bool {
    let read = |text: &str| Version::parse(text.strip_prefix('v').unwrap_or(text)).ok();
    match (read(wanted), read(have)) {
        (Some(wanted), Some(have)) if wanted.build.is_empty() => wanted.cmp_precedence(&have).is_eq(),
        (Some(wanted), Some(have)) => wanted == have,
        _ => wanted == have,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // AD-112
    #[test]
    fn versions_are_compared_as_helm_compares_them() {
        assert!(is_version("1.2.3", "v1.2.3") && is_version("v1.2.3", "1.2.3"));
        assert!(is_version("1.2.3", "1.2.3+build") && !is_version("1.2.3+a", "1.2.3+b"));
        assert!(!is_version("1.2.3", "1.2.4") && !is_version("1.2.3", "1.2.3-rc.1"));
        assert!(is_version("odd", "odd") && !is_version("odd", "1.0.0"));
    }

    #[test]
    fn merged_values_are_covered_when_nothing_changes() {
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
