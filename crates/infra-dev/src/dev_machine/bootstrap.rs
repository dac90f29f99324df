//! What a simulated machine reads of its bootstrap data: the files that kubeadm needs. Pure.
//!
//! A machine acts on the data that it was started with, which may be older than the Secrets of its cluster. Data in a form that is not known
//! here has no files.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use windlass_gocompat::yaml;
use windlass_kubeadm::administrator::KUBECONFIG_PHASE;
use windlass_pki::Purpose;

/// Where kubeadm keeps certificates.
const FOLDER: &str = "/etc/kubernetes/pki/";

/// The files of a machine by path. They have no `Debug`: contents may be keys.
#[derive(Default)]
pub(super) struct Files(BTreeMap<String, String>);

impl Files {
    /// The files in bootstrap data: in a cloud-config, or in a configuration of Ignition.
    pub(super) fn of(data: &str) -> Self {
        let ignition = || serde_json::from_str(data).ok();
        let document: Option<Value> = if data.trim_start().starts_with('{') {
            ignition()
        } else {
            yaml::read_plain(data).ok()
        };
        let document = document.unwrap_or_default();
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let written = list(&document["write_files"])
            .into_iter()
            .filter_map(|file| written(&file));
        let ignited = list(&document["storage"]["files"])
            .into_iter()
            .filter_map(|file| ignited(&file));
        Self(written.chain(ignited).collect())
    }

    /// Certificates and key of an authority, if the machine comes with both.
    pub(super) fn authority(&self, purpose: Purpose) -> Option<(&str, &str)> {
        let (certificates, key) = purpose.files()?;
        let file = |name: &str| self.0.get(&format!("{FOLDER}{name}")).map(String::as_str);
        Some((file(certificates)?, file(key)?))
    }

    /// Whether the control plane that the machine belongs to has its etcd elsewhere: the machine that makes the cluster has it in its
    /// configuration, and those that join come with the API server's certificate for it.
    pub(super) fn external_etcd(&self) -> bool {
        let comes_with = |purpose: Purpose| {
            let file = purpose.files().map(|(certificate, _)| format!("{FOLDER}{certificate}"));
            file.is_some_and(|path| self.0.contains_key(&path))
        };
        self.configuration("ClusterConfiguration")["etcd"]["external"].is_object()
            || comes_with(Purpose::ApiServerEtcdClient)
    }

    /// The public keys of authorities that `kubeadm join` accepts, by the JoinConfiguration among the files.
    pub(super) fn pins(&self) -> Vec<String> {
        let configuration = self.join_configuration();
        texts(&configuration["discovery"]["bootstrapToken"]["caCertHashes"])
    }

    /// Whether the kubeconfigs of a control plane machine are there before `kubeadm join`, which leaves their phase out.
    pub(super) fn prepare_kubeconfigs(&self) -> bool {
        let skipped = texts(&self.join_configuration()["skipPhases"]);
        skipped.iter().any(|phase| phase == KUBECONFIG_PHASE)
    }

    fn join_configuration(&self) -> Value {
        self.configuration("JoinConfiguration")
    }

    /// The document of that kind among the files.
    fn configuration(&self, kind: &str) -> Value {
        let texts = self.0.values().filter(|text| text.contains(kind));
        let documents = texts.flat_map(|text| yaml::documents(text));
        let mut configurations = documents
            .filter_map(|document| yaml::read_plain(document.text).ok())
            .filter(|document| document["kind"] == kind);
        configurations.next().unwrap_or_default()
    }
}

