//! Everything that is read for a HelmReleaseProxy.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use windlass_api::core::Cluster;
use windlass_api_ext::addons::annotations::USABLE_FROM;
use windlass_api_ext::addons::{HelmReleaseProxy, labels, reasons, values as words};
use windlass_cluster_cache::{RemoteCluster, Workload};
use windlass_controller_runtime::{Cx, ObjectKey, key_of};
use windlass_helm::{ChartSource, Credentials, Secret as Hidden, Tls};
use windlass_meta::label_or_hash;

use super::observed::{ClusterState, Following, Latest, Lookup, Observed, Obstacle, ReadLive, Work};
use super::ports::HelmReleases;
use super::{address, facts, index};
use crate::cluster::is_initialized;

/// Reads. The release is taken from the watch of its cluster, which begins with the first object that is on the cluster, as caches begin
/// with their first reader: there is nothing to plan with before the first list.
pub(super) async fn observe(cx: &Cx, helm: &HelmReleases, proxy: Arc<HelmReleaseProxy>) -> Observed {
    let key = key_of(&proxy.metadata);
    // Before the release is read: the results of operations that have ended are visible in it.
    let work = helm.0.operations.work(&key, index::place_of(&proxy).as_ref());
    let cluster = cx.cache::<Cluster>().get(&index::cluster_of(&proxy));
    let (state, connection) = match cluster_state(cx, helm, &proxy, cluster.as_deref()) {
        Ok((has_kubeconfig, can_try, workload)) => {
            let connection = workload.up().cloned();
            let release = match workload {
                Workload::Up(connection) => Workload::Up(watched(cx, helm, &proxy, &connection, &work).await),
                Workload::NotTried(why) => Workload::NotTried(why),
                Workload::Down(outage) => Workload::Down(outage),
            };
            let state = ClusterState::Initialized {
                has_kubeconfig,
                can_try,
                release,
            };
            (state, connection)
        }
        Err(state) => (state, None),
    };
    let source = source(cx, &proxy);
    let (version, following) = version(helm, &key, &proxy, &source);
    Observed {
        // A Cluster of another namespace is none of this object's.
        cluster_is_leaving: !matches!(state, ClusterState::OtherNamespace(_))
            && cluster.is_some_and(|cluster| cluster.metadata.deletion_timestamp.is_some()),
        cluster: state,
        connection,
        source,
        values: helm.0.known.values(&proxy),
        version,
        following,
        unusable: helm.0.engine.unusable(),
        owner: owner(&proxy),
        alone_since: cx.term().since(),
        work,
        proxy,
    }
}

/// Reads the release from the cluster.
pub(super) async fn answer(helm: &HelmReleases, mut seen: Observed, ReadLive(depth): ReadLive) -> Observed {
    let place = index::place_of(&seen.proxy);
    if let (Some(connection), Some(place), ClusterState::Initialized { release, .. }) =
        (&seen.connection, &place, &mut seen.cluster)
    {
        *release = Workload::Up(Lookup::Live(helm.0.releases.ask(connection, place, depth).await));
    }
    seen
}

/// The release as the watch shows it.
async fn watched(
    cx: &Cx,
    helm: &HelmReleases,
    proxy: &HelmReleaseProxy,
    connection: &Arc<RemoteCluster>,
    work: &Work,
) -> Lookup {
    let user = (&key_of(&proxy.metadata), &helm.user_waker());
    let Some(place) = index::place_of(proxy) else {
        let (namespace, owner) = (proxy.spec.release_namespace(), owner(proxy));
        let releases = &helm.0.releases;
        return Lookup::Unnamed(releases.owned(cx, connection, user, namespace, &owner).await);
    };
    let depth = facts::depth(proxy, work.running);
    Lookup::Watched(helm.0.releases.look(cx, connection, user, &place, depth).await)
}

/// Whether there is a kubeconfig, whether an attempt to connect can be made, and the connection; else the state of a Cluster without.
fn cluster_state(
    cx: &Cx,
    helm: &HelmReleases,
    proxy: &HelmReleaseProxy,
    cluster: Option<&Cluster>,
) -> Result<(bool, bool, Workload<Arc<RemoteCluster>>), ClusterState> {
    let key = index::cluster_of(proxy);
    let namespace = proxy.spec.cluster_ref.namespace.as_deref();
    let other = namespace.filter(|namespace| !namespace.is_empty() && *namespace != key.namespace);
    if let Some(other) = other {
        return Err(ClusterState::OtherNamespace(other.to_owned()));
    }
    let cluster = cluster.ok_or(ClusterState::Missing)?;
    if !is_initialized(cluster) {
        return Err(ClusterState::Uninitialized);
    }
    let secret = ObjectKey::new(key.namespace.as_str(), format!("{}-kubeconfig", key.name));
    let has_kubeconfig = cx.cache::<Secret>().get(&secret).is_some();
    let clusters = &helm.0.clusters;
    Ok((has_kubeconfig, clusters.can_try(&key), clusters.workload(&key)))
}

