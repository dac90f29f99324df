//! Types of providers.

use std::fmt;

/// The type of a provider. The order of the variants is the order of installations and upgrades.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProviderType {
    /// Cluster API itself.
    Core,
    /// Bootstrap providers turn machines into Nodes.
    Bootstrap,
    /// Control plane providers manage control planes.
    ControlPlane,
    /// Infrastructure providers manage machines, networks and load balancers.
    Infrastructure,
    /// IPAM providers manage IP addresses.
    Ipam,
    /// Runtime extensions are called during the lifecycle of clusters.
    RuntimeExtension,
    /// Add-on providers install software into workload clusters.
    Addon,
}

impl ProviderType {
    /// All types, in order.
    pub const ALL: [Self; 7] = [
        Self::Core,
        Self::Bootstrap,
        Self::ControlPlane,
        Self::Infrastructure,
        Self::Ipam,
        Self::RuntimeExtension,
        Self::Addon,
    ];

    /// The kind of the provider object. It is also the `type` in the inventory.
    pub const fn inventory(self) -> &'static str {
        match self {
            Self::Core => "CoreProvider",
            Self::Bootstrap => "BootstrapProvider",
            Self::ControlPlane => "ControlPlaneProvider",
            Self::Infrastructure => "InfrastructureProvider",
            Self::Ipam => "IPAMProvider",
            Self::RuntimeExtension => "RuntimeExtensionProvider",
            Self::Addon => "AddonProvider",
        }
    }

    /// The type that [`inventory`](Self::inventory) names.
    pub fn from_inventory(kind: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|type_| type_.inventory() == kind)
    }

    /// Prefix of the file names and labels of such providers, for example `core` or `control-plane`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Bootstrap => "bootstrap",
            Self::ControlPlane => "control-plane",
            Self::Infrastructure => "infrastructure",
            Self::Ipam => "ipam",
            Self::RuntimeExtension => "runtime-extension",
            Self::Addon => "addon",
        }
    }

    /// Value of the label `cluster.x-k8s.io/provider` on the objects of a provider, for example `infrastructure-aws`.
    /// The core provider has no prefix.
    pub fn label(self, name: &str) -> String {
        match self {
            Self::Core => name.to_owned(),
            _ => format!("{}-{name}", self.word()),
        }
    }

    /// Name of the components file in a release, for example `infrastructure-components.yaml`.
    pub fn components_file(self) -> String {
        format!("{}-components.yaml", self.word())
    }
}

impl fmt::Display for ProviderType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.inventory())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_from_the_type() {
        let check = |type_: ProviderType, kind: &str, label: &str, file: &str| {
            assert_eq!(type_.inventory(), kind);
            assert_eq!(ProviderType::from_inventory(kind), Some(type_));
            assert_eq!(type_.label("x"), label);
            assert_eq!(type_.components_file(), file);
        };
        check(ProviderType::Core, "CoreProvider", "x", "core-components.yaml");
        check(
            ProviderType::Bootstrap,
            "BootstrapProvider",
            "bootstrap-x",
            "bootstrap-components.yaml",
        );
        check(
            ProviderType::ControlPlane,
            "ControlPlaneProvider",
            "control-plane-x",
            "control-plane-components.yaml",
        );
        check(
            ProviderType::Infrastructure,
            "InfrastructureProvider",
            "infrastructure-x",
            "infrastructure-components.yaml",
        );
        check(ProviderType::Ipam, "IPAMProvider", "ipam-x", "ipam-components.yaml");
        check(
            ProviderType::RuntimeExtension,
            "RuntimeExtensionProvider",
            "runtime-extension-x",
            "runtime-extension-components.yaml",
        );
        check(ProviderType::Addon, "AddonProvider", "addon-x", "addon-components.yaml");
        assert_eq!(ProviderType::from_inventory("Provider"), None);
    }

    #[test]
    fn the_core_comes_first_and_add_ons_last() {
        assert!(ProviderType::ALL.is_sorted());
        assert_eq!(ProviderType::ALL.first(), Some(&ProviderType::Core));
        assert_eq!(ProviderType::ALL.last(), Some(&ProviderType::Addon));
    }
}
