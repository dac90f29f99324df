//! Finalizers of the dev provider. They have the names of the Docker provider's finalizers, from which the dev kinds
//! descend.

/// On DevCluster.
pub const DEV_CLUSTER: &str = "dockercluster.infrastructure.cluster.x-k8s.io";
/// On DevIPPool: claims have addresses of it.
pub const DEV_IP_POOL: &str = "devippool.infrastructure.cluster.x-k8s.io";
/// On DevMachinePool.
pub const DEV_MACHINE_POOL: &str = "dockermachinepool.infrastructure.cluster.x-k8s.io";
/// On DevMachine.
pub const DEV_MACHINE: &str = "dockermachine.infrastructure.cluster.x-k8s.io";
