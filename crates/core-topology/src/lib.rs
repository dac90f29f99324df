//! Controllers of managed topologies: Clusters, ClusterClasses, and the clean-up of templates that are no longer used.

mod cleanup;
mod cluster;
mod cluster_class;
mod template_users;

use windlass_api::core::{MachineDeployment, MachineSet};
use windlass_kit::ControllerEntry;

pub use cluster::ClusterTopology;
pub use cluster_class::ClusterClasses;
pub use template_users::Templates;

/// Deletes templates with the last MachineDeployment that uses them.
pub type MachineDeploymentTemplates = Templates<MachineDeployment>;
/// Deletes templates with the last MachineSet that uses them.
pub type MachineSetTemplates = Templates<MachineSet>;

/// All controllers of this crate.
pub fn controllers() -> Vec<ControllerEntry> {
    vec![
        ControllerEntry::of(ClusterTopology::default()),
        ControllerEntry::of(ClusterClasses),
        ControllerEntry::of(MachineDeploymentTemplates::default()),
        ControllerEntry::of(MachineSetTemplates::default()),
    ]
}
