//! What is written back to ConfigMap `kubeadm-config` is a document that the real kubeadm takes.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use windlass_api_kubeadm::bootstrap::ClusterConfiguration;
use windlass_envtest::Tools;
use windlass_kubeadm::stored::{initial, readable, updated, with_dns};

use crate::kubeadm::{KUBEADMS, places, validate, without};
use crate::samples::everything;

/// Two documents as they are in clusters: that of a simulated cluster, and that which a kubeadm makes with its own defaults.
fn documents(kubeadm: &Path, version: &str) -> [(&'static str, String); 2] {
    let printed = Command::new(kubeadm)
        .args(["config", "print", "init-defaults"])
        .output();
    let printed = String::from_utf8(printed.unwrap().stdout).unwrap();
    let own = printed
        .split("\n---\n")
        .find(|document| document.contains("\nkind: ClusterConfiguration\n"));
    [
        ("simulated", initial("demo", "10.0.0.1:6443", version).unwrap()),
        ("its own", own.unwrap().to_owned()),
    ]
}

/// Every field of the section of the cluster and a gate that kubeadm knows, each field missing once (some at a time), and no field at all.
fn sections(gate: &str) -> Vec<ClusterConfiguration> {
    let mut all = everything()["clusterConfiguration"].take();
    all["featureGates"] = json!({ gate: true });
    let mut fields = Vec::new();
    places(&all, "", &mut fields);
    let mut shapes = vec![all.clone(), json!({})];
    for chunk in fields.chunks(8) {
        let missing: Vec<&str> = chunk.iter().map(String::as_str).collect();
        shapes.push(without(all.clone(), &missing));
    }
    let mut external = all;
    external["etcd"] = json!({"external": {
        "endpoints": ["https://10.0.0.2:2379"], "caFile": "/c", "certFile": "/d", "keyFile": "/e",
    }});
    shapes.push(external);
    let read = |shape: Value| serde_json::from_value(shape).unwrap();
    shapes.into_iter().map(read).collect()
}

/// Writes a document where kubeadm reads it.
fn check(kubeadm: &Path, text: &str, of: &str) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    validate(kubeadm, file.path(), of);
}

#[test]
fn the_document_that_is_written_back_is_one_that_kubeadm_of_the_new_version_takes() {
    let [(newest, newest_version, newest_gate), (old, old_version, old_gate)] = KUBEADMS;
    let (Some(newest), Some(old)) = (Tools::required(newest), Tools::required(old)) else {
        return;
    };
    for (name, before) in documents(&old, old_version) {
        check(&old, &before, &format!("before, {name}"));
        for config in sections(old_gate) {
            let after = updated(&before, &config, "v1.30.7").unwrap().unwrap();
            check(&old, &after, &format!("1.30.7, {name}"));
            let dns = with_dns(&after, config.dns.as_ref(), "v1.30.7").unwrap();
            check(
                &old,
                dns.as_deref().unwrap_or(&after),
                &format!("DNS of 1.30.7, {name}"),
            );
        }
        for config in sections(newest_gate) {
            // Between these two each kubeadm takes its own version and the one before it, and all have one format.
            for version in ["v1.31.0", newest_version] {
                let after = updated(&before, &config, version).unwrap().unwrap();
                let of = format!("{version}, {name}");
                assert!(readable(&after, version).is_ok(), "{of}: {after}");
                let shown = after.replace(&format!("kubernetesVersion: {version}"), "kubernetesVersion: v1.36.0");
                assert!(shown.contains("kubernetesVersion: v1.36.0"), "{of}: {after}");
                check(&newest, &shown, &of);
            }
        }
    }
    for (name, before) in documents(&newest, newest_version) {
        for config in sections(newest_gate) {
            let after = updated(&before, &config, "v1.36.2").unwrap().unwrap();
            check(&newest, &after, &format!("1.36.2, {name}"));
            let dns = with_dns(&after, config.dns.as_ref(), "v1.36.2").unwrap();
            check(
                &newest,
                dns.as_deref().unwrap_or(&after),
                &format!("DNS of 1.36.2, {name}"),
            );
        }
    }
}

#[test]
fn kubeadm_refuses_what_is_said_not_to_be_readable() {
    let (_, version, _) = KUBEADMS[1];
    let Some(kubeadm) = Tools::required("kubeadm-1.30") else {
        return;
    };
    let document = initial("demo", "10.0.0.1:6443", version).unwrap();
    let later = updated(&document, &ClusterConfiguration::default(), "v1.31.0")
        .unwrap()
        .unwrap();
    let listed = document.replace(
        "    authorization-mode: Node,RBAC\n",
        "    - {name: authorization-mode, value: Node}\n",
    );
    assert_ne!(listed, document);
    for (text, words) in [(later, "kubeadm.k8s.io/v1beta4"), (listed, "extraArgs")] {
        assert!(
            readable(&text, version).unwrap_err().to_string().contains(words),
            "{text}"
        );
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &text).unwrap();
        let checked = Command::new(&kubeadm)
            .args(["config", "validate", "--config"])
            .arg(file.path())
            .output();
        let checked = checked.unwrap();
        let said = String::from_utf8_lossy(&checked.stderr);
        assert!(!checked.status.success() && said.contains(words), "{said}: {text}");
    }
}
