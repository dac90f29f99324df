//! Everything that is read for a HelmReleaseProxy.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use windlass_api::core::Cluster;
use windlass_api_ext::addons::{HelmReleaseProxy, labels, reasons, values as words};
use windlass_helm::{ChartSource, Credentials, Secret as Hidden, Tls};
use windlass_kit::{Cx, ObjectKey, Seen, key_of};
use windlass_meta::label_or_hash;
use windlass_remote::RemoteCluster;

use super::observed::{Latest, Observed, Obstacle, Way};
use super::operations::Place;
use super::plan;
use super::ports::HelmReleases;
use super::releases::Depth;
use super::{address, index};
use crate::rules;

/// What was seen, and what is needed to act on it.
pub(super) struct Sight {
    /// What was seen.
    pub(super) observed: Observed,
    /// The connection to the cluster.
    pub(super) connection: Option<Arc<RemoteCluster>>,
}

/// Reads. What is on the cluster is taken from memory, and asked for only where something is to be done about it.
pub(super) async fn observe(cx: &Cx, helm: &HelmReleases, proxy: Arc<HelmReleaseProxy>) -> Sight {
    let key = key_of(&proxy.metadata);
    let place = index::place_of(&proxy);
    // Before the release is looked at: what has ended by now shows there.
    let work = helm.0.operations.work(&key, place.as_ref());
    let (way, connection, is_leaving) = way(cx, helm, &proxy);
    let source = source(cx, &proxy);
    let version = version(cx, helm, &key, &proxy, &source);
    let values = helm.0.known.values(&proxy);
    let mut observed = Observed {
        way,
        cluster_is_leaving: is_leaving,
        source,
        values,
        version,
        unusable: helm.0.engine.unusable(),
        release: Seen::NotFound,
        owner: owner(&proxy),
        work,
        second: cx.now().as_second(),
        proxy,
    };
    if let (Some(connection), Some(place)) = (&connection, &place) {
        look(cx, helm, &mut observed, &key, (connection, place)).await;
    } else if observed.proxy.spec.release_name().is_none() && connection.is_some() {
        observed.second = helm.0.operations.second(&index::cluster_of(&observed.proxy), cx.now());
    }
    Sight { observed, connection }
}

async fn look(
    cx: &Cx,
    helm: &HelmReleases,
    observed: &mut Observed,
    key: &ObjectKey,
    (connection, place): (&Arc<RemoteCluster>, &Place),
) {
    let depth = if observed.work.running.is_some() {
        Depth::Labels
    } else if plan::reuses_values(&observed.proxy) {
        Depth::Values
    } else {
        Depth::Contents
    };
    let teller = helm.teller();
    let releases = &helm.0.releases;
    observed.release = releases.look(cx, connection, (key, &teller), place, depth).await;
    if plan::plan(observed, cx.now()).step.acts() {
        observed.release = releases.ask(connection, place, depth).await;
    }
}

/// The way to the cluster, and whether that is being deleted.
fn way(cx: &Cx, helm: &HelmReleases, proxy: &HelmReleaseProxy) -> (Way, Option<Arc<RemoteCluster>>, bool) {
    let key = index::cluster_of(proxy);
    let named = proxy
        .spec
        .cluster_ref
        .namespace
        .as_deref()
        .filter(|named| !named.is_empty());
    if let Some(other) = named.filter(|named| *named != key.namespace) {
        return (Way::Elsewhere(other.to_owned()), None, false);
    }
    let Some(cluster) = cx.cache::<Cluster>().get(&key) else {
        return (Way::Gone, None, false);
    };
    let is_leaving = cluster.metadata.deletion_timestamp.is_some();
    if !is_initialized(&cluster) {
        return (Way::Uninitialized, None, is_leaving);
    }
    match helm.0.clusters.get(&key) {
        Ok(connection) => (Way::Open, Some(connection), is_leaving),
        Err(error) => {
            let secret = ObjectKey::new(key.namespace.as_str(), format!("{}-kubeconfig", key.name));
            let is_there = cx.cache::<Secret>().get(&secret).is_some();
            let way = if is_there {
                Way::Closed(error.why)
            } else {
                Way::Unknown(error.why)
            };
            (way, None, is_leaving)
        }
    }
}

