//! What wakes HelmChartProxies.

use std::collections::BTreeSet;

use windlass_api::core::Cluster;
use windlass_api::kind::ApiKind;
use windlass_api_ext::addons::labels::HELM_CHART_PROXY_NAME;
use windlass_api_ext::addons::{HelmChartProxy, HelmReleaseProxy};
use windlass_contract::{Labels, Selector};
use windlass_controller_runtime::{Cx, Dynamic, ObjectKey, Watch, refers_to};
use windlass_meta::label_or_hash;

/// Index of HelmReleaseProxies by the label that names their HelmChartProxy.
pub(super) const BY_PROXY: &str = "helmchartproxy";
/// Index of Clusters by what they refer to.
const BY_REFERENCE: &str = "addon-reference";

/// What [`BY_PROXY`] finds HelmReleaseProxies by.
pub(super) fn proxy_value(namespace: &str, label: &str) -> String {
    format!("{namespace}/{label}")
}

pub(super) fn watches() -> Vec<Watch> {
    vec![
        Watch::source(|cx, _| {
            cx.cache::<HelmReleaseProxy>().add_index(BY_PROXY, by_proxy);
            cx.cache::<Cluster>().add_index(BY_REFERENCE, references);
        }),
        Watch::owned::<HelmReleaseProxy>(),
        Watch::map::<HelmReleaseProxy>(|cx, old, new| labelled(cx, old.into_iter().chain(new))),
        Watch::map::<Cluster>(of_cluster),
        Watch::dynamic_map(|cx, old, new| new.or(old).map(|object| of_referred(cx, object)).unwrap_or_default()),
    ]
}

fn by_proxy(release: &HelmReleaseProxy) -> Vec<String> {
    let label = release
        .metadata
        .labels
        .as_ref()
        .and_then(|labels| labels.get(HELM_CHART_PROXY_NAME));
    let namespace = release.key().namespace;
    label.map(|label| proxy_value(&namespace, label)).into_iter().collect()
}

fn references(cluster: &Cluster) -> Vec<String> {
    let spec = &cluster.spec;
    let all = [&spec.control_plane_ref, &spec.infrastructure_ref]
        .into_iter()
        .flatten();
    let namespace = cluster.key().namespace;
    all.map(|reference| {
        let [_, object] = refers_to(
            &reference.group_kind(),
            &ObjectKey::new(namespace.as_str(), reference.name.as_str()),
        );
        object
    })
    .collect()
}

/// The HelmChartProxies that these HelmReleaseProxies name in their label, also where the owner was taken away.
fn labelled<'a>(cx: &Cx, releases: impl Iterator<Item = &'a HelmReleaseProxy>) -> Vec<ObjectKey> {
    let named: BTreeSet<String> = releases.flat_map(by_proxy).collect();
    if named.is_empty() {
        return Vec::new();
    }
    let proxies = cx.cache::<HelmChartProxy>().all();
    let keys = proxies.iter().map(|proxy| proxy.key());
    keys.filter(|key| named.contains(&proxy_value(&key.namespace, &label_or_hash(&key.name))))
        .collect()
}

/// Those that choose the Cluster or chose it before: by its labels of now and then, by what they have on it, by what they said last.
fn of_cluster(cx: &Cx, old: Option<&Cluster>, new: Option<&Cluster>) -> Vec<ObjectKey> {
    let Some(cluster) = new.or(old) else {
        return Vec::new();
    };
    let (key, mut keys) = (cluster.key(), BTreeSet::new());
    for proxy in cx.cache::<HelmChartProxy>().list(&key.namespace) {
        let labels = [old, new]
            .into_iter()
            .flatten()
            .map(|cluster| cluster.metadata.labels.as_ref());
        if chooses(&proxy, labels) || has_chosen(&proxy, &key.name) {
            keys.insert(proxy.key());
        }
    }
    for release in cx
        .cache::<HelmReleaseProxy>()
        .by_cluster(&key.namespace, &label_or_hash(&key.name))
    {
        let owners = release.metadata.owner_references.iter().flatten();
        let of_kind = owners.filter(|owner| owner.kind == HelmChartProxy::KIND);
        keys.extend(of_kind.map(|owner| ObjectKey::new(key.namespace.as_str(), owner.name.as_str())));
    }
    keys.into_iter().collect()
}

fn chooses<'a>(proxy: &HelmChartProxy, mut labels: impl Iterator<Item = Option<&'a Labels>>) -> bool {
    // One that cannot be read chooses nothing, whatever happens to Clusters.
    Selector::parse(&proxy.spec.cluster_selector).is_ok_and(|selector| labels.any(|labels| selector.matches(labels)))
}

fn has_chosen(proxy: &HelmChartProxy, cluster: &str) -> bool {
    let status = proxy.status.as_ref();
    let matching = status
        .and_then(|status| status.matching_clusters.as_ref())
        .into_iter()
        .flatten();
    matching
        .into_iter()
        .any(|reference| reference.name.as_deref() == Some(cluster))
}

/// Those whose templates may use an object that a Cluster refers to.
fn of_referred(cx: &Cx, object: &Dynamic) -> Vec<ObjectKey> {
    let [_, value] = refers_to(&object.gvk().group_kind(), &object.key());
    let mut keys = BTreeSet::new();
    for cluster in cx.cache::<Cluster>().by_index(BY_REFERENCE, &value) {
        for proxy in cx.cache::<HelmChartProxy>().list(&cluster.key().namespace) {
            if may_use(&proxy) && chooses(&proxy, std::iter::once(cluster.metadata.labels.as_ref())) {
                keys.insert(proxy.key());
            }
        }
    }
    keys.into_iter().collect()
}

/// Whether a template may use other objects than the Cluster; the word alone is enough to look again.
fn may_use(proxy: &HelmChartProxy) -> bool {
    let template = proxy.spec.values_template.as_deref().unwrap_or_default();
    ["ControlPlane", "InfraCluster"]
        .iter()
        .any(|name| template.contains(name))
}
