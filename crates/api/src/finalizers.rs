//! Finalizers.

/// On Cluster.
pub const CLUSTER: &str = "cluster.cluster.x-k8s.io";
/// On Machine.
pub const MACHINE: &str = "machine.cluster.x-k8s.io";
/// On MachineSet.
pub const MACHINE_SET: &str = "cluster.x-k8s.io/machineset";
/// On MachineSet, for the topology controllers.
pub const MACHINE_SET_TOPOLOGY: &str = "machineset.topology.cluster.x-k8s.io";
/// On MachineDeployment.
pub const MACHINE_DEPLOYMENT: &str = "cluster.x-k8s.io/machinedeployment";
/// On MachineDeployment, for the topology controllers.
pub const MACHINE_DEPLOYMENT_TOPOLOGY: &str = "machinedeployment.topology.cluster.x-k8s.io";
/// On MachinePool.
pub const MACHINE_POOL: &str = "machinepool.cluster.x-k8s.io";
