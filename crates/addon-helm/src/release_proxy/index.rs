//! Indexes of HelmReleaseProxies by the objects that they depend on.

use windlass_api_ext::addons::HelmReleaseProxy;
use windlass_controller_runtime::{Cache, ObjectKey, key_of};

use super::operations::Place;

/// By the release on its cluster.
pub(super) const BY_PLACE: &str = "helm release";
/// By the Cluster.
const BY_CLUSTER: &str = "helm cluster";
/// By the Secrets that are read.
const BY_SECRET: &str = "helm secret";

/// Adds all of these.
pub(super) fn add(proxies: &Cache<HelmReleaseProxy>) {
    proxies.add_index(BY_PLACE, |proxy| place_of(proxy).iter().map(place).collect());
    proxies.add_index(BY_CLUSTER, |proxy| vec![cluster_of(proxy).to_string()]);
    proxies.add_index(BY_SECRET, |proxy| {
        let secrets = [credentials_of(proxy), authority_of(proxy)];
        secrets.into_iter().flatten().map(|key| key.to_string()).collect()
    });
}

/// Those of a Cluster.
pub(super) fn of_cluster(proxies: &Cache<HelmReleaseProxy>, cluster: &ObjectKey) -> Vec<ObjectKey> {
    keys(proxies, BY_CLUSTER, &cluster.to_string())
}

/// Those that read a Secret.
pub(super) fn of_secret(proxies: &Cache<HelmReleaseProxy>, secret: &ObjectKey) -> Vec<ObjectKey> {
    keys(proxies, BY_SECRET, &secret.to_string())
}

fn keys(proxies: &Cache<HelmReleaseProxy>, index: &str, value: &str) -> Vec<ObjectKey> {
    let found = proxies.by_index(index, value);
    found.iter().map(|proxy| key_of(&proxy.metadata)).collect()
}

/// What a place is found by.
pub(super) fn place(place: &Place) -> String {
    format!("{} {}/{}", place.cluster, place.namespace, place.name)
}

/// The Cluster, which is in the same namespace.
pub(super) fn cluster_of(proxy: &HelmReleaseProxy) -> ObjectKey {
    ObjectKey::new(namespace_of(proxy), proxy.spec.cluster_name())
}

/// The release, once it has a name.
pub(super) fn place_of(proxy: &HelmReleaseProxy) -> Option<Place> {
    let name = proxy.spec.release_name()?;
    Some(Place {
        cluster: cluster_of(proxy),
        namespace: proxy.spec.release_namespace().to_owned(),
        name: name.to_owned(),
    })
}

/// The Secret with the credentials.
pub(super) fn credentials_of(proxy: &HelmReleaseProxy) -> Option<ObjectKey> {
    let secret = &proxy.spec.credentials.as_ref()?.secret;
    secret_key(proxy, secret.namespace.as_deref(), secret.name.as_deref())
}

/// The Secret with the authorities.
pub(super) fn authority_of(proxy: &HelmReleaseProxy) -> Option<ObjectKey> {
    let secret = proxy.spec.tls_config.as_ref()?.ca_secret.as_ref()?;
    secret_key(proxy, secret.namespace.as_deref(), secret.name.as_deref())
}

fn secret_key(proxy: &HelmReleaseProxy, namespace: Option<&str>, name: Option<&str>) -> Option<ObjectKey> {
    let name = name.filter(|name| !name.is_empty())?;
    let namespace = namespace.filter(|namespace| !namespace.is_empty());
    Some(ObjectKey::new(namespace.unwrap_or(namespace_of(proxy)), name))
}

fn namespace_of(proxy: &HelmReleaseProxy) -> &str {
    proxy.metadata.namespace.as_deref().unwrap_or_default()
}
