//! The registry of kinds, as data.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use windlass_admission::Admission;
use windlass_api::addons::{ClusterResourceSet, ClusterResourceSetBinding};
use windlass_api::codec::Stored;
use windlass_api::core::{
    Cluster, ClusterClass, Machine, MachineDeployment, MachineDrainRule, MachineHealthCheck, MachinePool, MachineSet,
};
use windlass_api::crd::crd;
use windlass_api::ipam::{IPAddress, IPAddressClaim};
use windlass_api::kind::ApiKind;
use windlass_api::runtime::ExtensionConfig;
use windlass_api_ext::addons::{HelmChartProxy, HelmReleaseProxy};
use windlass_api_ext::infrastructure::{
    DevCluster, DevClusterTemplate, DevIPPool, DevMachine, DevMachinePool, DevMachinePoolTemplate, DevMachineTemplate,
};
use windlass_api_ext::rollouts::{ClusterClassRevision, ClusterClassRollout};
use windlass_api_kubeadm::bootstrap::{KubeadmConfig, KubeadmConfigTemplate};
use windlass_api_kubeadm::controlplane::{KubeadmControlPlane, KubeadmControlPlaneTemplate};
use windlass_api_older::OLDER;
use windlass_api_operator::{inventory, management, operator};

use windlass_contract::{ContractVersion, compare_versions};

use crate::registry::admission;

/// A kind: its names, and its CRD.
#[derive(Clone, Copy, Debug)]
pub struct KindEntry {
    /// The API group.
    pub group: &'static str,
    /// The storage version.
    pub version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The resource name.
    pub plural: &'static str,
    /// Whether its objects are in namespaces.
    pub is_namespaced: bool,
    /// The provider of the kind, as in the label `cluster.x-k8s.io/provider`.
    pub provider: &'static str,
    /// Creates the CustomResourceDefinition.
    pub crd: fn() -> Value,
    /// What is done with writes of the kind.
    pub admission: Option<Admission>,
    /// Reads an object of the kind from JSON.
    pub decode: fn(&[u8]) -> serde_json::Result<Arc<dyn Stored>>,
}

impl KindEntry {
    const fn of<K: ApiKind>() -> Self {
        Self {
            group: K::GROUP,
            version: K::VERSION,
            kind: K::KIND,
            plural: K::PLURAL,
            is_namespaced: K::NAMESPACED,
            provider: K::PROVIDER,
            crd: with_older::<K>,
            admission: None,
            decode: K::decode_stored,
        }
    }

    /// The same kind with an admission rule.
    const fn judged(mut self, admission: Admission) -> Self {
        self.admission = Some(admission);
        self
    }

    /// The name of the CRD: `plural.group`.
    pub fn crd_name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    /// Whether both are the same kind.
    pub fn is(&self, other: &Self) -> bool {
        (self.group, self.kind) == (other.group, other.kind)
    }

    /// The kind with its group, which is unique: `Kind.group`.
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.kind, self.group)
    }
}

/// The CRD of a kind with all its versions, the oldest one first.
fn with_older<K: ApiKind>() -> Value {
    let mut definition = crd::<K>();
    let older = OLDER
        .iter()
        .filter(|older| (older.group, older.kind) == (K::GROUP, K::KIND));
    let mut older: Vec<_> = older.collect();
    older.sort_by(|a, b| compare_versions(a.version, b.version));
    for version in &older {
        // Objects in both versions of a provider's kind follow a contract. Those of both contracts have the names of API versions.
        let contract = ContractVersion::ALL
            .into_iter()
            .find(|known| known.as_str() == version.version);
        if let Some(contract) = contract.filter(|_| K::CONTRACT) {
            definition["metadata"]["labels"][contract.label()] = version.version.into();
        }
    }
    if let Some(versions) = definition["spec"]["versions"].as_array_mut() {
        versions.splice(0..0, older.iter().map(|older| (older.definition)()));
    }
    definition
}

/// The names of the CRDs with older versions, whose objects have to be converted.
pub fn converted_crds() -> BTreeSet<String> {
    let names = OLDER.iter().map(|older| format!("{}.{}", older.plural, older.group));
    names.collect()
}

