//! What kubeadm tells machines that join: ConfigMap `kube-public/cluster-info` with a kubeconfig that has no credentials.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use windlass_gocompat::yaml;
use windlass_meta::ObjectKey;

const KEY: &str = "kubeconfig";
const FIELD: &str = "certificate-authority-data";

/// Where it is.
pub(super) fn key() -> ObjectKey {
    ObjectKey::new("kube-public", "cluster-info")
}

/// The certificates that machines must trust.
pub(super) fn authorities(map: &ConfigMap) -> Result<String, String> {
    let document = document(map)?;
    let data = document["clusters"][0]["cluster"][FIELD].as_str().unwrap_or_default();
    let bytes = STANDARD
        .decode(data)
        .map_err(|error| bad(&format!("{FIELD}: {error}")))?;
    String::from_utf8(bytes).map_err(|_| bad(&format!("{FIELD} is not PEM")))
}

/// The change that replaces them. Kubernetes' own controller signs the document again for each bootstrap token.
pub(super) fn patch(map: &ConfigMap, authorities: &str) -> Result<Value, String> {
    let mut document = document(map)?;
    for cluster in document["clusters"].as_array_mut().into_iter().flatten() {
        cluster["cluster"][FIELD] = json!(STANDARD.encode(authorities));
    }
    Ok(json!({
        "metadata": { "resourceVersion": map.metadata.resource_version },
        "data": { KEY: yaml::document(&document) },
    }))
}

fn document(map: &ConfigMap) -> Result<Value, String> {
    let text = map.data.as_ref().and_then(|data| data.get(KEY));
    let text = text.ok_or_else(|| bad("it has no kubeconfig"))?;
    let document = yaml::read_plain(text).map_err(|error| bad(&error.to_string()))?;
    if !document["clusters"][0]["cluster"].is_object() {
        return Err(bad("its kubeconfig has no cluster"));
    }
    Ok(document)
}

fn bad(why: &str) -> String {
    format!("ConfigMap kube-public/cluster-info: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(kubeconfig: &str) -> ConfigMap {
        serde_json::from_value(json!({ "metadata": { "resourceVersion": "7" }, "data": { KEY: kubeconfig } })).unwrap()
    }

    #[test]
    fn the_certificates_are_replaced_and_the_rest_stays() {
        let text = format!(
            "apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: {}\n    server: https://a:1\n  name: \"\"\nkind: Config\n",
            STANDARD.encode("old")
        );
        let map = map(&text);
        assert_eq!(authorities(&map).unwrap(), "old");
        let patch = patch(&map, "old and new").unwrap();
        assert_eq!(patch["metadata"]["resourceVersion"], "7");
        let changed = patch["data"][KEY].as_str().unwrap();
        assert!(changed.contains("server: https://a:1"), "{changed}");
        let changed = self::map(changed);
        assert_eq!(authorities(&changed).unwrap(), "old and new");
    }

    #[test]
    fn a_document_that_cannot_be_read_is_an_error_with_its_place() {
        for text in [
            "",
            "a: [",
            "clusters: []",
            "clusters: [{cluster: {certificate-authority-data: '%'}}]",
        ] {
            let error = authorities(&map(text)).unwrap_err();
            assert!(error.starts_with("ConfigMap kube-public/cluster-info: "), "{error}");
        }
    }
}
