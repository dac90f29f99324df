//! The providers that Windlass has built in: which ones, and as which version of them they count.

use crate::keys;
use crate::provider_type::ProviderType;

/// The version of Cluster API whose behaviour Windlass has.
pub const CLUSTER_API: &str = "v1.14.0";
/// The version of the Helm add-on provider whose behaviour Windlass has. It has releases of its own.
const HELM: &str = "v0.6.4";
/// The namespace of the built-in providers in the inventory: that of Windlass.
pub const NAMESPACE: &str = "windlass-system";

/// A provider that Windlass has built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuiltIn {
    /// The type. There is at most one of each.
    pub type_: ProviderType,
    /// The name by which clusterctl knows it.
    pub name: &'static str,
    /// The version that it counts as.
    pub version: &'static str,
    /// The contract that it follows. The core understands the ones before, too.
    pub contract: &'static str,
}

/// All of them, in the order of their types.
pub const BUILT_IN: [BuiltIn; 5] = [
    built_in(ProviderType::Core, keys::CORE, CLUSTER_API),
    built_in(ProviderType::Bootstrap, "kubeadm", CLUSTER_API),
    built_in(ProviderType::ControlPlane, "kubeadm", CLUSTER_API),
    // clusterctl knows the provider of DevClusters by this name.
    built_in(ProviderType::Infrastructure, "docker", CLUSTER_API),
    built_in(ProviderType::Addon, "helm", HELM),
];

const fn built_in(type_: ProviderType, name: &'static str, version: &'static str) -> BuiltIn {
    BuiltIn {
        type_,
        name,
        version,
        contract: "v1beta2",
    }
}

impl BuiltIn {
    /// The value of the label `cluster.x-k8s.io/provider` on what belongs to it, as on its definitions.
    pub fn label(&self) -> String {
        self.type_.label(self.name)
    }

    /// Whether a declaration of the type with this name is one of this provider. There is one core, whatever it is called.
    pub fn is(&self, type_: ProviderType, name: &str) -> bool {
        self.type_ == type_ && (type_ == ProviderType::Core || self.name == name)
    }

    /// Why a declaration with this name and version cannot be had, by field, and what to do; nothing if it is satisfied.
    pub fn refuses(&self, name: &str, version: Option<&str>) -> Option<(&'static str, String)> {
        let Self {
            type_,
            name: mine,
            version: have,
            ..
        } = self;
        if name != *mine {
            let message = format!(
                "Windlass has the {type_} {mine} built in, as version {have}, and there is only one: delete this declaration, or \
                 declare it as {mine}"
            );
            return Some(("metadata.name", message));
        }
        let wanted = version.filter(|wanted| wanted != have)?;
        let message = format!(
            "Windlass has the {type_} {mine} built in, as version {have}, and installs no other in its place: leave spec.version out, \
             or set it to {have}; to run {wanted}, start Windlass without its own controllers of this provider (--controllers)"
        );
        Some(("spec.version", message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_of_a_type_at_most() {
        assert!(
            BUILT_IN.is_sorted_by_key(|built_in| built_in.type_)
                && BUILT_IN.windows(2).all(|pair| pair[0].type_ != pair[1].type_)
        );
        let labels: Vec<String> = BUILT_IN.iter().map(BuiltIn::label).collect();
        let expect = [
            "cluster-api",
            "bootstrap-kubeadm",
            "control-plane-kubeadm",
            "infrastructure-docker",
            "addon-helm",
        ];
        assert_eq!(labels, expect);
    }

    #[test]
    fn only_its_own_name_and_version_are_satisfied() {
        let [core, ..] = BUILT_IN;
        let field = |name: &str, version: Option<&str>| core.refuses(name, version).map(|(field, _)| field);
        assert_eq!(field("cluster-api", None), None);
        assert_eq!(field("cluster-api", Some(CLUSTER_API)), None);
        assert_eq!(field("cluster-api", Some("v1.13.0")), Some("spec.version"));
        assert_eq!(field("mine", Some(CLUSTER_API)), Some("metadata.name"));
        let (_, why) = core.refuses("cluster-api", Some("v1.13.0")).unwrap();
        for words in [
            "CoreProvider cluster-api",
            "v1.14.0",
            "leave spec.version out",
            "to run v1.13.0",
            "--controllers",
        ] {
            assert!(why.contains(words), "{words}: {why}");
        }
    }

    #[test]
    fn the_core_is_one_by_any_name() {
        let [core, bootstrap, ..] = BUILT_IN;
        assert!(core.is(ProviderType::Core, "cluster-api") && core.is(ProviderType::Core, "mine"));
        assert!(bootstrap.is(ProviderType::Bootstrap, "kubeadm"));
        assert!(
            !bootstrap.is(ProviderType::Bootstrap, "talos") && !bootstrap.is(ProviderType::ControlPlane, "kubeadm")
        );
    }
}
