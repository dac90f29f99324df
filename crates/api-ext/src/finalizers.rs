//! Finalizers of the dev provider; they are spelled like the Docker provider's, which dev objects grew out of.

/// On DevCluster.
pub const DEV_CLUSTER: &str = "dockercluster.infrastructure.cluster.x-k8s.io";
/// On DevMachine.
pub const DEV_MACHINE: &str = "dockermachine.infrastructure.cluster.x-k8s.io";
