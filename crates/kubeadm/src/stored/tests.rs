//! Documents as kubeadm of several versions writes them, and what becomes of them.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_api_kubeadm::bootstrap::ClusterConfiguration;

use super::*;

/// A document as kubeadm stores it after `kubeadm init` with settings, with the fields and defaults of its version.
fn written_by(minor: u32) -> String {
    let registry = if minor < 25 { "k8s.gcr.io" } else { "registry.k8s.io" };
    let common = format!(
        "certificatesDir: /etc/kubernetes/pki
clusterName: demo
controlPlaneEndpoint: 10.0.0.1:6443
imageRepository: {registry}
kind: ClusterConfiguration
kubernetesVersion: v1.{minor}.3
networking:
  dnsDomain: cluster.local
  podSubnet: 192.168.0.0/16,fd00::/48
  serviceSubnet: 10.96.0.0/12
"
    );
    if minor < 31 {
        format!(
            "apiServer:
  certSANs:
  - localhost
  extraArgs:
    audit-log-maxage: \"30\"
    authorization-mode: Node,RBAC
  extraVolumes:
  - hostPath: /etc/audit
    mountPath: /etc/audit
    name: audit
    readOnly: true
  timeoutForControlPlane: 4m0s
apiVersion: kubeadm.k8s.io/v1beta3
{common}controllerManager:
  extraArgs:
    cloud-provider: external
dns: {{}}
etcd:
  local:
    dataDir: /var/lib/etcd
    extraArgs:
      quota-backend-bytes: \"8589934592\"
scheduler: {{}}
"
        )
    } else {
        let gates = if minor < 36 {
            "featureGates:\n  ControlPlaneKubeletLocalMode: true\n"
        } else {
            ""
        };
        format!(
            "apiServer:
  certSANs:
  - localhost
  extraArgs:
  - name: audit-log-maxage
    value: \"30\"
  extraVolumes:
  - hostPath: /etc/audit
    mountPath: /etc/audit
    name: audit
    readOnly: true
apiVersion: kubeadm.k8s.io/v1beta4
caCertificateValidityPeriod: 87600h0m0s
certificateValidityPeriod: 8760h0m0s
{common}controllerManager:
  extraArgs:
  - name: cloud-provider
    value: external
dns: {{}}
encryptionAlgorithm: RSA-2048
etcd:
  local:
    dataDir: /var/lib/etcd
    extraArgs:
    - name: quota-backend-bytes
      value: \"8589934592\"
{gates}proxy: {{}}
scheduler: {{}}
"
        )
    }
}

fn spec(yaml: &str) -> ClusterConfiguration {
    serde_saphyr::from_str(yaml).unwrap()
}

fn after(text: &str, config: &ClusterConfiguration, version: &str) -> Value {
    let text = updated(text, config, version).unwrap().expect("something changes");
    readable(&text, version).unwrap();
    assert_eq!(
        updated(&text, config, version),
        Ok(None),
        "a second update changes nothing"
    );
    serde_saphyr::from_str(&text).unwrap()
}

#[test]
fn each_version_reads_the_document_of_the_version_before() {
    let config = spec(
        "apiServer: {extraArgs: [{name: audit-log-maxage, value: '30'}]}
controllerManager: {extraArgs: [{name: cloud-provider, value: external}]}
etcd: {local: {dataDir: /data}}",
    );
    for minor in 22..36 {
        let (text, version) = (written_by(minor), format!("v1.{}.0", minor + 1));
        let after = after(&text, &config, &version);
        let old = minor + 1 < 31;
        assert_eq!(
            after["apiVersion"],
            if old {
                "kubeadm.k8s.io/v1beta3"
            } else {
                "kubeadm.k8s.io/v1beta4"
            }
        );
        assert_eq!(after["kubernetesVersion"], version.as_str());
        let arguments = &after["apiServer"]["extraArgs"];
        let expect = if old {
            json!({"audit-log-maxage": "30"})
        } else {
            json!([{"name": "audit-log-maxage", "value": "30"}])
        };
        assert_eq!(*arguments, expect, "{version}");
        assert_eq!(after["etcd"], json!({"local": {"dataDir": "/data"}}));
        // What belongs to the cluster as a whole stays.
        assert_eq!(after["clusterName"], "demo");
        assert_eq!(after["controlPlaneEndpoint"], "10.0.0.1:6443");
        assert_eq!(after["certificatesDir"], "/etc/kubernetes/pki");
        let networking = json!({
            "dnsDomain": "cluster.local", "podSubnet": "192.168.0.0/16,fd00::/48", "serviceSubnet": "10.96.0.0/12",
        });
        assert_eq!(after["networking"], networking);
        let timeout = &after["apiServer"]["timeoutForControlPlane"];
        assert_eq!(*timeout, if old { json!("4m0s") } else { Value::Null });
        assert!(after.get("featureGates").is_none(), "{version}");
        if minor >= 31 {
            assert_eq!(after["caCertificateValidityPeriod"], "87600h0m0s");
        }
    }
}

