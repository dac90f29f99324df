//! Condition types of the v1beta1 generation, kept in `status.deprecated.v1beta1`.

/// The object is available.
pub const AVAILABLE: &str = "Available";
/// The bootstrap data is ready.
pub const BOOTSTRAP_READY: &str = "BootstrapReady";
/// The control plane answered a request for the first time; never becomes false again.
pub const CONTROL_PLANE_INITIALIZED: &str = "ControlPlaneInitialized";
/// The control plane provider reports that it is ready.
pub const CONTROL_PLANE_READY: &str = "ControlPlaneReady";
/// The v1beta1 condition `Discovered`.
pub const DISCOVERED: &str = "Discovered";
/// The Node has been drained.
pub const DRAINING_SUCCEEDED: &str = "DrainingSucceeded";
/// The request to the external remediation could be made.
pub const EXTERNAL_REMEDIATION_REQUEST_AVAILABLE: &str = "ExternalRemediationRequestAvailable";
/// The template for external remediation was found.
pub const EXTERNAL_REMEDIATION_TEMPLATE_AVAILABLE: &str = "ExternalRemediationTemplateAvailable";
/// The Machine passes its health checks.
pub const HEALTH_CHECK_SUCCEEDED: &str = "HealthCheckSucceeded";
/// The infrastructure is provisioned.
pub const INFRASTRUCTURE_READY: &str = "InfrastructureReady";
/// The MachineSets of the MachineDeployment are ready.
pub const MACHINE_SET_READY: &str = "MachineSetReady";
/// All desired Machines were created.
pub const MACHINES_CREATED: &str = "MachinesCreated";
/// All Machines are ready.
pub const MACHINES_READY: &str = "MachinesReady";
/// The Node has no unhealthy conditions.
pub const NODE_HEALTHY: &str = "NodeHealthy";
/// The owner has remediated the unhealthy Machine.
pub const OWNER_REMEDIATED: &str = "OwnerRemediated";
/// No pre-drain hook is left.
pub const PRE_DRAIN_DELETE_HOOK_SUCCEEDED: &str = "PreDrainDeleteHookSucceeded";
/// No pre-terminate hook is left.
pub const PRE_TERMINATE_DELETE_HOOK_SUCCEEDED: &str = "PreTerminateDeleteHookSucceeded";
/// The object is ready.
pub const READY: &str = "Ready";
/// All references to templates name the newest version of their contract.
pub const REF_VERSIONS_UP_TO_DATE: &str = "RefVersionsUpToDate";
/// The number of unhealthy Machines permits remediation.
pub const REMEDIATION_ALLOWED: &str = "RemediationAllowed";
/// All replicas of the MachinePool are ready.
pub const REPLICAS_READY: &str = "ReplicasReady";
/// There are as many Machines as desired.
pub const RESIZED: &str = "Resized";
/// The objects of the cluster match its topology.
pub const TOPOLOGY_RECONCILED: &str = "TopologyReconciled";
/// All variables of the class are known.
pub const VARIABLES_RECONCILED: &str = "VariablesReconciled";
/// All volumes are detached from the Node.
pub const VOLUME_DETACH_SUCCEEDED: &str = "VolumeDetachSucceeded";
