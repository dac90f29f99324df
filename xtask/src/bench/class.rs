//! The example class with the start-up delays of Cluster API's own in-memory example, or with keys of an algorithm.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

const EXAMPLE: &str = "examples/clusterclass-quick-start.yaml";
/// The patch that sets the delays by a variable; it would override ours.
const PATCH: &str = "startup-duration";

/// Writes the class with delays to a folder. Returns its path.
pub(super) fn with_delays(root: &Path, folder: &Path) -> Result<PathBuf, String> {
    written(root, folder, delayed)
}

/// Writes the class whose control planes have keys of an algorithm to a folder. Returns its path.
pub(super) fn with_keys(root: &Path, folder: &Path, algorithm: &str) -> Result<PathBuf, String> {
    written(root, folder, |mut document| {
        if document["kind"] == "KubeadmControlPlaneTemplate" {
            let kubeadm = &mut document["spec"]["template"]["spec"]["kubeadmConfigSpec"];
            kubeadm["clusterConfiguration"]["encryptionAlgorithm"] = json!(algorithm);
        }
        document
    })
}

fn written(root: &Path, folder: &Path, change: impl Fn(Value) -> Value) -> Result<PathBuf, String> {
    let text = std::fs::read_to_string(root.join(EXAMPLE)).map_err(|error| format!("{EXAMPLE}: {error}"))?;
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).map_err(|error| format!("{EXAMPLE}: {error}"))?;
    let texts: Vec<String> = documents
        .into_iter()
        .map(|document| change(document).to_string())
        .collect();
    let file = folder.join("class.yaml");
    std::fs::write(&file, texts.join("\n---\n")).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(file)
}

fn delayed(mut document: Value) -> Value {
    if let Some(patches) = document["spec"]["patches"].as_array_mut() {
        patches.retain(|patch| patch["name"] != PATCH);
    }
    if document["kind"] == "DevMachineTemplate" {
        let takes = |duration: &str| json!({"provisioning": {"startupDuration": duration, "startupJitter": "0.2"}});
        document["spec"]["template"]["spec"]["backend"]["inMemory"] =
            json!({"vm": takes("10s"), "node": takes("2s"), "apiServer": takes("2s"), "etcd": takes("2s")});
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_delays_differ_from_the_example() {
        let folder = crate::bench::child::Folder::new().unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let file = with_delays(&root, folder.path()).unwrap();
        let text = std::fs::read_to_string(file).unwrap();
        assert_eq!(text.matches("\"10s\"").count(), 2, "{text}");
        assert!(!text.contains(PATCH) && text.contains("cert-sans"), "{text}");
    }

    #[test]
    fn keys_have_the_algorithm_of_the_measurement() {
        let folder = crate::bench::child::Folder::new().unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let file = with_keys(&root, folder.path(), "ECDSA-P256").unwrap();
        let text = std::fs::read_to_string(file).unwrap();
        assert_eq!(
            text.matches(r#""encryptionAlgorithm":"ECDSA-P256""#).count(),
            1,
            "{text}"
        );
    }
}
