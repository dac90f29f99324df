//! Names, and who writes what.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api::labels::CLUSTER_NAME;
use windlass_api_ext::addons::labels::HELM_CHART_PROXY_NAME;
use windlass_meta::{MAX_NAME_LENGTH, label_or_hash, short_hash};

/// Field managers.
pub mod managers {
    /// Of HelmReleaseProxies as their HelmChartProxy wants them, and of the finalizer of HelmChartProxies.
    pub const CHART_PROXY: &str = "caaph-helmchartproxy";
    /// Of the status of HelmChartProxies.
    pub const CHART_PROXY_STATUS: &str = "caaph-helmchartproxy-status";
    /// Of the finalizer of HelmReleaseProxies, and of what is written to them about their release.
    pub const RELEASE_PROXY: &str = "caaph-helmreleaseproxy";
    /// Of the status of HelmReleaseProxies.
    pub const RELEASE_PROXY_STATUS: &str = "caaph-helmreleaseproxy-status";
}

/// The labels of the HelmReleaseProxy of a HelmChartProxy and a Cluster: it is found by them, never by its name. A name that is too
/// long for a label stands there as a hash.
pub fn labels(proxy: &str, cluster: &str) -> [(String, String); 2] {
    [
        (CLUSTER_NAME.to_owned(), label_or_hash(cluster)),
        (HELM_CHART_PROXY_NAME.to_owned(), label_or_hash(proxy)),
    ]
}

/// The name for the HelmReleaseProxy of a HelmChartProxy and a Cluster. It is always the same for the two, so that what is planned
/// twice is created once; it begins with the chart and the Cluster for people, as far as there is room.
pub fn release_proxy(chart: &str, proxy: &str, cluster: &str) -> String {
    let hash = short_hash(&format!("{proxy}/{cluster}"));
    let room = MAX_NAME_LENGTH - hash.len() - 1;
    let mut readable = as_label(&format!("{}-{cluster}", as_label(chart)));
    // Only letters, digits and dashes are left.
    readable.truncate(room);
    let readable = readable.trim_matches('-');
    if readable.is_empty() {
        format!("hrp-{hash}")
    } else {
        format!("{readable}-{hash}")
    }
}

/// The characters of a text that a DNS label may have; each other one is a dash.
fn as_label(text: &str) -> String {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let one = |c: char| {
        if fits(c.to_ascii_lowercase()) {
            c.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    text.chars().map(one).collect::<String>().trim_matches('-').to_owned()
}

/// Whether an object has these labels.
pub fn has_labels(meta: &ObjectMeta, wanted: &[(String, String)]) -> bool {
    let have = meta.labels.as_ref();
    wanted
        .iter()
        .all(|(key, value)| have.and_then(|have| have.get(key)) == Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(chart: &str, cluster: &str, expect: &str) {
        let name = release_proxy(chart, "proxy", cluster);
        assert!(name.len() <= MAX_NAME_LENGTH, "{name}");
        assert!(
            name.bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'),
            "{name}"
        );
        assert!(name.starts_with(expect), "{name}");
        assert!(!name.starts_with('-') && !name.ends_with('-'), "{name}");
    }

    // AD-068: the name is legal whatever the chart is called.
    #[test]
    fn the_name_of_a_release_proxy_is_always_legal() {
        check("calico", "c1", "calico-c1-");
        check("Capital_Chart", "c1", "capital-chart-c1-");
        check("--", "c1", "c1-");
        check("ünïcödé", "c.1", "n-c-d-c-1-");
        check("", "", "hrp-");
        check(&"x".repeat(100), &"y".repeat(63), "xxx");
    }

    // AD-068
    #[test]
    fn the_name_is_one_for_each_pair_and_always_the_same() {
        assert_eq!(release_proxy("a", "p", "c"), release_proxy("a", "p", "c"));
        let long = "x".repeat(100);
        assert_ne!(release_proxy(&long, "p", "c1"), release_proxy(&long, "p", "c2"));
        assert_ne!(release_proxy("a", "p1", "c"), release_proxy("a", "p2", "c"));
    }

    // AD-094, AD-137: a label cannot hold every name.
    #[test]
    fn names_too_long_for_a_label_stand_there_as_hashes() {
        let [cluster, proxy] = labels(&"p".repeat(80), "c1");
        assert_eq!(cluster, ("cluster.x-k8s.io/cluster-name".to_owned(), "c1".to_owned()));
        assert_eq!(proxy.0, "helmreleaseproxy.addons.cluster.x-k8s.io/helmchartproxy-name");
        assert!(proxy.1.starts_with("hash_") && proxy.1.len() <= 63, "{proxy:?}");
    }
}
