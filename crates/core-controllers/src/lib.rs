//! Cluster, Machine, MachineSet, MachineDeployment controllers.

pub mod cluster;
pub mod machine;
pub mod machine_deployment;
pub mod machine_health_check;
pub mod machine_set;
mod shared;
