//! The observation of a HelmChartProxy.

use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_api::core::Cluster;
use windlass_api::kind::ApiKind;
use windlass_api_ext::addons::{HelmChartProxy, HelmReleaseProxy};
use windlass_contract::Selector;

use crate::rules;

/// Everything that was read.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The object itself.
    pub proxy: Arc<HelmChartProxy>,
    /// The Clusters of its namespace, by name.
    pub clusters: BTreeMap<String, Arc<Cluster>>,
    /// Those that its selector chooses, with the values for them; or why the selector cannot be read.
    pub chosen: Result<BTreeMap<String, Values>, String>,
    /// Why the template cannot be read.
    pub template: Option<String>,
    /// Its HelmReleaseProxies, by name.
    pub releases: Vec<Arc<HelmReleaseProxy>>,
    /// Whether the chart can be fetched, or why not; only read before a release goes for another one.
    pub available: Option<Result<(), String>>,
}

/// The values for a Cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Values {
    /// They are this YAML.
    Rendered(Arc<str>),
    /// The Cluster gets none now.
    NotNeeded,
    /// They cannot be computed: why, and whether that may pass by itself.
    Failed {
        /// Why.
        why: String,
        /// Whether an object could not be read.
        may_pass: bool,
    },
}

/// The Clusters that the selector of a HelmChartProxy chooses among those of its namespace, by name.
pub(super) fn choose(proxy: &HelmChartProxy, clusters: &BTreeMap<String, Arc<Cluster>>) -> Result<Vec<String>, String> {
    if let Some(problem) = rules::selector_problem(proxy) {
        return Err(problem.to_string());
    }
    let selector = Selector::parse(&proxy.spec.cluster_selector).map_err(|error| error.to_string())?;
    let chosen = clusters
        .iter()
        .filter(|(_, cluster)| selector.matches(cluster.metadata.labels.as_ref()));
    Ok(chosen.map(|(name, _)| name.clone()).collect())
}

/// Whether a Cluster is paused.
pub(super) fn is_paused(cluster: &Cluster) -> bool {
    let annotations = cluster.metadata.annotations.as_ref();
    cluster.spec.paused == Some(true)
        || annotations.is_some_and(|all| all.contains_key(windlass_api::annotations::PAUSED))
}

/// Whether a Cluster gets values: it is neither being deleted nor paused.
pub(super) fn is_served(cluster: &Cluster) -> bool {
    !is_paused(cluster) && !cluster.is_deleting()
}
