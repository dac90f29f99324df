//! How the versions of Machines are gathered in `status.versions` of sets, deployments, control planes and Clusters.

use std::cmp::Ordering;

use windlass_meta::KubernetesVersion;

use crate::core::StatusVersion;

/// The version that a Machine counts with: what its kubelet reports, and before that the wanted one. So an upgrade is complete when the
/// kubelets run the new version.
pub fn of_machine(kubelet: Option<&str>, wanted: Option<&str>) -> Option<StatusVersion> {
    let version = [kubelet, wanted].into_iter().flatten().find(|text| !text.is_empty())?;
    Some(StatusVersion {
        version: version.to_owned(),
        replicas: Some(1),
    })
}

/// One entry for each text, oldest version first, and what is not a version last. Builds without an order stay in the order in which
/// they came.
pub fn added_up(versions: impl IntoIterator<Item = StatusVersion>) -> Vec<StatusVersion> {
    let mut sums: Vec<(Option<KubernetesVersion>, StatusVersion)> = Vec::new();
    for entry in versions.into_iter().filter(|entry| !entry.version.is_empty()) {
        if let Some((_, sum)) = sums.iter_mut().find(|(_, sum)| sum.version == entry.version) {
            let both = sum.replicas.unwrap_or_default() + entry.replicas.unwrap_or_default();
            sum.replicas = Some(both);
            continue;
        }
        let parsed = KubernetesVersion::parse_tolerant(&entry.version).ok();
        sums.push((parsed, entry));
    }
    // The order is partial, which the sorts of the standard library do not take. There are a handful of versions.
    for end in 1..sums.len() {
        let mut at = end;
        while at > 0 && is_before(&sums[at], &sums[at - 1]) {
            sums.swap(at, at - 1);
            at -= 1;
        }
    }
    sums.into_iter().map(|(_, sum)| sum).collect()
}

fn is_before(
    one: &(Option<KubernetesVersion>, StatusVersion),
    other: &(Option<KubernetesVersion>, StatusVersion),
) -> bool {
    let order = match (&one.0, &other.0) {
        (Some(one), Some(other)) => one.compare_with_build(other),
        (Some(_), None) => Some(Ordering::Less),
        (None, Some(_)) => Some(Ordering::Greater),
        (None, None) => Some(Ordering::Equal),
    };
    match order {
        Some(Ordering::Equal) => one.1.version < other.1.version,
        Some(order) => order == Ordering::Less,
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_added_up_by_their_text_oldest_first() {
        let check = |given: &[(&str, i32)], expect: &[(&str, i32)]| {
            let entries = given.iter().map(|(version, replicas)| StatusVersion {
                version: (*version).to_owned(),
                replicas: Some(*replicas),
            });
            let sums = added_up(entries);
            let sums: Vec<_> = sums
                .iter()
                .map(|sum| (sum.version.as_str(), sum.replicas.unwrap()))
                .collect();
            assert_eq!(sums, expect);
        };
        check(&[], &[]);
        check(
            &[("v1.36.0", 1), ("v1.35.2", 2), ("v1.36.0", 3)],
            &[("v1.35.2", 2), ("v1.36.0", 4)],
        );
        check(
            &[("v1.10.0", 1), ("v1.9.0", 1), ("", 7)],
            &[("v1.9.0", 1), ("v1.10.0", 1)],
        );
        check(
            &[("v1.36.0", 1), ("v1.36.0-rc.1", 1)],
            &[("v1.36.0-rc.1", 1), ("v1.36.0", 1)],
        );
        check(
            &[("v1.36.0+k.10", 1), ("v1.36.0+k.9", 1)],
            &[("v1.36.0+k.9", 1), ("v1.36.0+k.10", 1)],
        );
        // Two texts of one version, two builds without an order, and what is no version.
        check(&[("v1.36", 1), ("1.36.0", 1)], &[("1.36.0", 1), ("v1.36", 1)]);
        check(
            &[("v1.36.0+z", 1), ("v1.36.0+a", 1)],
            &[("v1.36.0+z", 1), ("v1.36.0+a", 1)],
        );
        check(
            &[("odd", 1), ("new", 1), ("v1.36.0", 1)],
            &[("v1.36.0", 1), ("new", 1), ("odd", 1)],
        );
    }

    #[test]
    fn what_the_kubelet_reports_counts_first() {
        let check = |kubelet, wanted, expect: Option<&str>| {
            assert_eq!(of_machine(kubelet, wanted).map(|one| one.version).as_deref(), expect);
        };
        check(Some("v1.35.0"), Some("v1.36.0"), Some("v1.35.0"));
        check(Some(""), Some("v1.36.0"), Some("v1.36.0"));
        check(None, Some("v1.36.0"), Some("v1.36.0"));
        check(None, None, None);
    }
}
