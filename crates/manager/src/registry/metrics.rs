//! The metrics of all controllers, as data for the reference.

use windlass_addon_helm::release_proxy;
use windlass_controller_runtime::MetricInfo;

use crate::registry::helm;

/// All metrics, by name.
pub fn all() -> Vec<MetricInfo> {
    let tables = [
        windlass_cluster_cache::METRICS,
        windlass_operator::METRICS,
        release_proxy::METRICS,
        &[helm::PROCESSES],
    ];
    let own = windlass_controller_runtime::METRICS.iter().copied();
    let extensions = windlass_runtime_client::METRICS.iter().copied();
    let mut all: Vec<MetricInfo> = own
        .chain(extensions)
        .chain(tables.iter().copied().flatten().map(MetricInfo::from))
        .collect();
    all.sort_by_key(|metric| metric.name);
    all
}
