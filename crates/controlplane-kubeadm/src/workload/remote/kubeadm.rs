//! What kubeadm keeps inside a cluster, and how it is brought to another version.

use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use windlass_api_kubeadm::bootstrap::v1beta2::{ClusterConfiguration, InitConfiguration};
use windlass_kubeadm::{ClusterFacts, KubeadmVersion, convert};

/// The key of kubeadm's configuration.
pub(super) const KEY: &str = "ClusterConfiguration";

/// Parts that follow the control plane's specification; everything else stays as kubeadm left it.
const FOLLOWING: [&str; 9] = [
    "apiVersion",
    "apiServer",
    "certificateValidityPeriod",
    "controllerManager",
    "encryptionAlgorithm",
    "featureGates",
    "imageRepository",
    "kubernetesVersion",
    "scheduler",
];

/// The stored configuration brought to a specification and version; none when it is as it should be, or was never stored.
pub(super) fn updated(stored: &str, configuration: &Value, version: &str) -> Result<Option<String>, String> {
    if stored.trim().is_empty() {
        return Ok(None);
    }
    let unreadable =
        |e: &dyn std::fmt::Display| format!("{KEY} in ConfigMap kube-system/kubeadm-config cannot be read: {e}");
    let before: Value = serde_saphyr::from_str(stored).map_err(|e| unreadable(&e))?;
    let config: ClusterConfiguration = match configuration {
        Value::Null => ClusterConfiguration::default(),
        value => serde_json::from_value(value.clone()).map_err(|e| e.to_string())?,
    };
    let format = KubeadmVersion::for_kubernetes(version).map_err(|e| e.to_string())?;
    let facts = ClusterFacts {
        kubernetes_version: version.to_owned(),
        ..ClusterFacts::default()
    };
    let init = InitConfiguration::default();
    let wanted = convert::cluster_configuration(format, &config, &init, &facts);
    let wanted: Value = serde_saphyr::from_str(&wanted).map_err(|e| unreadable(&e))?;
    let mut after = before.clone();
    let Some(fields) = after.as_object_mut() else {
        return Err(unreadable(&"it is no object"));
    };
    for key in FOLLOWING {
        // A specification without the field leaves what kubeadm chose.
        let said = wanted.get(key).filter(|v| !is_empty(v));
        let spoken_for = !configuration.is_null() || key == "kubernetesVersion" || key == "apiVersion";
        match said {
            Some(value) if spoken_for => {
                fields.insert(key.to_owned(), value.clone());
            }
            None if spoken_for && removable(key) => {
                fields.remove(key);
            }
            _ => {}
        }
    }
    etcd(fields, &wanted);
    if after == before {
        return Ok(None);
    }
    serde_saphyr::to_string(&after)
        .map(Some)
        .map_err(|e| format!("kubeadm's configuration cannot be written: {e}"))
}

/// Fields whose absence means something other than kubeadm's default.
fn removable(key: &str) -> bool {
    key == "featureGates"
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(object) => object.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

/// The folder of etcd's data is kubeadm's choice unless the specification makes one.
fn etcd(fields: &mut serde_json::Map<String, Value>, wanted: &Value) {
    for kind in ["local", "external"] {
        let Some(said) = wanted["etcd"][kind].as_object().filter(|o| !o.is_empty()) else {
            continue;
        };
        let etcd = fields.entry("etcd").or_insert(Value::Object(serde_json::Map::new()));
        let stored = &mut etcd[kind];
        if !stored.is_object() {
            *stored = Value::Object(serde_json::Map::new());
        }
        for (key, value) in said {
            stored[key.as_str()] = value.clone();
        }
    }
}

/// Lets API servers talk to kubelets with the certificate that newer kubeadm versions make.
pub(super) fn kubelet_client_binding() -> ClusterRoleBinding {
    ClusterRoleBinding {
        metadata: ObjectMeta {
            name: Some("kubeadm:apiserver-kubelet-client".to_owned()),
            ..ObjectMeta::default()
        },
        role_ref: RoleRef {
            api_group: Some("rbac.authorization.k8s.io".to_owned()),
            kind: "ClusterRole".to_owned(),
            name: "system:kubelet-api-admin".to_owned(),
        },
        subjects: Some(vec![Subject {
            api_group: Some("rbac.authorization.k8s.io".to_owned()),
            kind: "User".to_owned(),
            name: "kube-apiserver-kubelet-client".to_owned(),
            namespace: None,
        }]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const STORED: &str = "apiVersion: kubeadm.k8s.io/v1beta4\nclusterName: demo\netcd:\n  local:\n    dataDir: /var/lib/etcd\nfeatureGates:\n  ControlPlaneKubeletLocalMode: true\nkind: ClusterConfiguration\nkubernetesVersion: v1.35.0\nnetworking:\n  podSubnet: 10.0.0.0/8\n";

    fn after(configuration: &Value, version: &str) -> Value {
        let text = updated(STORED, configuration, version).unwrap().unwrap();
        serde_saphyr::from_str(&text).unwrap()
    }

    #[test]
    fn version_and_specification_are_brought_and_the_rest_stays() {
        let configuration = json!({
            "imageRepository": "example.com/k8s",
            "apiServer": { "certSANs": ["localhost"] },
            "etcd": { "local": { "imageTag": "3.6.0" } },
        });
        let after = after(&configuration, "v1.36.0");
        assert_eq!(after["kubernetesVersion"], "v1.36.0");
        assert_eq!(after["imageRepository"], "example.com/k8s");
        assert_eq!(after["apiServer"]["certSANs"][0], "localhost");
        assert_eq!(
            after["etcd"]["local"],
            json!({ "dataDir": "/var/lib/etcd", "imageTag": "3.6.0" })
        );
        assert_eq!(after["networking"]["podSubnet"], "10.0.0.0/8");
        assert_eq!(after["clusterName"], "demo");
        // The gate is gone in the new version: kubeadm would refuse it.
        assert!(after.get("featureGates").is_none(), "{after}");
    }

    #[test]
    fn nothing_is_written_when_nothing_differs() {
        assert_eq!(updated("", &json!({}), "v1.36.0"), Ok(None));
        let gates = json!({ "featureGates": { "ControlPlaneKubeletLocalMode": true } });
        assert_eq!(updated(STORED, &gates, "v1.35.0"), Ok(None));
    }

    #[test]
    fn an_unreadable_value_is_reported_with_its_place() {
        let error = updated("- a", &json!({}), "v1.36.0").unwrap_err();
        assert!(error.contains("kube-system/kubeadm-config"), "{error}");
    }
}
