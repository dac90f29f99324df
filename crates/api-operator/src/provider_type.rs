//! What sort of provider something is.

use std::fmt;

/// A sort of provider. The order is the order in which they are installed and upgraded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProviderType {
    /// Cluster API itself.
    Core,
    /// Turns machines into nodes.
    Bootstrap,
    /// Manages control planes.
    ControlPlane,
    /// Machines and what is around them.
    Infrastructure,
    /// Addresses.
    Ipam,
    /// Extensions that are called while clusters live.
    RuntimeExtension,
    /// What is installed into workload clusters.
    Addon,
}

impl ProviderType {
    /// All of them, in order.
    pub const ALL: [Self; 7] = [
        Self::Core,
        Self::Bootstrap,
        Self::ControlPlane,
        Self::Infrastructure,
        Self::Ipam,
        Self::RuntimeExtension,
        Self::Addon,
    ];

    /// The kind that declares such a provider, which is also the `type` in the inventory.
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

    /// What the names of such providers' files and labels begin with: `core`, `control-plane`.
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

    /// The value of the label `cluster.x-k8s.io/provider` on the objects of a provider: `infrastructure-aws`. The core has
    /// its bare name.
    pub fn label(self, name: &str) -> String {
        match self {
            Self::Core => name.to_owned(),
            _ => format!("{}-{name}", self.word()),
        }
    }

    /// The file of a release that has the objects of such a provider: `infrastructure-components.yaml`.
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