/// The texts of a list.
fn texts(list: &Value) -> Vec<String> {
    let texts = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

/// A file of a cloud-config.
fn written(file: &Value) -> Option<(String, String)> {
    let (path, content) = (file["path"].as_str()?, file["content"].as_str()?);
    let content = match file["encoding"].as_str().unwrap_or_default() {
        "" | "text/plain" => content.to_owned(),
        "b64" | "base64" => String::from_utf8(STANDARD.decode(content.trim()).ok()?).ok()?,
        _ => return None,
    };
    Some((path.to_owned(), content))
}

/// A file of an Ignition configuration, whose content is in its URL.
fn ignited(file: &Value) -> Option<(String, String)> {
    let (path, url) = (file["path"].as_str()?, file["contents"]["source"].as_str()?);
    let (kind, content) = url.strip_prefix("data:")?.split_once(',')?;
    let content = if kind.ends_with(";base64") {
        STANDARD.decode(content).ok()?
    } else {
        unescaped(content)?
    };
    Some((path.to_owned(), String::from_utf8(content).ok()?))
}

/// The bytes of a text in which some are written as `%` and two hexadecimal digits.
fn unescaped(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOUD_CONFIG: &str = "## template: jinja
#cloud-config

write_files:
-   path: /etc/kubernetes/pki/ca.crt
    owner: root:root
    permissions: '0640'
    content: |
      one
      two
-   path: /etc/kubernetes/pki/ca.key
    content: |
      key
-   path: /etc/kubernetes/pki/etcd/ca.crt
    encoding: \"base64\"
    content: \"ZXRjZA==\"
-   path: /etc/kubernetes/pki/etcd/ca.key
    encoding: gzip+base64
    content: eA==
-   path: /run/kubeadm/kubeadm-join-config.yaml
    content: |
      ---
      apiVersion: kubeadm.k8s.io/v1beta4
      discovery:
        bootstrapToken:
          caCertHashes:
          - sha256:aa
          - sha256:bb
      kind: JoinConfiguration
      skipPhases:
      - control-plane-prepare/kubeconfig
runcmd:
  - kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml  && echo success
";

    #[test]
    fn certificates_and_pins_are_found_in_a_cloud_config() {
        let files = Files::of(CLOUD_CONFIG);
        assert_eq!(files.authority(Purpose::ClusterCa), Some(("one\ntwo\n", "key\n")));
        assert_eq!(files.authority(Purpose::EtcdCa), None, "its key cannot be read here");
        assert_eq!(files.0["/etc/kubernetes/pki/etcd/ca.crt"], "etcd");
        assert_eq!(files.pins(), ["sha256:aa", "sha256:bb"]);
        assert!(files.prepare_kubeconfigs());
    }

    #[test]
    fn certificates_and_pins_are_found_in_an_ignition_configuration() {
        let files = Files::of(
            r#"{"ignition": {"version": "2.3.0"}, "storage": {"files": [
            {"path": "/etc/kubernetes/pki/etcd/ca.crt", "contents": {"source": "data:,a%20b%0A"}},
            {"path": "/etc/kubernetes/pki/etcd/ca.key", "contents": {"source": "data:;base64,a2V5"}},
            {"path": "/etc/kubeadm.yml", "contents": {"source": "data:,---%0Akind%3A%20JoinConfiguration%0Adiscovery%3A%0A%20%20bootstrapToken%3A%0A%20%20%20%20caCertHashes%3A%20%5Bsha256%3Aaa%5D%0A"}}
            ]}}"#,
        );
        assert_eq!(files.authority(Purpose::EtcdCa), Some(("a b\n", "key")));
        assert_eq!(files.pins(), ["sha256:aa"]);
        assert!(!files.prepare_kubeconfigs());
    }

    #[test]
    fn an_etcd_elsewhere_is_named_by_the_configuration_or_by_the_certificate_for_it() {
        let file = |path: &str, content: &str| {
            let files = format!("write_files:\n- path: {path}\n  content: |\n    {content}\n");
            Files::of(&files).external_etcd()
        };
        let configuration = |etcd: &str| {
            let content = format!("{{kind: ClusterConfiguration, etcd: {etcd}}}");
            file("/run/kubeadm/kubeadm.yaml", &content)
        };
        assert!(configuration("{external: {endpoints: [https://e:2379]}}"));
        assert!(!configuration("{local: {}}"));
        assert!(file("/etc/kubernetes/pki/apiserver-etcd-client.crt", "x"));
        assert!(!file("/etc/kubernetes/pki/etcd/ca.crt", "x"));
    }

    #[test]
    fn other_bootstrap_data_has_no_files() {
        for data in [
            "",
            "#!/bin/sh\necho",
            "{",
            "[]",
            "a: [",
            "{\"storage\": 1}",
            "write_files: x",
        ] {
            let files = Files::of(data);
            assert!(files.0.is_empty() && files.pins().is_empty(), "{data}");
            assert_eq!(files.authority(Purpose::ClusterCa), None);
        }
        assert_eq!(unescaped("%4"), None);
        assert_eq!(unescaped("%é"), None);
    }
}