/// Whether the control plane of a Cluster answers; what is not said is not so.
pub(super) fn is_initialized(cluster: &Cluster) -> bool {
    let initialization = cluster
        .status
        .as_ref()
        .and_then(|status| status.initialization.as_ref());
    initialization.is_some_and(|done| done.control_plane_initialized == Some(true))
}

/// How a release is marked that belongs to the HelmChartProxy of this object. It says the same of every object that is made for the same
/// HelmChartProxy and Cluster, also after the management cluster was moved.
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
fn source(cx: &Cx, proxy: &HelmReleaseProxy) -> Result<ChartSource, Obstacle> {
    let spec = &proxy.spec;
    let insecure = spec.tls_config.as_ref().and_then(|tls| tls.insecure_skip_tls_verify) == Some(true);
    let (repo_url, credentials) = address::split(&spec.repo_url);
    let mut source = ChartSource {
        chart: spec.chart_name.clone(),
        version: spec.version().map(str::to_owned),
        // To a registry it would mean that TLS is not even tried.
        plain_http: insecure && repo_url.starts_with("http://"),
        repo_url,
        credentials,
        ..ChartSource::default()
    };
    if let (Some(key), Some(credentials)) = (index::credentials_of(proxy), &spec.credentials) {
        let text = read_secret(cx, &key, credentials.key(), reasons::GET_CREDENTIALS_FAILED)?;
        source.credentials = Some(Credentials::RegistryConfig(Hidden::new(text)));
    }
    let mut tls = Tls::default();
    if let Some(key) = index::authority_of(proxy) {
        tls.ca = Some(read_secret(
            cx,
            &key,
            words::CA_KEY,
            reasons::GET_CA_CERTIFICATE_FAILED,
        )?);
    }
    tls.insecure_skip_verify = insecure;
    source.tls = (tls != Tls::default()).then_some(tls);
    Ok(source)
}

fn read_secret(cx: &Cx, secret: &ObjectKey, key: &str, reason: &'static str) -> Result<String, Obstacle> {
    let missing = |message: String| Obstacle { reason, message };
    let Some(found) = cx.cache::<Secret>().get(secret) else {
        return Err(missing(format!(
            "there is no Secret {secret}; create it with key {key:?}"
        )));
    };
    let data = found.data.as_ref().and_then(|data| data.get(key));
    let data = data.ok_or_else(|| missing(format!("Secret {secret} has no key {key:?}")))?;
    // An error would quote what it could not read.
    let text =
        std::str::from_utf8(&data.0).map_err(|_| missing(format!("key {key:?} of Secret {secret} is not text")))?;
    Ok(text.to_owned())
}

/// The version that is wished for; the repository is followed where it has to be asked.
fn version(
    cx: &Cx,
    helm: &HelmReleases,
    key: &ObjectKey,
    proxy: &HelmReleaseProxy,
    source: &Result<ChartSource, Obstacle>,
) -> Latest {
    let charts = &helm.0.charts;
    if let Some(version) = plan::pinned(proxy.spec.version()) {
        charts.forget(key);
        return Latest::Pinned(version.to_owned());
    }
    let is_done = proxy.spec.is_install_once() && proxy.was_installed();
    let is_leaving = proxy.metadata.deletion_timestamp.is_some();
    match source {
        // What is wrong with an object is no question for its repository.
        Ok(source) if !is_leaving && !is_done && rules::release_problems(proxy).is_empty() => {
            charts.latest(cx.tasks(), key, source, &helm.waker())
        }
        _ => {
            charts.forget(key);
            Latest::Asking
        }
    }
}
