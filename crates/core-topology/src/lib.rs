//! Controllers of managed topologies: Clusters, ClusterClasses, and the clean-up of templates that are no longer used.

mod class_rollout;
mod cluster;
mod cluster_class;
pub mod preview;
mod template_users;

use windlass_api::core::{MachineDeployment, MachineSet};
use windlass_controller_runtime::ControllerEntry;
use windlass_runtime_client::Extensions;

use class_rollout::ClassRollouts;
use cluster::ClusterTopology;
use cluster_class::ClusterClasses;
use template_users::Templates;

/// The controller of ClusterClasses, of which `extensions` define variables.
pub fn cluster_classes(extensions: Extensions) -> ControllerEntry {
    ControllerEntry::of(ClusterClasses::new(extensions))
}

/// The controller of the topologies of Clusters, whose hooks `extensions` serve.
pub fn cluster_topologies(extensions: Extensions) -> ControllerEntry {
    ControllerEntry::of(ClusterTopology::new(extensions))
}

/// The controller of ClusterClassRollouts.
pub fn class_rollouts() -> ControllerEntry {
    ControllerEntry::of(ClassRollouts::default())
}

/// The controller that deletes templates with the last MachineDeployment that uses them.
pub fn machine_deployment_templates() -> ControllerEntry {
    ControllerEntry::of(Templates::<MachineDeployment>::default())
}

/// The controller that deletes templates with the last MachineSet that uses them.
pub fn machine_set_templates() -> ControllerEntry {
    ControllerEntry::of(Templates::<MachineSet>::default())
}
