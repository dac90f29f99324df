//! The kinds that Windlass serves, as data.

use serde_json::Value;
use windlass_api::core::{Cluster, ClusterClass, Machine, MachineDeployment, MachineHealthCheck, MachineSet};
use windlass_api::crd::crd;
use windlass_api::kind::ApiKind;
use windlass_api_ext::infrastructure::{DevCluster, DevClusterTemplate, DevMachine, DevMachineTemplate};
use windlass_api_kubeadm::bootstrap::{KubeadmConfig, KubeadmConfigTemplate};
use windlass_api_kubeadm::controlplane::{KubeadmControlPlane, KubeadmControlPlaneTemplate};

/// A kind, by its names, and how to make its CRD.
#[derive(Clone, Copy, Debug)]
pub struct KindEntry {
    /// The API group.
    pub group: &'static str,
    /// The version that is stored.
    pub version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The resource name.
    pub plural: &'static str,
    /// The provider that the kind belongs to, as in the label `cluster.x-k8s.io/provider`.
    pub provider: &'static str,
    /// Makes the CustomResourceDefinition.
    pub crd: fn() -> Value,
}

impl KindEntry {
    const fn of<K: ApiKind>() -> Self {
        Self {
            group: K::GROUP,
            version: K::VERSION,
            kind: K::KIND,
            plural: K::PLURAL,
            provider: K::PROVIDER,
            crd: crd::<K>,
        }
    }

    /// The name of the CRD: `plural.group`.
    pub fn crd_name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }
}

/// All kinds, by group and name.
pub const KINDS: &[KindEntry] = &[
    KindEntry::of::<KubeadmConfig>(),
    KindEntry::of::<KubeadmConfigTemplate>(),
    KindEntry::of::<Cluster>(),
    KindEntry::of::<ClusterClass>(),
    KindEntry::of::<Machine>(),
    KindEntry::of::<MachineDeployment>(),
    KindEntry::of::<MachineHealthCheck>(),
    KindEntry::of::<MachineSet>(),
    KindEntry::of::<KubeadmControlPlane>(),
    KindEntry::of::<KubeadmControlPlaneTemplate>(),
    KindEntry::of::<DevCluster>(),
    KindEntry::of::<DevClusterTemplate>(),
    KindEntry::of::<DevMachine>(),
    KindEntry::of::<DevMachineTemplate>(),
];

/// The CustomResourceDefinitions of all kinds.
pub fn all_crds() -> Vec<Value> {
    KINDS.iter().map(|entry| (entry.crd)()).collect()
}
