//! ConfigMap `kube-public/cluster-info`: where the API server is, and which authorities machines that join trust. Pure.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use windlass_gocompat::yaml;

use super::authority::Bundle;
use super::endpoint::Endpoint;

/// Its name.
pub(super) const NAME: &str = "cluster-info";
/// Its namespace, which also clients without credentials read.
pub(super) const NAMESPACE: &str = "kube-public";
/// The key of the kubeconfig.
pub(super) const KUBECONFIG: &str = "kubeconfig";

/// The ConfigMap that `kubeadm init` leaves, without signatures by bootstrap tokens.
pub(super) fn config_map(endpoint: &Endpoint, authorities: &Bundle) -> Value {
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "", "cluster": {
            "certificate-authority-data": STANDARD.encode(authorities.to_pem()),
            "server": format!("https://{endpoint}"),
        } }],
        "contexts": null,
        "current-context": "",
        "users": null,
    });
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": NAME, "namespace": NAMESPACE },
        "data": { (KUBECONFIG): yaml::document(&kubeconfig) },
    })
}

/// The authorities in the kubeconfig of such a ConfigMap.
pub(super) fn authorities(kubeconfig: &str) -> Result<Bundle, String> {
    const FIELD: &str = "clusters[0].cluster.certificate-authority-data";
    let config = yaml::read_plain(kubeconfig).map_err(|_| "the kubeconfig is not YAML".to_owned())?;
    let data = config["clusters"][0]["cluster"]["certificate-authority-data"].as_str();
    let data = data.ok_or_else(|| format!("{FIELD} of the kubeconfig is missing"))?;
    let decoded = STANDARD.decode(data).ok().and_then(|pem| String::from_utf8(pem).ok());
    let pem = decoded.ok_or_else(|| format!("{FIELD} of the kubeconfig is not PEM in base64"))?;
    Bundle::from_pem(&pem).map_err(|error| format!("{FIELD} of the kubeconfig: {error}"))
}

/// What `kubeadm join` says of the public keys of authorities, of which at least one has to be pinned. Without pins all are accepted.
pub(super) fn pinned(authorities: &Bundle, pins: &[String]) -> Result<(), String> {
    let keys = authorities.pins();
    let is_pinned = |key: &String| pins.iter().any(|pin| pin.eq_ignore_ascii_case(key));
    if pins.is_empty() || keys.iter().any(is_pinned) {
        return Ok(());
    }
    Err(format!(
        "cluster CA found in {NAME} ConfigMap is invalid: none of the public keys {keys:?} are pinned"
    ))
}
