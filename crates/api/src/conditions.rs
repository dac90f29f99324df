//! Condition types of the core kinds (v1beta2). A constant is named like its text.

/// The object is available (on Cluster, Machine, MachineDeployment).
pub const AVAILABLE: &str = "Available";
/// The bootstrap data of the machine is ready (on Machine).
pub const BOOTSTRAP_CONFIG_READY: &str = "BootstrapConfigReady";
/// The control plane answers requests (on Cluster).
pub const CONTROL_PLANE_AVAILABLE: &str = "ControlPlaneAvailable";
/// The control plane answered a request for the first time; never becomes false again (on Cluster).
pub const CONTROL_PLANE_INITIALIZED: &str = "ControlPlaneInitialized";
/// All control plane Machines are ready (on Cluster).
pub const CONTROL_PLANE_MACHINES_READY: &str = "ControlPlaneMachinesReady";
/// All control plane Machines match the current spec (on Cluster).
pub const CONTROL_PLANE_MACHINES_UP_TO_DATE: &str = "ControlPlaneMachinesUpToDate";
/// The object is being deleted (on Cluster, Machine, MachineDeployment, MachineSet).
pub const DELETING: &str = "Deleting";
/// An extension has said which hooks it serves.
pub const DISCOVERED: &str = "Discovered";
/// An external system has remediated the unhealthy Machine (on Machine).
pub const EXTERNALLY_REMEDIATED: &str = "ExternallyRemediated";
/// The Machine passes its health checks (on Machine).
pub const HEALTH_CHECK_SUCCEEDED: &str = "HealthCheckSucceeded";
/// The infrastructure is provisioned (on Cluster, Machine).
pub const INFRASTRUCTURE_READY: &str = "InfrastructureReady";
/// All Machines are ready (on MachineDeployment, MachineSet).
pub const MACHINES_READY: &str = "MachinesReady";
/// All Machines match the current spec (on MachineDeployment, MachineSet).
pub const MACHINES_UP_TO_DATE: &str = "MachinesUpToDate";
/// The Node has no unhealthy conditions (on Machine).
pub const NODE_HEALTHY: &str = "NodeHealthy";
/// The Node is ready (on Machine).
pub const NODE_READY: &str = "NodeReady";
/// The owner has remediated the unhealthy Machine (on Machine).
pub const OWNER_REMEDIATED: &str = "OwnerRemediated";
/// Reconciling is paused.
pub const PAUSED: &str = "Paused";
/// The object is ready (on Machine).
pub const READY: &str = "Ready";
/// All references to templates name the newest version of their contract (on ClusterClass).
pub const REF_VERSIONS_UP_TO_DATE: &str = "RefVersionsUpToDate";
/// Unhealthy Machines are being remediated (on Cluster, MachineDeployment, MachineSet).
pub const REMEDIATING: &str = "Remediating";
/// The number of unhealthy Machines permits remediation (on MachineHealthCheck).
pub const REMEDIATION_ALLOWED: &str = "RemediationAllowed";
/// The API server of the workload cluster answers the manager (on Cluster).
pub const REMOTE_CONNECTION_PROBE: &str = "RemoteConnectionProbe";
/// A rollout is in progress: Machines are being replaced or updated after a change of the spec (on Cluster,
/// MachineDeployment).
pub const ROLLING_OUT: &str = "RollingOut";
/// There are more Machines than desired (on Cluster, MachineDeployment, MachineSet).
pub const SCALING_DOWN: &str = "ScalingDown";
/// There are fewer Machines than desired (on Cluster, MachineDeployment, MachineSet).
pub const SCALING_UP: &str = "ScalingUp";
/// The objects of the cluster match its topology (on Cluster).
pub const TOPOLOGY_RECONCILED: &str = "TopologyReconciled";
/// The Machine matches its owner's template (on Machine).
pub const UP_TO_DATE: &str = "UpToDate";
/// The Machine is being updated in place (on Machine).
pub const UPDATING: &str = "Updating";
/// All variables of the class, also discovered ones, are known (on ClusterClass).
pub const VARIABLES_READY: &str = "VariablesReady";
/// All worker Machines are ready (on Cluster).
pub const WORKER_MACHINES_READY: &str = "WorkerMachinesReady";
/// All worker Machines match the current spec (on Cluster).
pub const WORKER_MACHINES_UP_TO_DATE: &str = "WorkerMachinesUpToDate";
/// The worker groups are available (on Cluster).
pub const WORKERS_AVAILABLE: &str = "WorkersAvailable";
