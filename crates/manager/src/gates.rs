//! The feature gates of Cluster API v1.14 (`--feature-gates`), by the names and the syntax of its managers.
//!
//! What can be turned off is on by default, also where the default of v1.14 is off: the gate protects from unfinished code. A gate that is turned off
//! has the effect that it has in v1.14. What cannot be turned off, or on, is refused with the reason.

use std::collections::{BTreeMap, BTreeSet};

use windlass_admission::Closed;
use windlass_api_kubeadm::values::FORMAT_IGNITION;
use windlass_runtime_client::Callable;

/// The feature gates of a process. By default all that can be turned off are on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeatureGates {
    off: BTreeSet<&'static str>,
}

/// How mature a feature is: `AllAlpha` and `AllBeta` are about all gates of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Alpha,
    Beta,
    Done,
}

impl Stage {
    /// The gate for all gates of the stage.
    const fn name(self) -> &'static str {
        match self {
            Self::Alpha => "AllAlpha",
            Self::Beta => "AllBeta",
            Self::Done => "",
        }
    }
}

/// What a gate can be.
#[derive(Clone, Copy, Debug)]
enum Can {
    /// On or off.
    Both,
    /// Only this, and why.
    Only(bool, &'static str),
}

const CLUSTER_TOPOLOGY: &str = "ClusterTopology";
const MACHINE_POOL: &str = "MachinePool";
const RUNTIME_SDK: &str = "RuntimeSDK";
const IGNITION: &str = "KubeadmBootstrapFormatIgnition";
const IN_PLACE_UPDATES: &str = "InPlaceUpdates";
const TAINTS: &str = "MachineTaintPropagation";
const PREFLIGHT: &str = "MachineSetPreflightChecks";

/// The gates of v1.14.
const GATES: &[(&str, Stage, Can)] = &[
    (CLUSTER_TOPOLOGY, Stage::Alpha, Can::Both),
    (IN_PLACE_UPDATES, Stage::Alpha, Can::Both),
    (IGNITION, Stage::Alpha, Can::Both),
    (MACHINE_POOL, Stage::Beta, Can::Both),
    (PREFLIGHT, Stage::Beta, Can::Both),
    (TAINTS, Stage::Alpha, Can::Both),
    (
        "MachineWaitForVolumeDetachConsiderVolumeAttachments",
        Stage::Done,
        Can::Only(true, "without VolumeAttachments, disks in use are not noticed"),
    ),
    (
        "PriorityQueue",
        Stage::Beta,
        Can::Only(false, "work queues have no priorities"),
    ),
    (
        "ReconcilerRateLimiting",
        Stage::Beta,
        Can::Only(false, "reconciles of an object are limited by failures alone"),
    ),
    (RUNTIME_SDK, Stage::Alpha, Can::Both),
];

/// Where objects have fields that a gate closes: the gate, the kind, the path, and the words of the refusal. `[]` stands for all items of a list.
const FIELDS: &[(&str, &str, &str, &str)] = &[
    (CLUSTER_TOPOLOGY, "ClusterClass", "spec", TOPOLOGY_WORDS),
    (CLUSTER_TOPOLOGY, "Cluster", "spec.topology", TOPOLOGY_WORDS),
    (CLUSTER_TOPOLOGY, "KubeadmControlPlaneTemplate", "spec", TOPOLOGY_WORDS),
    (CLUSTER_TOPOLOGY, "DevClusterTemplate", "spec", TOPOLOGY_WORDS),
    (
        MACHINE_POOL,
        "MachinePool",
        "spec",
        "can be set only if the MachinePool feature flag is enabled",
    ),
    (
        RUNTIME_SDK,
        "ExtensionConfig",
        "spec",
        "can be set only if the RuntimeSDK feature flag is enabled",
    ),
    (
        RUNTIME_SDK,
        "ClusterClass",
        "spec.patches[].external",
        "patch.external can be used only if the RuntimeSDK feature flag is enabled",
    ),
    (TAINTS, "Machine", "spec.taints", TAINTS_WORDS),
    (TAINTS, "MachineSet", "spec.template.spec.taints", TAINTS_WORDS),
    (TAINTS, "MachineDeployment", "spec.template.spec.taints", TAINTS_WORDS),
    (TAINTS, "MachinePool", "spec.template.spec.taints", TAINTS_WORDS),
    (
        TAINTS,
        "KubeadmControlPlane",
        "spec.machineTemplate.spec.taints",
        TAINTS_WORDS,
    ),
    (
        TAINTS,
        "KubeadmControlPlaneTemplate",
        "spec.template.spec.machineTemplate.spec.taints",
        TAINTS_WORDS,
    ),
    (TAINTS, "Cluster", "spec.topology.controlPlane.taints", TAINTS_WORDS),
    (
        TAINTS,
        "Cluster",
        "spec.topology.workers.machineDeployments[].taints",
        TAINTS_WORDS,
    ),
    (
        TAINTS,
        "Cluster",
        "spec.topology.workers.machinePools[].taints",
        TAINTS_WORDS,
    ),
    (TAINTS, "ClusterClass", "spec.controlPlane.taints", TAINTS_WORDS),
    (
        TAINTS,
        "ClusterClass",
        "spec.workers.machineDeployments[].taints",
        TAINTS_WORDS,
    ),
    (
        TAINTS,
        "ClusterClass",
        "spec.workers.machinePools[].taints",
        TAINTS_WORDS,
    ),
];

/// Where kinds have the specification of a KubeadmConfig, whose format a gate closes.
const KUBEADM_SPECS: &[(&str, &str, &str)] = &[
    ("KubeadmConfig", "spec.format", "spec.ignition"),
    (
        "KubeadmConfigTemplate",
        "spec.template.spec.format",
        "spec.template.spec.ignition",
    ),
    (
        "KubeadmControlPlane",
        "spec.kubeadmConfigSpec.format",
        "spec.kubeadmConfigSpec.ignition",
    ),
    (
        "KubeadmControlPlaneTemplate",
        "spec.template.spec.kubeadmConfigSpec.format",
        "spec.template.spec.kubeadmConfigSpec.ignition",
    ),
];

const IGNITION_WORDS: &str = "can be set only if the KubeadmBootstrapFormatIgnition feature gate is enabled";
const TOPOLOGY_WORDS: &str = "can be set only if the ClusterTopology feature flag is enabled";
const TAINTS_WORDS: &str = "taints are not allowed to be set when the feature gate MachineTaintPropagation is disabled";

impl FeatureGates {
    /// Reads values of `--feature-gates`: `NAME=true` and `NAME=false` with commas between them. Of several about one gate the last counts, and
    /// `AllAlpha` and `AllBeta` are about the gates that have none. The error says which one is wrong, and what is expected.
    pub fn of(values: &[impl AsRef<str>]) -> Result<Self, String> {
        let mut given: BTreeMap<&str, bool> = BTreeMap::new();
        let pairs = values.iter().flat_map(|value| value.as_ref().split(','));
        for pair in pairs.map(str::trim).filter(|pair| !pair.is_empty()) {
            let (name, value) = pair
                .split_once('=')
                .ok_or_else(|| format!("{pair:?} has no value: {pair}=true or {pair}=false is expected"))?;
            let (name, value) = (name.trim(), value.trim());
            let on =
                boolean(value).ok_or_else(|| format!("the value of {name} is {value:?}: true or false is expected"))?;
            if !is_known(name) {
                let known: Vec<&str> = GATES.iter().map(|(name, ..)| *name).collect();
                return Err(format!(
                    "Cluster API v1.14 has no feature gate {name:?}; it has AllAlpha, AllBeta, {}",
                    known.join(", ")
                ));
            }
            given.insert(name, on);
        }
        let mut off = BTreeSet::new();
        for (name, stage, can) in GATES {
            let own = given.get(name);
            match (can, own) {
                (Can::Only(only, why), Some(on)) if on != only => {
                    return Err(format!("{name} can only be {only} here: {why}; leave it out"));
                }
                (Can::Only(..), _) => {}
                (Can::Both, _) => {
                    if own.or_else(|| given.get(stage.name())) == Some(&false) {
                        off.insert(*name);
                    }
                }
            }
        }
        if off.contains(RUNTIME_SDK) && given.get(IN_PLACE_UPDATES) == Some(&true) {
            return Err(format!(
                "{IN_PLACE_UPDATES}=true needs {RUNTIME_SDK}=true: extensions say what can be updated in place"
            ));
        }
        Ok(Self { off })
    }

