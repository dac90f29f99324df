//! Reasons of conditions of the core kinds (v1beta2). A constant is named like its text.

/// On Cluster, Machine, MachineDeployment.
pub const AVAILABLE: &str = "Available";
/// On Cluster.
pub const AVAILABLE_UNKNOWN: &str = "AvailableUnknown";
/// On MachineSet.
pub const CANNOT_BE_REMEDIATED: &str = "CannotBeRemediated";
/// On Cluster.
pub const CLUSTER_CLASS_NOT_RECONCILED: &str = "ClusterClassNotReconciled";
/// On Cluster.
pub const CLUSTER_CREATING: &str = "ClusterCreating";
/// On Cluster.
pub const CLUSTER_UPGRADING: &str = "ClusterUpgrading";
/// On Machine.
pub const CONNECTION_DOWN: &str = "ConnectionDown";
/// On Cluster.
pub const CONTROL_PLANE_UPGRADE_PENDING: &str = "ControlPlaneUpgradePending";
/// On Machine.
pub const DATA_SECRET_PROVIDED: &str = "DataSecretProvided";
/// On Cluster, Machine, MachineDeployment, MachineSet.
pub const DELETING: &str = "Deleting";
/// On Machine.
pub const DELETING_NODE: &str = "DeletingNode";
/// On Cluster, Machine.
pub const DELETION_COMPLETED: &str = "DeletionCompleted";
/// An extension has said which hooks it serves.
pub const DISCOVERED: &str = "Discovered";
/// On Machine.
pub const DRAINING_NODE: &str = "DrainingNode";
/// On Machine.
pub const HAS_REMEDIATE_ANNOTATION: &str = "HasRemediateAnnotation";
/// On Machine.
pub const HEALTH_CHECK_SUCCEEDED: &str = "HealthCheckSucceeded";
/// On Machine.
pub const IN_PLACE_UPDATE_FAILED: &str = "InPlaceUpdateFailed";
/// On Machine.
pub const IN_PLACE_UPDATING: &str = "InPlaceUpdating";
/// On Cluster.
pub const INITIALIZED: &str = "Initialized";
/// On Machine.
pub const INSPECTION_FAILED: &str = "InspectionFailed";
/// On Cluster, ClusterClass, Machine, MachineDeployment, MachineSet.
pub const INTERNAL_ERROR: &str = "InternalError";
/// On Cluster, Machine.
pub const INVALID_CONDITION_REPORTED: &str = "InvalidConditionReported";
/// On Cluster.
pub const LIFECYCLE_HOOK_BLOCKING: &str = "LifecycleHookBlocking";
/// On MachineSet.
pub const MACHINE_DELETING: &str = "MachineDeleting";
/// On Cluster.
pub const MACHINE_DEPLOYMENTS_CREATE_PENDING: &str = "MachineDeploymentsCreatePending";
/// On Cluster.
pub const MACHINE_DEPLOYMENTS_UPGRADE_DEFERRED: &str = "MachineDeploymentsUpgradeDeferred";
/// On Cluster.
pub const MACHINE_DEPLOYMENTS_UPGRADE_PENDING: &str = "MachineDeploymentsUpgradePending";
/// On Cluster.
pub const MACHINE_POOLS_CREATE_PENDING: &str = "MachinePoolsCreatePending";
/// On Cluster.
pub const MACHINE_POOLS_UPGRADE_DEFERRED: &str = "MachinePoolsUpgradeDeferred";
/// On Cluster.
pub const MACHINE_POOLS_UPGRADE_PENDING: &str = "MachinePoolsUpgradePending";
/// An extension has not said which hooks it serves, or nothing usable.
pub const NOT_DISCOVERED: &str = "NotDiscovered";
/// On Cluster, MachineDeployment, MachineSet.
pub const NO_REPLICAS: &str = "NoReplicas";
/// On Cluster.
pub const NO_WORKERS: &str = "NoWorkers";
/// On Machine.
pub const NODE_DELETED: &str = "NodeDeleted";
/// On Machine.
pub const NODE_DOES_NOT_EXIST: &str = "NodeDoesNotExist";
/// On Machine.
pub const NODE_HEALTHY: &str = "NodeHealthy";
/// On Machine.
pub const NODE_HEALTHY_UNKNOWN: &str = "NodeHealthyUnknown";
/// On Machine.
pub const NODE_NOT_HEALTHY: &str = "NodeNotHealthy";
/// On Machine.
pub const NODE_NOT_READY: &str = "NodeNotReady";
/// On Machine.
pub const NODE_READY: &str = "NodeReady";
/// On Machine.
pub const NODE_READY_UNKNOWN: &str = "NodeReadyUnknown";
/// On Machine.
pub const NODE_STARTUP_TIMEOUT: &str = "NodeStartupTimeout";
/// On Cluster, MachineDeployment.
pub const NOT_AVAILABLE: &str = "NotAvailable";
/// On Cluster, Machine, MachineDeployment, MachineSet.
pub const NOT_DELETING: &str = "NotDeleting";
/// On Cluster.
pub const NOT_INITIALIZED: &str = "NotInitialized";
/// The reason `NotPaused`.
pub const NOT_PAUSED: &str = "NotPaused";
/// The reason `NotProvisioned`.
pub const NOT_PROVISIONED: &str = "NotProvisioned";
/// On Cluster, Machine, MachineDeployment, MachineSet.
pub const NOT_READY: &str = "NotReady";
/// On Cluster, MachineDeployment, MachineSet.
pub const NOT_REMEDIATING: &str = "NotRemediating";
/// On Cluster, MachineDeployment.
pub const NOT_ROLLING_OUT: &str = "NotRollingOut";
/// On Cluster, MachineDeployment, MachineSet.
pub const NOT_SCALING_DOWN: &str = "NotScalingDown";
/// On Cluster, MachineDeployment, MachineSet.
pub const NOT_SCALING_UP: &str = "NotScalingUp";
/// On Cluster, Machine, MachineDeployment, MachineSet.
pub const NOT_UP_TO_DATE: &str = "NotUpToDate";
/// On Machine.
pub const NOT_UPDATING: &str = "NotUpdating";
/// On Cluster, Machine.
pub const OBJECT_DELETED: &str = "ObjectDeleted";
/// On Cluster, Machine.
pub const OBJECT_DOES_NOT_EXIST: &str = "ObjectDoesNotExist";
/// On Cluster.
pub const PAUSED: &str = "Paused";
/// On Cluster.
pub const PROBE_FAILED: &str = "ProbeFailed";
/// On Cluster.
pub const PROBE_SUCCEEDED: &str = "ProbeSucceeded";
/// The reason `Provisioned`.
pub const PROVISIONED: &str = "Provisioned";
/// On Cluster, Machine, MachineDeployment, MachineSet.
pub const READY: &str = "Ready";
/// On Cluster, Machine, MachineDeployment, MachineSet.
pub const READY_UNKNOWN: &str = "ReadyUnknown";
/// On Cluster.
pub const RECONCILE_FAILED: &str = "ReconcileFailed";
/// On Cluster.
pub const RECONCILE_SUCCEEDED: &str = "ReconcileSucceeded";
/// On ClusterClass.
pub const REF_VERSIONS_NOT_UP_TO_DATE: &str = "RefVersionsNotUpToDate";
/// On ClusterClass.
pub const REF_VERSIONS_UP_TO_DATE: &str = "RefVersionsUpToDate";
/// On Cluster, MachineDeployment, MachineSet.
pub const REMEDIATING: &str = "Remediating";
/// On MachineHealthCheck.
pub const REMEDIATION_ALLOWED: &str = "RemediationAllowed";
/// On MachineSet.
pub const REMEDIATION_DEFERRED: &str = "RemediationDeferred";
/// On Machine.
pub const REMEDIATION_REQUEST_CREATION_FAILED: &str = "RemediationRequestCreationFailed";
/// On Machine.
pub const REMEDIATION_TEMPLATE_NOT_FOUND: &str = "RemediationTemplateNotFound";
/// On Cluster, MachineDeployment.
pub const ROLLING_OUT: &str = "RollingOut";
/// On Cluster.
pub const ROLLING_OUT_UNKNOWN: &str = "RollingOutUnknown";
/// On Cluster, MachineDeployment, MachineSet.
pub const SCALING_DOWN: &str = "ScalingDown";
/// On Cluster.
pub const SCALING_DOWN_UNKNOWN: &str = "ScalingDownUnknown";
/// On Cluster, MachineDeployment, MachineSet.
pub const SCALING_UP: &str = "ScalingUp";
/// On Cluster.
pub const SCALING_UP_UNKNOWN: &str = "ScalingUpUnknown";
/// On MachineHealthCheck.
pub const TOO_MANY_UNHEALTHY: &str = "TooManyUnhealthy";
/// On Machine.
pub const UNHEALTHY_MACHINE: &str = "UnhealthyMachine";
/// On Machine.
pub const UNHEALTHY_NODE: &str = "UnhealthyNode";
/// On Cluster, Machine, MachineDeployment, MachineSet.
pub const UP_TO_DATE: &str = "UpToDate";
/// On Cluster, MachineDeployment, MachineSet.
pub const UP_TO_DATE_UNKNOWN: &str = "UpToDateUnknown";
/// On Machine.
pub const UPDATING: &str = "Updating";
/// On ClusterClass.
pub const VARIABLE_DISCOVERY_FAILED: &str = "VariableDiscoveryFailed";
/// On ClusterClass.
pub const VARIABLES_READY: &str = "VariablesReady";
/// On MachineDeployment.
pub const WAITING_FOR_AVAILABLE_REPLICAS_SET: &str = "WaitingForAvailableReplicasSet";
/// On Cluster.
pub const WAITING_FOR_BEFORE_DELETE_HOOK: &str = "WaitingForBeforeDeleteHook";
/// The reason `WaitingForBootstrapData`.
pub const WAITING_FOR_BOOTSTRAP_DATA: &str = "WaitingForBootstrapData";
/// On Machine.
pub const WAITING_FOR_BOOTSTRAP_DELETION: &str = "WaitingForBootstrapDeletion";
/// The reason `WaitingForClusterInfrastructureReady`.
pub const WAITING_FOR_CLUSTER_INFRASTRUCTURE_READY: &str = "WaitingForClusterInfrastructureReady";
/// On Cluster.
pub const WAITING_FOR_CONTROL_PLANE_DELETION: &str = "WaitingForControlPlaneDeletion";
/// The reason `WaitingForControlPlaneInitialized`.
pub const WAITING_FOR_CONTROL_PLANE_INITIALIZED: &str = "WaitingForControlPlaneInitialized";
/// On Cluster, Machine.
pub const WAITING_FOR_INFRASTRUCTURE_DELETION: &str = "WaitingForInfrastructureDeletion";
/// On Machine.
pub const WAITING_FOR_MIN_READY_SECONDS: &str = "WaitingForMinReadySeconds";
/// On Machine.
pub const WAITING_FOR_PRE_DRAIN_HOOK: &str = "WaitingForPreDrainHook";
/// On Machine.
pub const WAITING_FOR_PRE_TERMINATE_HOOK: &str = "WaitingForPreTerminateHook";
/// On Machine.
pub const WAITING_FOR_REMEDIATION: &str = "WaitingForRemediation";
/// On MachineDeployment, MachineSet.
pub const WAITING_FOR_REPLICAS_SET: &str = "WaitingForReplicasSet";
/// On Machine.
pub const WAITING_FOR_VOLUME_DETACH: &str = "WaitingForVolumeDetach";
/// On Cluster.
pub const WAITING_FOR_WORKERS_DELETION: &str = "WaitingForWorkersDeletion";