#[test]
fn what_the_specification_no_longer_says_is_removed() {
    for minor in [28, 30, 31, 35, 36] {
        let version = format!("v1.{minor}.3");
        let after = after(&written_by(minor), &ClusterConfiguration::default(), &version);
        assert!(after["controllerManager"].get("extraArgs").is_none(), "{after}");
        for gone in ["certSANs", "extraArgs", "extraVolumes"] {
            assert!(after["apiServer"].get(gone).is_none(), "{gone}: {after}");
        }
        for gone in ["encryptionAlgorithm", "certificateValidityPeriod", "featureGates"] {
            assert!(after.get(gone).is_none(), "{gone}: {after}");
        }
        assert_eq!(after["etcd"], json!({}));
        // Without a repository in the specification, the one of the cluster stays.
        let registry = after["imageRepository"].as_str().unwrap();
        assert_eq!(registry, "registry.k8s.io");
    }
}

#[test]
fn sections_are_replaced_and_not_merged() {
    let config = spec(
        "imageRepository: example.com/k8s
apiServer: {certSANs: [other], extraEnvs: [{name: A, value: b}]}
scheduler: {extraArgs: [{name: v, value: '2'}, {name: v, value: '4'}]}
etcd: {external: {endpoints: [https://e:2379], caFile: /ca, certFile: /crt, keyFile: /key}}
featureGates: {X: true}
certificateValidityPeriodDays: 100
encryptionAlgorithm: ECDSA-P256",
    );
    let new = after(&written_by(36), &config, "v1.36.3");
    assert_eq!(
        new["apiServer"],
        json!({"certSANs": ["other"], "extraEnvs": [{"name": "A", "value": "b"}]})
    );
    assert_eq!(new["scheduler"]["extraArgs"].as_array().unwrap().len(), 2);
    let external = json!({"endpoints": ["https://e:2379"], "caFile": "/ca", "certFile": "/crt", "keyFile": "/key"});
    assert_eq!(new["etcd"], json!({"external": external}));
    assert_eq!(new["imageRepository"], "example.com/k8s");
    assert_eq!(new["certificateValidityPeriod"], "2400h0m0s");
    assert_eq!(new["encryptionAlgorithm"], "ECDSA-P256");
    // The older format has none of the new fields.
    let old = after(&written_by(29), &config, "v1.30.0");
    assert_eq!(
        old["apiServer"],
        json!({"certSANs": ["other"], "timeoutForControlPlane": "4m0s"})
    );
    assert_eq!(old["scheduler"], json!({"extraArgs": {"v": "4"}}));
    for gone in ["encryptionAlgorithm", "certificateValidityPeriod", "proxy"] {
        assert!(old.get(gone).is_none(), "{gone}: {old}");
    }
}

#[test]
fn switched_off_add_ons_stay_switched_off() {
    let text = written_by(35).replace("dns: {}", "dns:\n  disabled: true\n  imageTag: v1.12.0");
    let text = text.replace("proxy: {}", "proxy:\n  disabled: true");
    let after = after(&text, &ClusterConfiguration::default(), "v1.36.0");
    assert_eq!(after["dns"], json!({"disabled": true, "imageTag": "v1.12.0"}));
    assert_eq!(after["proxy"], json!({"disabled": true}));
}

#[test]
fn a_document_with_arguments_of_another_format_is_repaired() {
    let damaged = written_by(30).replace("v1beta3", "v1beta4");
    assert!(
        readable(&damaged, "v1.31.0")
            .unwrap_err()
            .to_string()
            .contains("apiServer.extraArgs")
    );
    let config = spec("apiServer: {extraArgs: [{name: a, value: b}]}");
    let after = after(&damaged, &config, "v1.31.0");
    assert_eq!(after["apiServer"]["extraArgs"], json!([{"name": "a", "value": "b"}]));
}

#[test]
fn a_document_of_the_oldest_format_is_read() {
    let oldest = written_by(22)
        .replace("v1beta3", "v1beta2")
        .replace("dns: {}", "dns:\n  type: CoreDNS");
    let after = after(&oldest, &ClusterConfiguration::default(), "v1.22.3");
    assert_eq!(after["apiVersion"], "kubeadm.k8s.io/v1beta3");
    assert_eq!(after["dns"], json!({}));
}

#[test]
fn kubeadm_reads_only_what_it_knows() {
    for minor in 22..=36 {
        let text = written_by(minor);
        readable(&text, &format!("v1.{minor}.3")).unwrap();
        let initial = initial("demo", "10.0.0.1:6443", &format!("v1.{minor}.0")).unwrap();
        readable(&initial, &format!("v1.{minor}.0")).unwrap();
    }
    let refused = |minor: u32, version: &str| readable(&written_by(minor), version).unwrap_err().to_string();
    assert!(refused(31, "v1.30.0").contains("v1beta4"));
    assert!(refused(35, "v1.36.0").contains("ControlPlaneKubeletLocalMode"));
}

#[test]
fn what_cannot_be_decoded_is_an_error_with_its_field() {
    let cases = BTreeMap::from([
        ("", "empty"),
        ("- a", "no object"),
        ("a: [", ""),
        ("kind: ClusterConfiguration", "apiVersion"),
        ("apiVersion: kubeadm.k8s.io/v1alpha1", "v1alpha1"),
        (
            "apiVersion: kubeadm.k8s.io/v1beta4\napiServer: {extraArgs: 7}",
            "apiServer.extraArgs",
        ),
        (
            "apiVersion: kubeadm.k8s.io/v1beta3\netcd: {local: {extraArgs: {a: 7}}}",
            "etcd.local.extraArgs",
        ),
        (
            "apiVersion: kubeadm.k8s.io/v1beta4\ncertificateValidityPeriod: long",
            "certificateValidityPeriod",
        ),
        (
            "apiVersion: kubeadm.k8s.io/v1beta4\nfeatureGates: [a]",
            "ClusterConfiguration",
        ),
    ]);
    for (text, part) in cases {
        let error = updated(text, &ClusterConfiguration::default(), "v1.36.0").unwrap_err();
        assert!(error.to_string().contains(part), "{text:?}: {error}");
    }
}

#[test]
fn the_settings_of_dns_are_replaced_and_nothing_else() {
    for minor in [24, 30, 31, 36] {
        let text = written_by(minor);
        let version = format!("v1.{minor}.3");
        let dns = DNS {
            image_repository: None,
            image_tag: Some("v1.12.0".to_owned()),
        };
        let after = with_dns(&text, Some(&dns), &version).unwrap().unwrap();
        let (mut before, mut after_value) = (document(&text).unwrap(), document(&after).unwrap());
        assert_eq!(after_value["dns"], json!({"imageTag": "v1.12.0"}));
        (before["dns"], after_value["dns"]) = (Value::Null, Value::Null);
        assert_eq!(before, after_value);
        assert_eq!(with_dns(&after, Some(&dns), &version), Ok(None));
        assert!(with_dns(&after, None, &version).unwrap().unwrap().contains("dns: {}"));
    }
}
