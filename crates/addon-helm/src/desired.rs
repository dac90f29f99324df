//! What the HelmReleaseProxy of a HelmChartProxy and a Cluster has to be, and how one that exists differs from that. Pure.

use k8s_openapi::api::core::v1::{ObjectReference, SecretReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::{Map, Value};
use windlass_api::core::Cluster;
use windlass_api::kind::ApiKind;
use windlass_api_ext::addons::{Credentials, HelmChartProxy, HelmReleaseProxy, HelmReleaseProxySpec, TLSConfig};
use windlass_controller_runtime::{Part as _, owner};

use crate::names;

/// A complete reference to a Cluster.
pub fn cluster_ref(namespace: &str, name: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some(Cluster::API_VERSION.to_owned()),
        kind: Some(Cluster::KIND.to_owned()),
        name: Some(name.to_owned()),
        namespace: Some(namespace.to_owned()),
        ..ObjectReference::default()
    }
}

/// The HelmReleaseProxy that a Cluster has to have, with the values that were computed for it.
pub fn release_proxy(proxy: &HelmChartProxy, cluster: &str, values: &str) -> HelmReleaseProxy {
    let (of, spec) = (proxy.key(), &proxy.spec);
    HelmReleaseProxy {
        metadata: ObjectMeta {
            name: Some(names::release_proxy(&spec.chart_name, &of.name, cluster)),
            namespace: Some(of.namespace.clone()),
            labels: Some(names::labels(&of.name, cluster).into()),
            owner_references: Some(vec![owner::controller_ref(proxy)]),
            ..ObjectMeta::default()
        },
        spec: HelmReleaseProxySpec {
            cluster_ref: cluster_ref(&of.namespace, cluster),
            chart_name: spec.chart_name.clone(),
            repo_url: spec.repo_url.clone(),
            release_name: spec.release_name().map(str::to_owned),
            namespace: Some(spec.release_namespace().to_owned()),
            version: spec.version.clone().filter(|version| !version.is_empty()),
            values: Some(values.to_owned()).filter(|values| !values.is_empty()),
            reconcile_strategy: spec.reconcile_strategy.clone().filter(|strategy| !strategy.is_empty()),
            options: Some(spec.options.clone().unwrap_or_default().completed()),
            credentials: spec
                .credentials
                .as_ref()
                .map(|of_chart| credentials(of_chart, &of.namespace)),
            tls_config: spec.tls_config.as_ref().map(|of_chart| tls(of_chart, &of.namespace)),
        },
        status: None,
    }
}

fn secret(reference: &SecretReference, namespace: &str) -> SecretReference {
    let given = reference.namespace.clone().filter(|given| !given.is_empty());
    SecretReference {
        name: reference.name.clone(),
        namespace: Some(given.unwrap_or_else(|| namespace.to_owned())),
    }
}

fn credentials(of_chart: &Credentials, namespace: &str) -> Credentials {
    Credentials {
        secret: secret(&of_chart.secret, namespace),
        key: of_chart.key().to_owned(),
    }
}

fn tls(of_chart: &TLSConfig, namespace: &str) -> TLSConfig {
    TLSConfig {
        ca_secret: of_chart
            .ca_secret
            .as_ref()
            .map(|reference| secret(reference, namespace)),
        insecure_skip_tls_verify: of_chart.insecure_skip_tls_verify,
    }
}

/// What has to happen to a HelmReleaseProxy that exists.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Nothing.
    None,
    /// A JSON merge patch of the object. What others have put into its spec goes with it.
    Patch(Value),
    /// It has to go, and another one has to come when it is gone: these fields cannot be changed on a release.
    Reinstall(Vec<&'static str>),
}

/// How a HelmReleaseProxy differs from what it has to be. Its name does not count, and its release keeps the name that it has
/// unless another one is wanted.
pub fn change(want: &HelmReleaseProxy, have: &HelmReleaseProxy) -> Change {
    let fixed = fixed(&want.spec, &have.spec);
    if fixed.is_empty() {
        patch(want, have).map_or(Change::None, Change::Patch)
    } else {
        Change::Reinstall(fixed)
    }
}

/// The labels and the owner that a HelmReleaseProxy lacks, whatever becomes of its spec.
pub fn adoption(want: &HelmReleaseProxy, have: &HelmReleaseProxy) -> Option<Value> {
    let metadata = metadata(want, have)?;
    Some(serde_json::json!({ "metadata": metadata }))
}

/// The fields that differ and are fixed when a release is installed.
fn fixed(want: &HelmReleaseProxySpec, have: &HelmReleaseProxySpec) -> Vec<&'static str> {
    let renamed = match (want.release_name(), have.release_name()) {
        (Some(want), Some(have)) => want != have,
        _ => false,
    };
    let differ = [
        ("chartName", want.chart_name != have.chart_name),
        ("repoURL", want.repo_url != have.repo_url),
        ("releaseName", renamed),
        ("namespace", want.release_namespace() != have.release_namespace()),
    ];
    differ
        .into_iter()
        .filter(|(_, differs)| *differs)
        .map(|(name, _)| name)
        .collect()
}

fn patch(want: &HelmReleaseProxy, have: &HelmReleaseProxy) -> Option<Value> {
    let mut spec = want.spec.clone();
    if spec.release_name.is_none() {
        spec.release_name.clone_from(&have.spec.release_name);
    }
    // Two ways to say the same, and a field that other controllers do not let change.
    if spec.is_install_once() == have.spec.is_install_once() {
        spec.reconcile_strategy.clone_from(&have.spec.reconcile_strategy);
    }
    let (spec, metadata) = (difference(&have.spec.to_json(), &spec.to_json()), metadata(want, have));
    let mut patch = Map::new();
    patch.extend(spec.map(|spec| ("spec".to_owned(), spec)));
    patch.extend(metadata.map(|metadata| ("metadata".to_owned(), metadata)));
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// A list of owners is replaced as a whole, so such a patch holds only for the version that was seen.
fn metadata(want: &HelmReleaseProxy, have: &HelmReleaseProxy) -> Option<Value> {
    let mut patch = Map::new();
    let wanted: Vec<(String, String)> = want.metadata.labels.clone().unwrap_or_default().into_iter().collect();
    if !names::has_labels(&have.metadata, &wanted) {
        patch.insert(
            "labels".to_owned(),
            wanted.into_iter().map(|(k, v)| (k, Value::from(v))).collect(),
        );
    }
    let mut owners = have.metadata.owner_references.clone().unwrap_or_default();
    for wanted in want.metadata.owner_references.iter().flatten() {
        owner::ensure(&mut owners, wanted.clone());
    }
    if have.metadata.owner_references.as_deref() != Some(&owners[..]) {
        let encoded = owners.iter().map(OwnerReference::to_json);
        patch.insert("ownerReferences".to_owned(), encoded.collect());
        patch.insert(
            "resourceVersion".to_owned(),
            have.metadata.resource_version.clone().into(),
        );
    }
    if !patch.is_empty() {
        patch.insert("uid".to_owned(), have.metadata.uid.clone().into());
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// The merge patch that makes `want` of `have`.
fn difference(have: &Value, want: &Value) -> Option<Value> {
    let (Value::Object(old), Value::Object(new)) = (have, want) else {
        return (have != want).then(|| want.clone());
    };
    let mut patch = Map::new();
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in new {
        let changed = match old.get(key) {
            Some(old) => difference(old, value),
            None => Some(value.clone()),
        };
        patch.extend(changed.map(|changed| (key.clone(), changed)));
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests;
