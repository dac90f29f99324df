//! The release that a declaration asks for, and the facts about it that a plan asks for. Plain data.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use windlass_api_operator::{Declared, Fetch};

use crate::awaited::Awaited;

/// Facts that a plan lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// The files of a release, and everything else that it is made of.
    Files {
        /// The release.
        desired: DesiredRelease,
        /// Whether this is [`Question::Renewal`] as well.
        renew: bool,
    },
    /// This release, rendered from the files, and the releases of the other installed providers.
    Render(DesiredRelease),
    /// The installed release, with certificates that are issued again.
    Renewal,
}

/// A release that has to be installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DesiredRelease {
    /// The version. Defaults to the latest.
    pub version: Option<String>,
    /// Why it is rendered.
    pub occasion: Occasion,
    /// Whether it is installed without replicas.
    pub paused: bool,
    /// Hash of content that was tried before: a release made of it is not installed again.
    pub unless: Option<String>,
}

/// Why a release is rendered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// There is none.
    Install,
    /// Another program has installed it.
    Adopt {
        /// The version that is installed.
        from: String,
    },
    /// Another version is installed.
    Upgrade {
        /// That version.
        from: String,
    },
    /// The version is installed with other settings.
    Change,
}

/// The objects that a release is made of.
pub fn inputs(declared: &Declared) -> Vec<Awaited> {
    let secret = declared.config_secret.as_ref();
    let mut inputs: Vec<_> = secret
        .map(|key| Awaited::one("v1", "Secret", key))
        .into_iter()
        .collect();
    let manifests = declared.manifests.as_ref();
    inputs.extend(manifests.map(|key| Awaited::one("v1", "ConfigMap", key)));
    if let Fetch::Selector(selector) = &declared.fetch {
        let labels = selector_text(selector);
        inputs.push(Awaited::labelled("v1", "ConfigMap", &declared.key.namespace, &labels));
    }
    inputs
}

/// Whether the files of the releases are outside the cluster, where no watch shows that they change.
pub fn is_remote(declared: &Declared) -> bool {
    !matches!(declared.fetch, Fetch::Selector(_))
}

/// A selector as text.
pub fn selector_text(selector: &LabelSelector) -> String {
    let mut terms: Vec<String> = Vec::new();
    for (key, value) in selector.match_labels.iter().flatten() {
        terms.push(format!("{key}={value}"));
    }
    for expression in selector.match_expressions.iter().flatten() {
        let values = expression.values.clone().unwrap_or_default().join(",");
        terms.push(match expression.operator.as_str() {
            "In" => format!("{} in ({values})", expression.key),
            "NotIn" => format!("{} notin ({values})", expression.key),
            "DoesNotExist" => format!("!{}", expression.key),
            _ => expression.key.clone(),
        });
    }
    terms.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    // OP-057
    #[test]
    fn labels_and_expressions_of_a_selector_become_text() {
        let selector: LabelSelector = serde_json::from_value(serde_json::json!({
            "matchLabels": {"a": "b"},
            "matchExpressions": [
                {"key": "c", "operator": "In", "values": ["d", "e"]},
                {"key": "f", "operator": "NotIn", "values": ["g"]},
                {"key": "h", "operator": "Exists"},
                {"key": "i", "operator": "DoesNotExist"},
            ],
        }))
        .unwrap();
        assert_eq!(selector_text(&selector), "a=b,c in (d,e),f notin (g),h,!i");
    }
}
