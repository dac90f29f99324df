//! Controllers of managed topologies: Clusters, ClusterClasses, and the clean-up of templates that are no longer used.

mod cleanup;
mod cluster;
mod cluster_class;
mod machine_deployment;
mod machine_set;

use windlass_kit::ControllerEntry;

pub use cluster::ClusterTopology;
pub use cluster_class::ClusterClasses;
pub use machine_deployment::MachineDeploymentTemplates;
pub use machine_set::MachineSetTemplates;

/// All controllers of this crate.
pub fn controllers() -> Vec<ControllerEntry> {
    vec![
        ControllerEntry::of(ClusterTopology::default()),
        ControllerEntry::of(ClusterClasses),
        ControllerEntry::of(MachineDeploymentTemplates),
        ControllerEntry::of(MachineSetTemplates),
    ]
}