/// All kinds, by group and name. If two groups have a kind of the same name, the name alone means the first one.
pub static KINDS: &[KindEntry] = &[
    KindEntry::of::<ClusterResourceSet>().judged(admission::CLUSTER_RESOURCE_SET),
    KindEntry::of::<ClusterResourceSetBinding>().judged(admission::CLUSTER_RESOURCE_SET_BINDING),
    KindEntry::of::<HelmChartProxy>().judged(admission::HELM_CHART_PROXY),
    KindEntry::of::<HelmReleaseProxy>().judged(admission::HELM_RELEASE_PROXY),
    KindEntry::of::<KubeadmConfig>().judged(admission::KUBEADM_CONFIG),
    KindEntry::of::<KubeadmConfigTemplate>().judged(admission::KUBEADM_CONFIG_TEMPLATE),
    KindEntry::of::<inventory::Provider>(),
    KindEntry::of::<Cluster>().judged(admission::CLUSTER),
    KindEntry::of::<ClusterClass>().judged(admission::CLUSTER_CLASS),
    KindEntry::of::<Machine>().judged(admission::MACHINE),
    KindEntry::of::<MachineDeployment>().judged(admission::MACHINE_DEPLOYMENT),
    KindEntry::of::<MachineDrainRule>().judged(admission::MACHINE_DRAIN_RULE),
    KindEntry::of::<MachineHealthCheck>().judged(admission::MACHINE_HEALTH_CHECK),
    KindEntry::of::<MachinePool>().judged(admission::MACHINE_POOL),
    KindEntry::of::<MachineSet>().judged(admission::MACHINE_SET),
    KindEntry::of::<KubeadmControlPlane>().judged(admission::KUBEADM_CONTROL_PLANE),
    KindEntry::of::<KubeadmControlPlaneTemplate>().judged(admission::KUBEADM_CONTROL_PLANE_TEMPLATE),
    KindEntry::of::<DevCluster>().judged(admission::DEV_CLUSTER),
    KindEntry::of::<DevClusterTemplate>().judged(admission::DEV_CLUSTER_TEMPLATE),
    KindEntry::of::<DevIPPool>().judged(admission::DEV_IP_POOL),
    KindEntry::of::<DevMachine>().judged(admission::DEV_MACHINE),
    KindEntry::of::<DevMachinePool>().judged(admission::DEV_MACHINE_POOL),
    KindEntry::of::<DevMachinePoolTemplate>().judged(admission::DEV_MACHINE_POOL_TEMPLATE),
    KindEntry::of::<DevMachineTemplate>().judged(admission::DEV_MACHINE_TEMPLATE),
    KindEntry::of::<IPAddress>().judged(admission::IP_ADDRESS),
    KindEntry::of::<IPAddressClaim>().judged(admission::IP_ADDRESS_CLAIM),
    KindEntry::of::<operator::AddonProvider>().judged(admission::PROVIDER),
    KindEntry::of::<operator::BootstrapProvider>().judged(admission::PROVIDER),
    KindEntry::of::<operator::ControlPlaneProvider>().judged(admission::PROVIDER),
    KindEntry::of::<operator::CoreProvider>().judged(admission::PROVIDER),
    KindEntry::of::<operator::IPAMProvider>(),
    KindEntry::of::<operator::InfrastructureProvider>().judged(admission::PROVIDER),
    KindEntry::of::<operator::RuntimeExtensionProvider>(),
    KindEntry::of::<management::BootstrapProvider>().judged(admission::PROVIDER),
    KindEntry::of::<management::ControlPlaneProvider>().judged(admission::PROVIDER),
    KindEntry::of::<management::CoreProvider>().judged(admission::PROVIDER),
    KindEntry::of::<management::InfrastructureProvider>().judged(admission::PROVIDER),
    KindEntry::of::<ExtensionConfig>().judged(admission::EXTENSION_CONFIG),
    KindEntry::of::<ClusterClassRevision>(),
    KindEntry::of::<ClusterClassRollout>().judged(admission::CLUSTER_CLASS_ROLLOUT),
];

/// A kind by its name, or by name and group: `Machine`, `CoreProvider.management.cluster.x-k8s.io`.
pub fn find(name: &str) -> Option<&'static KindEntry> {
    let (kind, group) = name
        .split_once('.')
        .map_or((name, None), |(kind, group)| (kind, Some(group)));
    KINDS
        .iter()
        .find(|entry| entry.kind == kind && group.is_none_or(|group| entry.group == group))
}

/// The CustomResourceDefinitions of all kinds.
pub fn all_crds() -> Vec<Value> {
    KINDS.iter().map(|entry| (entry.crd)()).collect()
}

