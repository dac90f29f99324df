//! The authorities by which aggregated API servers know clients: ConfigMap `kube-system/extension-apiserver-authentication`. The API servers
//! of the cluster add their own to it, and take out only what has expired.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Map, Value, json};
use windlass_controller_runtime::{ApiClient, PatchKind};
use windlass_meta::ObjectKey;
use windlass_pki::rotation::{fingerprints, without};

use crate::names::MANAGER;

const NAME: &str = "kube-system/extension-apiserver-authentication";
/// Clients, and the front proxy.
const KEYS: [&str; 2] = ["client-ca-file", "requestheader-client-ca-file"];

fn key() -> ObjectKey {
    ObjectKey::new("kube-system", "extension-apiserver-authentication")
}

/// The fingerprints of all certificates in it; none when it does not exist.
pub(super) async fn read(client: &ApiClient) -> Result<Option<BTreeSet<String>>, String> {
    let Some(map) = get(client).await? else {
        return Ok(None);
    };
    let mut found = BTreeSet::new();
    for (key, text) in texts(&map) {
        found.extend(fingerprints(text).map_err(|error| bad(key, &error.to_string()))?);
    }
    Ok(Some(found))
}

/// Takes certificates out. What has changed in the meantime is not overwritten.
pub(super) async fn take_out(client: &ApiClient, dropped: &BTreeSet<String>) -> Result<(), String> {
    let Some(map) = get(client).await? else {
        return Ok(());
    };
    let Some(patch) = patch(&map, dropped)? else {
        return Ok(());
    };
    let key = key();
    let patched = client.patch::<ConfigMap>(MANAGER, &key, PatchKind::Merge, &patch);
    patched.await.map_err(|e| format!("changing ConfigMap {NAME}: {e}"))
}

async fn get(client: &ApiClient) -> Result<Option<ConfigMap>, String> {
    let found = client.get::<ConfigMap>(&key()).await;
    found.map_err(|e| format!("reading ConfigMap {NAME}: {e}"))
}

fn texts(map: &ConfigMap) -> impl Iterator<Item = (&'static str, &String)> {
    KEYS.into_iter()
        .filter_map(|key| Some((key, map.data.as_ref()?.get(key)?)))
}

/// The change; none when there is nothing to take out.
fn patch(map: &ConfigMap, dropped: &BTreeSet<String>) -> Result<Option<Value>, String> {
    let mut data = Map::new();
    for (key, text) in texts(map) {
        let failed = |error: windlass_pki::PkiError| bad(key, &error.to_string());
        if fingerprints(text).map_err(failed)?.is_disjoint(dropped) {
            continue;
        }
        let kept = without(text, dropped).map_err(failed)?;
        // API servers cannot read an empty text. They put their own authorities where there is none.
        let kept = if kept.is_empty() { Value::Null } else { json!(kept) };
        data.insert(key.to_owned(), kept);
    }
    let version = &map.metadata.resource_version;
    Ok((!data.is_empty()).then(|| json!({ "metadata": { "resourceVersion": version }, "data": data })))
}

fn bad(key: &str, why: &str) -> String {
    format!("ConfigMap {NAME}: {key}: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pem(name: &str) -> String {
        format!("-----BEGIN CERTIFICATE-----\n{name}\n-----END CERTIFICATE-----\n")
    }

    fn map(data: &Value) -> ConfigMap {
        serde_json::from_value(json!({ "metadata": { "resourceVersion": "7" }, "data": data })).unwrap()
    }

    #[test]
    fn only_what_is_dropped_is_taken_out() {
        let (old, new, other) = (pem("b2xk"), pem("bmV3"), pem("b3RoZXI="));
        let dropped = fingerprints(&old).unwrap();
        let before = map(&json!({
            "client-ca-file": format!("# of before\n{old}{other}{new}"),
            "requestheader-client-ca-file": old,
            "requestheader-allowed-names": "[]",
        }));
        let change = patch(&before, &dropped).unwrap().unwrap();
        let data = json!({ "client-ca-file": format!("{other}{new}"), "requestheader-client-ca-file": null });
        assert_eq!(change, json!({ "metadata": { "resourceVersion": "7" }, "data": data }));
        let after = map(&json!({ "client-ca-file": format!("{other}{new}"), "requestheader-client-ca-file": "" }));
        assert_eq!(patch(&after, &dropped).unwrap(), None);
    }

    #[test]
    fn a_text_that_cannot_be_read_is_an_error_with_its_place() {
        let error = patch(&map(&json!({ "client-ca-file": "junk" })), &BTreeSet::new()).unwrap_err();
        assert!(
            error.starts_with(&format!("ConfigMap {NAME}: client-ca-file: ")),
            "{error}"
        );
    }
}
