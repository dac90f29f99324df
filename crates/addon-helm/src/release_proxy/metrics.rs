//! Metrics of releases by status, and of Helm operations by result.

use std::collections::BTreeMap;

use windlass_api_ext::addons::HelmReleaseProxy;
use windlass_controller_runtime::{Cx, Table};

use super::ports::HelmReleases;

const RELEASES: Table = Table {
    name: "windlass_helm_releases",
    help: "HelmReleaseProxies by the status of their releases",
    counts: false,
    labels: &["status"],
};
const OPERATIONS: Table = Table {
    name: "windlass_helm_operations",
    help: "Helm operations by result",
    counts: true,
    labels: &["operation", "result"],
};

/// The metrics of this crate.
pub static METRICS: &[Table] = &[RELEASES, OPERATIONS];

impl HelmReleases {
    /// Adds the metrics.
    pub(super) fn measure(&self, cx: &Cx) {
        let proxies = cx.cache::<HelmReleaseProxy>();
        cx.metrics().table(RELEASES, move || {
            let mut counts: BTreeMap<String, u64> = BTreeMap::new();
            for proxy in proxies.all() {
                let said = proxy.status.as_ref().and_then(|status| status.status.clone());
                *counts.entry(said.unwrap_or_else(|| "none".to_owned())).or_default() += 1;
            }
            counts
                .into_iter()
                .map(|(status, count)| (vec![status], count))
                .collect()
        });
        let of = self.0.operations.clone();
        cx.metrics().table(OPERATIONS, move || of.counts());
    }
}