    fn is_on(&self, name: &str) -> bool {
        !self.off.contains(name)
    }

    /// The gate that keeps a controller from running, if one does.
    pub(crate) fn closes(&self, controller: &str) -> Option<&'static str> {
        let gate = match controller {
            "clusterclass" => CLUSTER_TOPOLOGY,
            _ if controller.starts_with("topology/") => CLUSTER_TOPOLOGY,
            "machinepool" | "devmachinepool" => MACHINE_POOL,
            "extensionconfig" => RUNTIME_SDK,
            _ => return None,
        };
        self.off.get(gate).copied()
    }

    /// Fields that objects of a kind may not have.
    pub(crate) fn closed(&self, kind: &str) -> Vec<Closed> {
        let of_kind = FIELDS.iter().filter(|(gate, of, ..)| *of == kind && !self.is_on(gate));
        let mut closed: Vec<Closed> = of_kind
            .map(|(_, _, path, words)| Closed {
                path,
                value: None,
                words,
            })
            .collect();
        let of_format = KUBEADM_SPECS
            .iter()
            .filter(|(of, ..)| *of == kind && !self.is_on(IGNITION));
        closed.extend(of_format.flat_map(|(_, format, ignition)| {
            [(*format, Some(FORMAT_IGNITION)), (*ignition, None)].map(|(path, value)| Closed {
                path,
                value,
                words: IGNITION_WORDS,
            })
        }));
        closed
    }

