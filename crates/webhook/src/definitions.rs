//! The definitions of the API server: which version references name, and where objects of our kinds are converted.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_api_older::{OLDER, References, undefined, without_contract};
use windlass_contract::choose_version;
use windlass_controller_runtime::{ApiClient, Cache, ObjectKey, RequestError, Tasks, gvk_from};
use windlass_meta::GroupKind;

use crate::conversion::{PATH, REVIEW_VERSIONS};
use crate::error::WebhookError;
use crate::target::Target;

const URL: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// How often a definition is read again that another client changes at the same time.
const TRIES: usize = 10;
/// The index of definitions by group and kind.
const BY_KIND: &str = "kind";
/// The annotations by which cert-manager writes its CA certificates to a definition. Those of Cluster API have the first one.
const INJECTED: [&str; 3] = [
    "cert-manager.io/inject-ca-from",
    "cert-manager.io/inject-ca-from-secret",
    "cert-manager.io/inject-apiserver-ca",
];

/// A CustomResourceDefinition without its schemas.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Definition {
    metadata: kube::api::ObjectMeta,
    spec: Spec,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Spec {
    group: String,
    names: Names,
    versions: Vec<Version>,
    #[serde(default)]
    conversion: Value,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Names {
    kind: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Version {
    name: String,
    #[serde(default)]
    served: bool,
}

windlass_api::codec!(Definition);

fn index_value(group: &str, kind: &str) -> String {
    format!("{group}/{kind}")
}

/// The cached definitions.
#[derive(Clone)]
pub(crate) struct Definitions(Cache<Definition>);

impl Definitions {
    /// Follows the definitions of a server.
    pub(crate) fn follow(client: &kube::Client, tasks: &Tasks) -> Self {
        let gvk = gvk_from("apiextensions.k8s.io/v1", "CustomResourceDefinition");
        let cache = Cache::<Definition>::stand_alone(client.clone(), URL, gvk, tasks);
        cache.add_index(BY_KIND, |definition: &Definition| {
            vec![index_value(&definition.spec.group, &definition.spec.names.kind)]
        });
        Self(cache)
    }

    /// The cache itself.
    pub(crate) fn cache(&self) -> &Cache<Definition> {
        &self.0
    }

    fn stored(&self, name: &str) -> Option<Arc<Definition>> {
        self.0.get(&ObjectKey::cluster_scoped(name))
    }
}

impl References for Definitions {
    fn api_version(&self, kind: &GroupKind) -> Result<String, String> {
        if !self.0.is_synced() {
            return Err("the CustomResourceDefinitions of the API server are not read yet; try again".to_owned());
        }
        let found = self.0.by_index(BY_KIND, &index_value(&kind.group, &kind.kind));
        let found = found.first().ok_or_else(|| undefined(kind))?;
        let labels = found.metadata.labels.clone().unwrap_or_default();
        let serves = |version: &str| found.spec.versions.iter().any(|one| one.name == version && one.served);
        let (_, version) = choose_version(&labels, serves).ok_or_else(|| without_contract(kind))?;
        Ok(kind.with_version(version).api_version())
    }
}

/// The definitions of our kinds with older versions, and these versions.
pub(crate) fn converted() -> BTreeMap<String, Vec<&'static str>> {
    let mut out: BTreeMap<String, Vec<&'static str>> = BTreeMap::new();
    for older in OLDER {
        let name = format!("{}.{}", older.plural, older.group);
        out.entry(name).or_default().push(older.version);
    }
    out
}

/// The desired `spec.conversion`. Without CA certificates, those that another writer has set stay.
pub(crate) fn desired(target: &Target, authorities: Option<&str>) -> Value {
    let mut client = target.client_config(PATH);
    if let Some(authorities) = authorities {
        client["caBundle"] = STANDARD.encode(authorities).into();
    }
    json!({
        "strategy": "Webhook",
        "webhook": {"conversionReviewVersions": REVIEW_VERSIONS, "clientConfig": client},
    })
}

/// Whether a stored conversion is the desired one.
fn is_conversion(stored: &Value, want: &Value) -> bool {
    let bundle = "/webhook/clientConfig/caBundle";
    if want.pointer(bundle).is_some() || stored.pointer(bundle).is_none() {
        return stored == want;
    }
    let mut stored = stored.clone();
    if let Some(client) = stored
        .pointer_mut("/webhook/clientConfig")
        .and_then(Value::as_object_mut)
    {
        client.remove("caBundle");
    }
    stored == *want
}

/// Whether CA certificates of its own are desired: then cert-manager must not write others.
fn has_authorities(want: &Value) -> bool {
    want.pointer("/webhook/clientConfig/caBundle").is_some()
}

/// The whole stored definition with the desired conversion, with its older versions served, and without what would have cert-manager replace
/// the CA certificates again. `None` if it is right.
fn corrected(stored: &Value, want: &Value, older: &[&str]) -> Option<Value> {
    let mut out = stored.clone();
    if !is_conversion(&stored["spec"]["conversion"], want) {
        let bundle = stored.pointer("/spec/conversion/webhook/clientConfig/caBundle");
        let mut conversion = want.clone();
        let client = &mut conversion["webhook"]["clientConfig"];
        if let (None, Some(bundle)) = (client.get("caBundle"), bundle) {
            client["caBundle"] = bundle.clone();
        }
        out["spec"]["conversion"] = conversion;
    }
    for version in out["spec"]["versions"].as_array_mut().into_iter().flatten() {
        if version["name"].as_str().is_some_and(|name| older.contains(&name)) {
            version["served"] = true.into();
        }
    }
    if let Some(annotations) = out
        .pointer_mut("/metadata/annotations")
        .and_then(Value::as_object_mut)
        .filter(|_| has_authorities(want))
    {
        annotations.retain(|key, _| !INJECTED.contains(&key.as_str()));
    }
    (out != *stored).then_some(out)
}

/// The definitions that are to be kept right, with their last known state.
pub(crate) struct Kept {
    definitions: Definitions,
    older: BTreeMap<String, Vec<&'static str>>,
    /// The revisions of the last writes, which the cache may not have seen yet.
    written: BTreeMap<String, u64>,
}

impl Kept {
    pub(crate) fn new(definitions: Definitions) -> Self {
        Self {
            definitions,
            older: converted(),
            written: BTreeMap::new(),
        }
    }

    /// The definitions that are not as desired. One that is not there is not kept.
    pub(crate) fn outdated(&self, want: &Value) -> Vec<String> {
        let is_outdated = |(name, older): &(&String, &Vec<&'static str>)| {
            let Some(stored) = self.definitions.stored(name) else {
                return false;
            };
            let revision = stored
                .metadata
                .resource_version
                .as_deref()
                .and_then(|text| text.parse().ok());
            let is_behind = self.written.get(*name) > revision.as_ref();
            let is_off = |version: &Version| !version.served && older.contains(&version.name.as_str());
            let mut annotations = stored.metadata.annotations.iter().flatten();
            let is_injected = annotations.any(|(key, _)| INJECTED.contains(&key.as_str())) && has_authorities(want);
            let is_wrong = !is_conversion(&stored.spec.conversion, want) || is_injected;
            !is_behind && (is_wrong || stored.spec.versions.iter().any(is_off))
        };
        self.older
            .iter()
            .filter(is_outdated)
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// Corrects a definition, if it is there.
    pub(crate) async fn correct(
        &mut self,
        client: &kube::Client,
        name: &str,
        want: &Value,
    ) -> Result<(), WebhookError> {
        let client = ApiClient::from(client);
        let url = format!("{URL}/{name}");
        let older = self.older.get(name).map_or(&[][..], Vec::as_slice);
        let mut tries = 0;
        let replaced = loop {
            let stored = client.get_value(&url).await;
            let stored = stored.map_err(|error| failed(name, "read", error))?;
            let Some(corrected) = stored.and_then(|stored| corrected(&stored, want, older)) else {
                return Ok(());
            };
            tries += 1;
            match client.replace_value(&url, &corrected).await {
                // Other replicas correct it at the same time, and the server writes its status.
                Err(error) if error.is_conflict() && tries < TRIES => {}
                replaced => break replaced.map_err(|error| failed(name, "replace", error))?,
            }
        };
        tracing::info!(name, "the CustomResourceDefinition names this conversion webhook");
        if let Some(revision) = replaced["metadata"]["resourceVersion"]
            .as_str()
            .and_then(|text| text.parse().ok())
        {
            self.written.insert(name.to_owned(), revision);
        }
        Ok(())
    }

    /// The names of all definitions that are kept.
    pub(crate) fn names(&self) -> Vec<String> {
        self.older.keys().cloned().collect()
    }
}

fn failed(name: &str, verb: &'static str, source: RequestError) -> WebhookError {
    WebhookError::Request {
        verb,
        what: format!("CustomResourceDefinition {name}"),
        needs: "get, list, watch and update on customresourcedefinitions.apiextensions.k8s.io".to_owned(),
        source: Box::new(source),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_corrected_only_when_it_differs() {
        let target = Target::service("ns/name:9443").unwrap();
        let want = desired(&target, Some("PEM"));
        assert_eq!(
            want["webhook"]["clientConfig"],
            json!({"service": {"namespace": "ns", "name": "name", "port": 9443, "path": "/convert"}, "caBundle": "UEVN"})
        );
        let stored = |conversion: Value, served: bool| {
            json!({"spec": {
                "conversion": conversion,
                "versions": [{"name": "v1beta1", "served": served}, {"name": "v1beta2", "served": true}],
            }})
        };
        let right = stored(want.clone(), true);
        let check = |before: &Value, expect: Option<&Value>| {
            assert_eq!(corrected(before, &want, &["v1beta1"]).as_ref(), expect);
        };
        check(&right, None);
        check(&stored(want.clone(), false), Some(&right));
        check(&stored(json!({"strategy": "None"}), true), Some(&right));
        let other = desired(&target, Some("OLD"));
        check(&stored(other, true), Some(&right));
    }

    #[test]
    fn cert_manager_does_not_replace_certificates_of_this_process() {
        let target = Target::service("ns/name:9443").unwrap();
        let with = |annotations: Value, conversion: &Value| json!({"metadata": {"annotations": annotations}, "spec": {"conversion": conversion, "versions": []}});
        let injected = json!({"cert-manager.io/inject-ca-from": "capi-system/capi-serving-cert", "other": ""});
        let own = desired(&target, Some("PEM"));
        let expect = with(json!({"other": ""}), &own);
        assert_eq!(
            corrected(&with(injected.clone(), &own), &own, &[]),
            Some(expect.clone())
        );
        assert_eq!(corrected(&expect, &own, &[]), None);
        let of_others = desired(&target, None);
        assert_eq!(
            corrected(&with(injected, &own), &of_others, &[]),
            None,
            "certificates of others are wanted"
        );
    }

    #[test]
    fn certificates_that_others_set_stay() {
        let target = Target::url("https://h").unwrap();
        let (want, injected) = (desired(&target, None), desired(&target, Some("PEM")));
        let stored = json!({"spec": {"conversion": injected, "versions": []}});
        assert_eq!(corrected(&stored, &want, &[]), None);
        let moved = desired(&Target::url("https://i").unwrap(), None);
        let corrected = corrected(&stored, &moved, &[]).unwrap();
        let client = &corrected["spec"]["conversion"]["webhook"]["clientConfig"];
        assert_eq!(*client, json!({"url": "https://i:443/convert", "caBundle": "UEVN"}));
    }
}
