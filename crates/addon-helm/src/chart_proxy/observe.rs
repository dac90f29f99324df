//! Reads everything that the plan of a HelmChartProxy needs, all of it from caches.

use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_api::core::Cluster;
use windlass_api::kind::ApiKind;
use windlass_api_ext::addons::{HelmChartProxy, HelmReleaseProxy};
use windlass_controller_runtime::{Cx, ObjectKey};
use windlass_meta::label_or_hash;

use super::observed::{Observed, Values, choose, is_served};
use super::values::{Chart, Memo};
use super::watches::{BY_PROXY, proxy_value};
use crate::rules;

pub(super) async fn observe(cx: &Cx, memo: &Memo, proxy: Arc<HelmChartProxy>) -> Observed {
    let key = proxy.key();
    let named = |cluster: Arc<Cluster>| (cluster.key().name, cluster);
    let clusters: BTreeMap<_, _> = cx
        .cache::<Cluster>()
        .list(&key.namespace)
        .into_iter()
        .map(named)
        .collect();
    let releases = releases(cx, &proxy, &key);
    let chart = memo.chart(&key, proxy.spec.values_template.as_deref().unwrap_or_default());
    let is_wanted = !proxy.is_deleting() && rules::chart_problems(&proxy).is_empty();
    let chosen = match choose(&proxy, &clusters) {
        Ok(names) => {
            chart.keep(&names);
            let mut chosen = BTreeMap::new();
            for name in names {
                let values = match clusters.get(&name).filter(|cluster| is_wanted && is_served(cluster)) {
                    Some(cluster) => chart.values(cx, cluster).await,
                    None => Values::NotNeeded,
                };
                chosen.insert(name, values);
            }
            Ok(chosen)
        }
        Err(why) => Err(why),
    };
    if proxy.is_deleting() && releases.is_empty() {
        memo.forget(&key);
    }
    Observed {
        template: Chart::problem(&chart).map(str::to_owned),
        proxy,
        clusters,
        chosen,
        releases,
        available: None,
    }
}

/// The HelmReleaseProxies that it owns, and those with its label: a user may have removed the owner or the label.
fn releases(cx: &Cx, proxy: &HelmChartProxy, key: &ObjectKey) -> Vec<Arc<HelmReleaseProxy>> {
    let cache = cx.cache::<HelmReleaseProxy>();
    let uid = proxy.metadata.uid.as_deref().unwrap_or_default();
    let labelled = cache.by_index(BY_PROXY, &proxy_value(&key.namespace, &label_or_hash(&key.name)));
    let all = cache.by_owner(uid).into_iter().chain(labelled);
    let here = all.filter(|release| release.key().namespace == key.namespace);
    let by_name: BTreeMap<String, _> = here.map(|release| (release.key().name, release)).collect();
    by_name.into_values().collect()
}