/// The label value of releases that belong to the HelmChartProxy of this object. It is the same for every object of the same HelmChartProxy
/// and Cluster, also after the management cluster was moved.
fn owner(proxy: &HelmReleaseProxy) -> String {
    let meta = &proxy.metadata;
    let parent = meta
        .labels
        .as_ref()
        .and_then(|all| all.get(labels::HELM_CHART_PROXY_NAME));
    let name = parent.or(meta.name.as_ref()).map(String::as_str).unwrap_or_default();
    label_or_hash(&format!("{}.{name}", meta.namespace.as_deref().unwrap_or_default()))
}

/// Where the chart comes from.
pub(super) fn source(cx: &Cx, proxy: &HelmReleaseProxy) -> Result<ChartSource, Obstacle> {
    let spec = &proxy.spec;
    let insecure = spec.tls_config.as_ref().and_then(|tls| tls.insecure_skip_tls_verify) == Some(true);
    let (repo_url, credentials) = address::split(&spec.repo_url);
    let mut source = ChartSource {
        chart: spec.chart_name.clone(),
        version: spec.version().map(str::to_owned),
        // A registry would not even be tried over TLS.
        plain_http: insecure && repo_url.starts_with("http://"),
        repo_url,
        credentials,
        ..ChartSource::default()
    };
    if let (Some(key), Some(credentials)) = (index::credentials_of(proxy), &spec.credentials) {
        let text = read_secret(cx, proxy, &key, credentials.key(), reasons::GET_CREDENTIALS_FAILED)?;
        source.credentials = Some(Credentials::RegistryConfig(Hidden::new(text)));
    }
    let mut tls = Tls::default();
    if let Some(key) = index::authority_of(proxy) {
        tls.ca = Some(read_secret(
            cx,
            proxy,
            &key,
            words::CA_KEY,
            reasons::GET_CA_CERTIFICATE_FAILED,
        )?);
    }
    tls.insecure_skip_verify = insecure;
    source.tls = (tls != Tls::default()).then_some(tls);
    Ok(source)
}

/// A text of a Secret. One of another namespace has to say that this namespace may use it. Until it does, nothing tells whether it is there
/// and what it has: users of a namespace could search others otherwise.
fn read_secret(
    cx: &Cx,
    proxy: &HelmReleaseProxy,
    secret: &ObjectKey,
    key: &str,
    reason: &'static str,
) -> Result<String, Obstacle> {
    let missing = |message: String| Obstacle { reason, message };
    let found = cx.cache::<Secret>().get(secret);
    let namespace = proxy.metadata.namespace.as_deref().unwrap_or_default();
    let is_usable = |found: &Secret| secret.namespace == namespace || is_usable_from(found, namespace);
    let Some(found) = found.filter(|found| is_usable(found)) else {
        return Err(missing(if secret.namespace == namespace {
            format!("there is no Secret {secret}; create it with key {key:?}")
        } else {
            format!(
                "Secret {secret} cannot be used from namespace {namespace}: it needs key {key:?}, and {namespace:?} in its annotation {USABLE_FROM}"
            )
        }));
    };
    let data = found.data.as_ref().and_then(|data| data.get(key));
    let data = data.ok_or_else(|| missing(format!("Secret {secret} has no key {key:?}")))?;
    // An error would quote what it could not read.
    let text =
        std::str::from_utf8(&data.0).map_err(|_| missing(format!("key {key:?} of Secret {secret} is not text")))?;
    Ok(text.to_owned())
}

/// Whether a Secret lists a namespace as one that may use it.
fn is_usable_from(secret: &Secret, namespace: &str) -> bool {
    let annotations = secret.metadata.annotations.as_ref();
    let listed = annotations.and_then(|all| all.get(USABLE_FROM)).map(String::as_str);
    let mut names = listed.unwrap_or_default().split(',').map(str::trim);
    names.any(|name| name == "*" || name == namespace)
}

/// The desired version, and the poll of the repository for it.
fn version(
    helm: &HelmReleases,
    key: &ObjectKey,
    proxy: &HelmReleaseProxy,
    source: &Result<ChartSource, Obstacle>,
) -> (Latest, Following) {
    let (newest, following) = helm.0.charts.look(key, facts::followed_source(proxy, source));
    let pinned = facts::pinned(proxy.spec.version());
    let version = pinned.map_or(newest, |version| Latest::Pinned(version.to_owned()));
    (version, following)
}
