//! All older versions.

use crate::addons::v1beta1 as addons;
use crate::bootstrap::v1beta1 as bootstrap;
use crate::controlplane::v1beta1 as controlplane;
use crate::convert::OlderVersion;
use crate::core::v1beta1 as core;
use crate::infrastructure::v1beta1 as infrastructure;
use crate::ipam::v1alpha1 as ipam_alpha;
use crate::ipam::v1beta1 as ipam;
use crate::runtime::v1alpha1 as runtime;

/// All older versions, by group, kind and version.
pub static OLDER: &[OlderVersion] = &[
    OlderVersion::of::<addons::ClusterResourceSet>(),
    OlderVersion::of::<addons::ClusterResourceSetBinding>(),
    OlderVersion::of::<bootstrap::KubeadmConfig>(),
    OlderVersion::of::<bootstrap::KubeadmConfigTemplate>(),
    OlderVersion::of::<core::Cluster>(),
    OlderVersion::of::<core::ClusterClass>(),
    OlderVersion::of::<core::Machine>(),
    OlderVersion::of::<core::MachineDeployment>(),
    OlderVersion::of::<core::MachineDrainRule>(),
    OlderVersion::of::<core::MachineHealthCheck>(),
    OlderVersion::of::<core::MachinePool>(),
    OlderVersion::of::<core::MachineSet>(),
    OlderVersion::of::<controlplane::KubeadmControlPlane>(),
    OlderVersion::of::<controlplane::KubeadmControlPlaneTemplate>(),
    OlderVersion::of::<infrastructure::DevCluster>(),
    OlderVersion::of::<infrastructure::DevClusterTemplate>(),
    OlderVersion::of::<infrastructure::DevMachine>(),
    OlderVersion::of::<infrastructure::DevMachineTemplate>(),
    OlderVersion::of::<ipam_alpha::IPAddress>(),
    OlderVersion::of::<ipam::IPAddress>(),
    OlderVersion::of::<ipam_alpha::IPAddressClaim>(),
    OlderVersion::of::<ipam::IPAddressClaim>(),
    OlderVersion::of::<runtime::ExtensionConfig>(),
];

/// The older version of a kind with an apiVersion.
pub fn older(api_version: &str, kind: &str) -> Option<&'static OlderVersion> {
    OLDER
        .iter()
        .find(|older| older.kind == kind && older.api_version == api_version)
}

/// Whether objects of a kind are converted from one apiVersion to another one.
pub fn knows(kind: &str, from: &str, to: &str) -> bool {
    let hub = |api_version: &str| {
        let mut all = OLDER.iter().filter(|older| older.kind == kind);
        let found = all.find(|older| older.api_version == api_version || older.hub_version == api_version);
        found.map(|older| older.hub_version)
    };
    from != to && hub(from).is_some_and(|hub_of_from| hub(to) == Some(hub_of_from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_the_same_kind_are_converted() {
        let check = |kind: &str, from: &str, to: &str, expect: bool| {
            assert_eq!(knows(kind, from, to), expect, "{kind} {from} {to}");
        };
        let (older, hub) = ("cluster.x-k8s.io/v1beta1", "cluster.x-k8s.io/v1beta2");
        check("MachineDrainRule", older, hub, true);
        check("MachineDrainRule", hub, older, true);
        check("MachineDrainRule", hub, hub, false);
        check("MachineDrainRule", "cluster.x-k8s.io/v1alpha4", hub, false);
        check("MachineDrainRule", "v1beta1", "v1beta2", false);
        check("Node", older, hub, false);
    }
}