    /// Which hooks of extensions are called.
    pub(crate) fn callable(&self) -> Callable {
        Callable {
            of_topologies: self.is_on(RUNTIME_SDK) && self.is_on(CLUSTER_TOPOLOGY),
            in_place: self.is_on(RUNTIME_SDK) && self.is_on(IN_PLACE_UPDATES),
            asks_only: false,
        }
    }

    /// Whether MachineSets check before they make Machines.
    pub fn has_preflight_checks(&self) -> bool {
        self.is_on(PREFLIGHT)
    }

    /// Whether taints of Machines go to their Nodes.
    pub fn has_taints(&self) -> bool {
        self.is_on(TAINTS)
    }
}

fn is_known(name: &str) -> bool {
    [Stage::Alpha.name(), Stage::Beta.name()].contains(&name) || GATES.iter().any(|(known, ..)| *known == name)
}

/// A truth value as Go reads it.
fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::controllers::CONTROLLERS;
    use crate::registry::kinds::KINDS;

    fn off(values: &[&str]) -> Vec<&'static str> {
        FeatureGates::of(values).unwrap().off.into_iter().collect()
    }

    #[test]
    fn all_gates_are_on_until_one_is_turned_off() {
        assert_eq!(off(&[]), [""; 0]);
        assert_eq!(off(&["", "ClusterTopology=true,MachinePool=true"]), [""; 0]);
        assert_eq!(
            off(&["ClusterTopology=false, MachinePool=0", "RuntimeSDK=F"]),
            ["ClusterTopology", "MachinePool", "RuntimeSDK"]
        );
        assert_eq!(off(&["MachinePool=false", "MachinePool=true"]), [""; 0]);
        // The defaults of v1.14.
        assert_eq!(
            off(&["AllAlpha=false"]),
            [
                "ClusterTopology",
                "InPlaceUpdates",
                "KubeadmBootstrapFormatIgnition",
                "MachineTaintPropagation",
                "RuntimeSDK"
            ]
        );
        assert_eq!(
            off(&["AllAlpha=false,ClusterTopology=true,RuntimeSDK=true"]),
            [
                "InPlaceUpdates",
                "KubeadmBootstrapFormatIgnition",
                "MachineTaintPropagation"
            ]
        );
        assert_eq!(off(&["AllBeta=false"]), ["MachinePool", "MachineSetPreflightChecks"]);
        // What is as it has to be may be said.
        let said = "PriorityQueue=false,ReconcilerRateLimiting=false,KubeadmBootstrapFormatIgnition=true,\
                    MachineWaitForVolumeDetachConsiderVolumeAttachments=true";
        assert_eq!(off(&[said]), [""; 0]);
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_reason() {
        for (value, expect) in [
            (
                "ClusterTopology",
                "\"ClusterTopology\" has no value: ClusterTopology=true or",
            ),
            (
                "ClusterTopology=yes",
                "the value of ClusterTopology is \"yes\": true or false",
            ),
            (
                "ClusterTopolgy=true",
                "v1.14 has no feature gate \"ClusterTopolgy\"; it has AllAlpha, AllBeta, ClusterTopology,",
            ),
            (
                "PriorityQueue=true",
                "PriorityQueue can only be false here: work queues have no priorities",
            ),
            (
                "RuntimeSDK=false,InPlaceUpdates=true",
                "InPlaceUpdates=true needs RuntimeSDK=true",
            ),
        ] {
            let error = FeatureGates::of(&[value]).unwrap_err();
            assert!(error.contains(expect), "{value}: {error}");
        }
    }

    #[test]
    fn gates_name_controllers_and_kinds_that_there_are() {
        let all_off = FeatureGates::of(&["AllAlpha=false,AllBeta=false"]).unwrap();
        let closed: Vec<&str> = CONTROLLERS
            .iter()
            .map(|info| info.name)
            .filter(|name| all_off.closes(name).is_some())
            .collect();
        assert_eq!(
            closed,
            [
                "clusterclass",
                "topology/cluster",
                "topology/classrollout",
                "topology/machinedeployment",
                "topology/machineset",
                "machinepool",
                "extensionconfig",
                "devmachinepool"
            ]
        );
        let kinds = FIELDS.iter().map(|(_, kind, ..)| kind);
        for kind in kinds.chain(KUBEADM_SPECS.iter().map(|(kind, ..)| kind)) {
            let entry = KINDS.iter().find(|entry| entry.kind == *kind);
            assert!(entry.is_some_and(|entry| entry.admission.is_some()), "{kind}");
        }
        for info in CONTROLLERS {
            assert_eq!(FeatureGates::default().closes(info.name), None);
        }
    }

    #[test]
    fn the_format_ignition_needs_its_gate() {
        assert_eq!(FeatureGates::default().closed("KubeadmConfig"), []);
        let off = FeatureGates::of(&["KubeadmBootstrapFormatIgnition=false"]).unwrap();
        for (kind, ..) in KUBEADM_SPECS {
            let closed = off.closed(kind);
            let values: Vec<_> = closed.iter().map(|closed| closed.value).collect();
            assert_eq!(values, [Some("ignition"), None], "{kind}");
            assert!(
                closed
                    .iter()
                    .all(|closed| closed.words.contains("KubeadmBootstrapFormatIgnition"))
            );
        }
    }

    #[test]
    fn hooks_of_topologies_need_two_gates() {
        let callable = |value: &str| FeatureGates::of(&[value]).unwrap().callable();
        let of = |of_topologies, in_place| Callable {
            of_topologies,
            in_place,
            asks_only: false,
        };
        assert_eq!(callable(""), of(true, true));
        assert_eq!(callable("ClusterTopology=false"), of(false, true));
        assert_eq!(callable("InPlaceUpdates=false"), of(true, false));
        assert_eq!(callable("RuntimeSDK=false"), of(false, false));
    }
}
