//! Contract versions, and the API versions of a provider's kind for each.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

/// A version of the contract between Cluster API and providers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ContractVersion {
    /// v1beta1, for older providers.
    V1Beta1,
    /// v1beta2, the current one.
    V1Beta2,
}

impl ContractVersion {
    /// Newest first.
    pub const ALL: [Self; 2] = [Self::V1Beta2, Self::V1Beta1];

    /// The version's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V1Beta1 => "v1beta1",
            Self::V1Beta2 => "v1beta2",
        }
    }

    /// The label of a CustomResourceDefinition with the API versions of this contract.
    pub fn label(self) -> &'static str {
        match self {
            Self::V1Beta1 => "cluster.x-k8s.io/v1beta1",
            Self::V1Beta2 => "cluster.x-k8s.io/v1beta2",
        }
    }
}

impl fmt::Display for ContractVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The newest contract in a definition's labels, and its newest API version.
pub fn choose_version(
    labels: &BTreeMap<String, String>,
    is_served: impl Fn(&str) -> bool,
) -> Option<(ContractVersion, String)> {
    ContractVersion::ALL.into_iter().find_map(|contract| {
        let listed = labels.get(contract.label())?;
        let newest = listed
            .split('_')
            .filter(|v| !v.is_empty() && is_served(v))
            .max_by(|a, b| compare_versions(a, b))?;
        Some((contract, newest.to_owned()))
    })
}

/// Compares API versions as Kubernetes does: stable above beta above alpha, then by number; other words below all, by letters.
pub fn compare_versions(a: &str, b: &str) -> Ordering {
    match (parse(a), parse(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        // Of two other words, the first one in sort order is greater.
        (None, None) => b.cmp(a),
    }
}

/// Stage (2 = stable), major, minor.
fn parse(version: &str) -> Option<(u8, u32, u32)> {
    let rest = version.strip_prefix('v')?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let major = rest[..digits].parse().ok().filter(|_| !rest.starts_with('0'))?;
    let rest = &rest[digits..];
    if rest.is_empty() {
        return Some((2, major, 0));
    }
    let (stage, minor) = if let Some(minor) = rest.strip_prefix("beta") {
        (1, minor)
    } else {
        (0, rest.strip_prefix("alpha")?)
    };
    let minor = minor.parse().ok().filter(|_| !minor.starts_with('0'))?;
    Some((stage, major, minor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ContractVersion::{V1Beta1, V1Beta2};

    #[test]
    fn versions_order_as_in_kubernetes() {
        let mut versions = vec![
            "v1alpha1",
            "foo1",
            "v2",
            "v1beta2",
            "v10",
            "v1",
            "v3beta1",
            "v11alpha2",
            "foo10",
            "v1beta1",
        ];
        versions.sort_by(|a, b| compare_versions(b, a));
        assert_eq!(
            versions,
            [
                "v10",
                "v2",
                "v1",
                "v3beta1",
                "v1beta2",
                "v1beta1",
                "v11alpha2",
                "v1alpha1",
                "foo1",
                "foo10"
            ]
        );
    }

    #[test]
    fn the_newest_contract_and_its_newest_version_win() {
        let check = |labels: &[(&str, &str)], expect: Option<(ContractVersion, &str)>| {
            let labels = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            let chosen = choose_version(&labels, |version| version != "v1beta4");
            assert_eq!(chosen, expect.map(|(c, v)| (c, v.to_owned())));
        };
        check(
            &[("cluster.x-k8s.io/v1beta2", "v1beta2_v1beta3")],
            Some((V1Beta2, "v1beta3")),
        );
        // A version that is not served cannot be read, though it is newer.
        check(
            &[("cluster.x-k8s.io/v1beta2", "v1beta3_v1beta4")],
            Some((V1Beta2, "v1beta3")),
        );
        check(
            &[
                ("cluster.x-k8s.io/v1beta2", "v1beta4"),
                ("cluster.x-k8s.io/v1beta1", "v1beta1"),
            ],
            Some((V1Beta1, "v1beta1")),
        );
        check(
            &[
                ("cluster.x-k8s.io/v1beta2", "v1beta2"),
                ("cluster.x-k8s.io/v1beta1", "v1beta1"),
            ],
            Some((V1Beta2, "v1beta2")),
        );
        check(
            &[("cluster.x-k8s.io/v1beta1", "v1alpha4_v1beta1")],
            Some((V1Beta1, "v1beta1")),
        );
        check(
            &[("cluster.x-k8s.io/v1beta2", ""), ("cluster.x-k8s.io/v1beta1", "v1")],
            Some((V1Beta1, "v1")),
        );
        check(&[("cluster.x-k8s.io/v1alpha3", "v1alpha3")], None);
    }
}
