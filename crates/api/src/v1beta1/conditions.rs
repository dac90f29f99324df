//! Condition types of the v1beta1 generation, kept in `status.deprecated.v1beta1`.

/// The object works as it should and has done so for long enough.
pub const AVAILABLE: &str = "Available";
/// The bootstrap data is there.
pub const BOOTSTRAP_READY: &str = "BootstrapReady";
/// The control plane answered a request for the first time; never becomes false again.
pub const CONTROL_PLANE_INITIALIZED: &str = "ControlPlaneInitialized";
/// The control plane provider reports that it is ready.
pub const CONTROL_PLANE_READY: &str = "ControlPlaneReady";
/// The Node has been drained.
pub const DRAINING_SUCCEEDED: &str = "DrainingSucceeded";
/// The request to the external remediation could be made.
pub const EXTERNAL_REMEDIATION_REQUEST_AVAILABLE: &str = "ExternalRemediationRequestAvailable";
/// The template for external remediation was found.
pub const EXTERNAL_REMEDIATION_TEMPLATE_AVAILABLE: &str = "ExternalRemediationTemplateAvailable";
/// The Machine passes its health checks.
pub const HEALTH_CHECK_SUCCEEDED: &str = "HealthCheckSucceeded";
/// The infrastructure provider has made what it should.
pub const INFRASTRUCTURE_READY: &str = "InfrastructureReady";
/// The MachineSets of the MachineDeployment are ready.
pub const MACHINE_SET_READY: &str = "MachineSetReady";
/// All Machines wished for could be created.
pub const MACHINES_CREATED: &str = "MachinesCreated";
/// All Machines are ready.
pub const MACHINES_READY: &str = "MachinesReady";
/// The Node reports none of the conditions that mean trouble.
pub const NODE_HEALTHY: &str = "NodeHealthy";
/// The owner has dealt with the unhealthy Machine.
pub const OWNER_REMEDIATED: &str = "OwnerRemediated";
/// Nothing holds back the drain any more.
pub const PRE_DRAIN_DELETE_HOOK_SUCCEEDED: &str = "PreDrainDeleteHookSucceeded";
/// Nothing holds back the deletion of the infrastructure any more.
pub const PRE_TERMINATE_DELETE_HOOK_SUCCEEDED: &str = "PreTerminateDeleteHookSucceeded";
/// The object is ready.
pub const READY: &str = "Ready";
/// All references to templates name the newest version of their contract.
pub const REF_VERSIONS_UP_TO_DATE: &str = "RefVersionsUpToDate";
/// So few Machines are unhealthy that they may be replaced.
pub const REMEDIATION_ALLOWED: &str = "RemediationAllowed";
/// All replicas of the MachinePool are ready.
pub const REPLICAS_READY: &str = "ReplicasReady";
/// There are as many Machines as wished for.
pub const RESIZED: &str = "Resized";
/// The objects of the cluster match its topology.
pub const TOPOLOGY_RECONCILED: &str = "TopologyReconciled";
/// All variables of the class are known.
pub const VARIABLES_RECONCILED: &str = "VariablesReconciled";
/// All volumes are detached from the Node.
pub const VOLUME_DETACH_SUCCEEDED: &str = "VolumeDetachSucceeded";
