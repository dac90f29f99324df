//! Cluster, Machine, MachineSet, MachineDeployment, MachineHealthCheck, MachinePool, ClusterResourceSet, ExtensionConfig controllers,
//! and the migration of stored objects.

pub mod cluster;
pub mod cluster_resource_set;
pub mod cluster_resource_set_binding;
pub mod crd_migration;
pub mod extension_config;
pub mod machine;
pub mod machine_deployment;
pub mod machine_health_check;
pub mod machine_pool;
pub mod machine_set;
mod shared;
