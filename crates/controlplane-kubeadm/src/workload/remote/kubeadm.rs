//! What kubeadm keeps inside a cluster, and how it is brought to another version.

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_api_kubeadm::bootstrap::v1beta2::{ClusterConfiguration, DNS};
use windlass_kubeadm::{KubeadmError, stored};
use windlass_meta::KubernetesVersion;

/// The key of kubeadm's configuration.
const KEY: &str = "ClusterConfiguration";

/// The patch that brings kubeadm's configuration to a specification and version; none when it is as it should be.
///
/// Machines that join read the ConfigMap. Without it, or without a document in it, a new Machine would not come up.
pub(super) fn update(map: Option<ConfigMap>, configuration: &Value, version: &str) -> Result<Option<Value>, String> {
    let config = specified::<ClusterConfiguration>(configuration, "")?;
    change(map, |document| {
        stored::updated(document, &config.unwrap_or_default(), version)
    })
}

/// [`update`] of the settings of DNS alone.
pub(super) fn update_dns(map: Option<ConfigMap>, dns: &Value, version: &str) -> Result<Option<Value>, String> {
    let dns = specified::<DNS>(dns, ".dns")?;
    change(map, |document| stored::with_dns(document, dns.as_ref(), version))
}

/// A part of `clusterConfiguration`, unless the specification has none.
fn specified<T: DeserializeOwned>(part: &Value, path: &str) -> Result<Option<T>, String> {
    let read = serde_json::from_value(part.clone());
    read.map_err(|error| format!("spec.kubeadmConfigSpec.clusterConfiguration{path}: {error}"))
}

fn change(
    map: Option<ConfigMap>,
    updated: impl FnOnce(&str) -> Result<Option<String>, KubeadmError>,
) -> Result<Option<Value>, String> {
    const WHERE: &str = "ConfigMap kube-system/kubeadm-config";
    let map = map.ok_or_else(|| {
        format!("{WHERE} does not exist; restore it, or write it by \"kubeadm init phase upload-config kubeadm\"")
    })?;
    let data = map.data.unwrap_or_default();
    let document = data
        .get(KEY)
        .ok_or_else(|| format!("{WHERE} has no {KEY}; restore it"))?;
    let updated = updated(document).map_err(|e| format!("{WHERE}: {e}"))?;
    Ok(updated.map(|document| {
        json!({
            "metadata": { "resourceVersion": map.metadata.resource_version },
            "data": { KEY: document },
        })
    }))
}

/// The role bindings that newer kubeadm versions rely on, and that kubeadm makes itself only where it initializes or upgrades a cluster.
/// Clusters get them before they need them, as in Cluster API: changes of kubeadm may come to older releases, too. Those of later
/// versions had them before.
pub(super) fn bindings(version: &str) -> Vec<ClusterRoleBinding> {
    const ADMINISTRATORS: &str = "kubeadm:cluster-admins";
    if KubernetesVersion::parse_tolerant(version).is_ok_and(|version| version.at_least_minor(1, 38)) {
        return Vec::new();
    }
    vec![
        // Since 1.29, kubeadm's administrator has its rights by this group.
        binding(ADMINISTRATORS, "cluster-admin", ("Group", ADMINISTRATORS)),
        // Since 1.37, API servers talk to kubelets with a certificate of this user.
        binding(
            "kubeadm:apiserver-kubelet-client",
            "system:kubelet-api-admin",
            ("User", "kube-apiserver-kubelet-client"),
        ),
    ]
}

fn binding(name: &str, role: &str, (kind, subject): (&str, &str)) -> ClusterRoleBinding {
    const GROUP: &str = "rbac.authorization.k8s.io";
    ClusterRoleBinding {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        role_ref: RoleRef {
            api_group: Some(GROUP.to_owned()),
            kind: "ClusterRole".to_owned(),
            name: role.to_owned(),
        },
        subjects: Some(vec![Subject {
            api_group: Some(GROUP.to_owned()),
            kind: kind.to_owned(),
            name: subject.to_owned(),
            namespace: None,
        }]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(data: &Value) -> ConfigMap {
        let map = json!({ "metadata": { "resourceVersion": "7" }, "data": data });
        serde_json::from_value(map).unwrap()
    }

    #[test]
    fn a_configuration_that_is_missing_or_empty_is_an_error_with_its_place() {
        let empty = map(&json!({ "ClusterConfiguration": " " }));
        for map in [None, Some(map(&json!({}))), Some(empty)] {
            let error = update(map, &json!({}), "v1.36.0").unwrap_err();
            assert!(error.contains("kube-system/kubeadm-config"), "{error}");
        }
    }

    #[test]
    fn bindings_are_made_until_every_cluster_has_them() {
        let names = |version: &str| -> Vec<String> {
            let bindings = bindings(version).into_iter();
            bindings.filter_map(|binding| binding.metadata.name).collect()
        };
        let both = ["kubeadm:cluster-admins", "kubeadm:apiserver-kubelet-client"];
        for version in ["v1.28.9", "v1.29.0-rc.1", "v1.37.4"] {
            assert_eq!(names(version), both, "{version}");
        }
        for version in ["v1.38.0-alpha.1", "v1.38.0"] {
            assert!(names(version).is_empty(), "{version}");
        }
    }

    #[test]
    fn what_is_read_is_what_is_changed() {
        let document = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.35.0\n";
        let map = map(&json!({ "ClusterConfiguration": document }));
        let patch = update(Some(map), &Value::Null, "v1.36.0").unwrap().unwrap();
        assert_eq!(patch["metadata"]["resourceVersion"], "7");
        let written = patch["data"][KEY].as_str().unwrap();
        assert!(written.contains("kubernetesVersion: v1.36.0"), "{written}");
    }
}
