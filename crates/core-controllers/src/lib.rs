//! Cluster, Machine, MachineSet, MachineDeployment, MachineHealthCheck, MachinePool, ClusterResourceSet, ExtensionConfig controllers.

pub mod cluster;
pub mod cluster_resource_set;
pub mod cluster_resource_set_binding;
pub mod extension_config;
pub mod machine;
pub mod machine_deployment;
pub mod machine_health_check;
pub mod machine_pool;
pub mod machine_set;
mod shared;