/// The CRDs of all kinds, for API servers that others install them on: conversion is that of a webhook server behind the Service
/// `windlass-system/windlass-webhook`. A webhook server with another address corrects that, and adds its CA certificate. Until then, older
/// versions are refused.
pub fn published_crds() -> Vec<Value> {
    let converted = converted_crds();
    let mut all = all_crds();
    for definition in &mut all {
        if definition["metadata"]["name"]
            .as_str()
            .is_some_and(|name| converted.contains(name))
        {
            definition["spec"]["conversion"] = json!({
                "strategy": "Webhook",
                "webhook": {
                    "conversionReviewVersions": ["v1", "v1beta1"],
                    "clientConfig": {
                        "service": {"namespace": "windlass-system", "name": "windlass-webhook", "port": 443, "path": "/convert"},
                    },
                },
            });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    /// A value with every field of a schema.
    fn sample(schema: &Value) -> Value {
        if schema["x-kubernetes-int-or-string"] == true {
            return json!("50%");
        }
        if let Some(word) = schema["enum"].as_array().and_then(|words| words.first()) {
            return word.clone();
        }
        match schema["type"].as_str() {
            Some("object") => {
                let mut object = Map::new();
                for (name, child) in schema["properties"].as_object().into_iter().flatten() {
                    object.insert(name.clone(), sample(child));
                }
                if let Some(values) = schema.get("additionalProperties") {
                    object.insert("key".to_owned(), sample(values));
                }
                Value::Object(object)
            }
            Some("array") => json!([sample(&schema["items"])]),
            Some("integer") => json!(7),
            Some("boolean") => json!(true),
            Some("string") if schema["format"] == "date-time" => json!("2026-01-02T03:04:05Z"),
            Some("string") if schema["format"] == "byte" => json!("aGVsbG8="),
            Some("string") => json!("text"),
            _ => json!({"any": [1, null, "x"]}),
        }
    }

    #[test]
    fn no_type_loses_a_field_of_its_schema() {
        for entry in KINDS {
            let crd = (entry.crd)();
            let mut versions = crd["spec"]["versions"].as_array().unwrap().iter();
            let stored = versions.find(|version| version["storage"] == true).unwrap();
            let mut object = sample(&stored["schema"]["openAPIV3Schema"]);
            object["apiVersion"] = json!(format!("{}/{}", entry.group, entry.version));
            object["kind"] = json!(entry.kind);
            let read = (entry.decode)(&serde_json::to_vec(&object).unwrap()).unwrap();
            assert_eq!(read.to_json(), object, "{}", entry.kind);
        }
    }

    #[test]
    fn older_versions_come_first_and_are_not_stored() {
        let versions = |kind: &str| -> Vec<(String, bool, bool)> {
            let crd = (find(kind).unwrap().crd)();
            let versions = crd["spec"]["versions"].as_array().unwrap().iter();
            let flag = |version: &Value, name: &str| version[name] == true;
            versions
                .map(|one| {
                    let name = one["name"].as_str().unwrap().to_owned();
                    (name, flag(one, "storage"), flag(one, "deprecated"))
                })
                .collect()
        };
        let older = ("v1beta1".to_owned(), false, true);
        let hub = ("v1beta2".to_owned(), true, false);
        assert_eq!(versions("MachineDrainRule"), [older, hub]);
        for name in converted_crds() {
            let known = KINDS.iter().find(|entry| entry.crd_name() == name);
            let crd = (known.unwrap().crd)();
            let all = crd["spec"]["versions"].as_array().unwrap();
            assert!(all.len() > 1 && all.last().unwrap()["storage"] == true, "{name}");
        }
    }

    #[test]
    fn every_kind_is_found_by_its_full_name() {
        for entry in KINDS {
            assert_eq!(find(&entry.full_name()).unwrap().crd_name(), entry.crd_name());
            assert_eq!(find(entry.kind).unwrap().kind, entry.kind);
        }
        assert_eq!(find("CoreProvider").unwrap().group, "operator.cluster.x-k8s.io");
        assert!(find("Machine.example.com").is_none() && find("").is_none());
    }

    // EX-008, EX-092: one key, one name for it, and no second annotation that would make anything ready.
    #[test]
    fn there_is_one_annotation_for_it() {
        let constants = [
            include_str!("../../../api/src/annotations.rs"),
            include_str!("../../../api-ext/src/annotations.rs"),
            include_str!("../../../api-operator/src/annotations.rs"),
        ];
        let lines = constants.iter().flat_map(|text| text.lines());
        let found: Vec<&str> = lines
            .filter(|line| line.starts_with("pub const") && line.contains("managed-by"))
            .collect();
        assert_eq!(
            found,
            [
                "pub const MANAGED_BY: &str = \"cluster.x-k8s.io/managed-by\";",
                "pub const REPLICAS_MANAGED_BY: &str = \"cluster.x-k8s.io/replicas-managed-by\";",
            ]
        );
    }
}
