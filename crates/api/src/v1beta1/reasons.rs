//! Reasons of conditions of the v1beta1 generation.

/// The v1beta1 reason `BootstrapTemplateCloningFailed`.
pub const BOOTSTRAP_TEMPLATE_CLONING_FAILED: &str = "BootstrapTemplateCloningFailed";
/// The v1beta1 reason `ClusterClassNotReconciled`.
pub const CLUSTER_CLASS_NOT_RECONCILED: &str = "ClusterClassNotReconciled";
/// The v1beta1 reason `ClusterCreating`.
pub const CLUSTER_CREATING: &str = "ClusterCreating";
/// The v1beta1 reason `ClusterUpgrading`.
pub const CLUSTER_UPGRADING: &str = "ClusterUpgrading";
/// The v1beta1 reason `ControlPlaneUpgradePending`.
pub const CONTROL_PLANE_UPGRADE_PENDING: &str = "ControlPlaneUpgradePending";
/// The v1beta1 reason `Deleted`.
pub const DELETED: &str = "Deleted";
/// The v1beta1 reason `Deleting`.
pub const DELETING: &str = "Deleting";
/// The v1beta1 reason `DeletionFailed`.
pub const DELETION_FAILED: &str = "DeletionFailed";
/// The v1beta1 reason `DiscoveryFailed`.
pub const DISCOVERY_FAILED: &str = "DiscoveryFailed";
/// The v1beta1 reason `Draining`.
pub const DRAINING: &str = "Draining";
/// The v1beta1 reason `DrainingFailed`.
pub const DRAINING_FAILED: &str = "DrainingFailed";
/// The v1beta1 reason `ExternalRemediationRequestCreationFailed`.
pub const EXTERNAL_REMEDIATION_REQUEST_CREATION_FAILED: &str = "ExternalRemediationRequestCreationFailed";
/// The v1beta1 reason `ExternalRemediationTemplateNotFound`.
pub const EXTERNAL_REMEDIATION_TEMPLATE_NOT_FOUND: &str = "ExternalRemediationTemplateNotFound";
/// The v1beta1 reason `HasRemediateMachineAnnotation`.
pub const HAS_REMEDIATE_MACHINE_ANNOTATION: &str = "HasRemediateMachineAnnotation";
/// The v1beta1 reason `IncorrectExternalRef`.
pub const INCORRECT_EXTERNAL_REF: &str = "IncorrectExternalRef";
/// The v1beta1 reason `InfrastructureTemplateCloningFailed`.
pub const INFRASTRUCTURE_TEMPLATE_CLONING_FAILED: &str = "InfrastructureTemplateCloningFailed";
/// The v1beta1 reason `InternalError`.
pub const INTERNAL_ERROR: &str = "InternalError";
/// The v1beta1 reason `LifecycleHookBlocking`.
pub const LIFECYCLE_HOOK_BLOCKING: &str = "LifecycleHookBlocking";
/// The v1beta1 reason `MachineCreationFailed`.
pub const MACHINE_CREATION_FAILED: &str = "MachineCreationFailed";
/// The v1beta1 reason `MachineDeploymentsCreatePending`.
pub const MACHINE_DEPLOYMENTS_CREATE_PENDING: &str = "MachineDeploymentsCreatePending";
/// The v1beta1 reason `MachineDeploymentsUpgradeDeferred`.
pub const MACHINE_DEPLOYMENTS_UPGRADE_DEFERRED: &str = "MachineDeploymentsUpgradeDeferred";
/// The v1beta1 reason `MachineDeploymentsUpgradePending`.
pub const MACHINE_DEPLOYMENTS_UPGRADE_PENDING: &str = "MachineDeploymentsUpgradePending";
/// The v1beta1 reason `MachineHasFailure`.
pub const MACHINE_HAS_FAILURE: &str = "MachineHasFailure";
/// The v1beta1 reason `MachinePoolsCreatePending`.
pub const MACHINE_POOLS_CREATE_PENDING: &str = "MachinePoolsCreatePending";
/// The v1beta1 reason `MachinePoolsUpgradeDeferred`.
pub const MACHINE_POOLS_UPGRADE_DEFERRED: &str = "MachinePoolsUpgradeDeferred";
/// The v1beta1 reason `MachinePoolsUpgradePending`.
pub const MACHINE_POOLS_UPGRADE_PENDING: &str = "MachinePoolsUpgradePending";
/// The v1beta1 reason `MissingNodeRef`.
pub const MISSING_NODE_REF: &str = "MissingNodeRef";
/// The v1beta1 reason `NodeConditionsFailed`.
pub const NODE_CONDITIONS_FAILED: &str = "NodeConditionsFailed";
/// The v1beta1 reason `NodeInspectionFailed`.
pub const NODE_INSPECTION_FAILED: &str = "NodeInspectionFailed";
/// The v1beta1 reason `NodeNotFound`.
pub const NODE_NOT_FOUND: &str = "NodeNotFound";
/// The v1beta1 reason `NodeProvisioning`.
pub const NODE_PROVISIONING: &str = "NodeProvisioning";
/// The v1beta1 reason `NodeStartupTimeout`.
pub const NODE_STARTUP_TIMEOUT: &str = "NodeStartupTimeout";
/// The v1beta1 reason `OutdatedRefVersions`.
pub const OUTDATED_REF_VERSIONS: &str = "OutdatedRefVersions";
/// The v1beta1 reason `Paused`.
pub const PAUSED: &str = "Paused";
/// The v1beta1 reason `PreflightCheckFailed`.
pub const PREFLIGHT_CHECK_FAILED: &str = "PreflightCheckFailed";
/// The v1beta1 reason `RemediationFailed`.
pub const REMEDIATION_FAILED: &str = "RemediationFailed";
/// The v1beta1 reason `RemediationInProgress`.
pub const REMEDIATION_IN_PROGRESS: &str = "RemediationInProgress";
/// The v1beta1 reason `ScalingDown`.
pub const SCALING_DOWN: &str = "ScalingDown";
/// The v1beta1 reason `ScalingUp`.
pub const SCALING_UP: &str = "ScalingUp";
/// The v1beta1 reason `TooManyUnhealthy`.
pub const TOO_MANY_UNHEALTHY: &str = "TooManyUnhealthy";
/// The v1beta1 reason `TopologyReconcileFailed`.
pub const TOPOLOGY_RECONCILE_FAILED: &str = "TopologyReconcileFailed";
/// The v1beta1 reason `UnhealthyMachine`.
pub const UNHEALTHY_MACHINE: &str = "UnhealthyMachine";
/// The v1beta1 reason `UnhealthyNode`.
pub const UNHEALTHY_NODE: &str = "UnhealthyNode";
/// The v1beta1 reason `VariableDiscoveryFailed`.
pub const VARIABLE_DISCOVERY_FAILED: &str = "VariableDiscoveryFailed";
/// The v1beta1 reason `WaitingExternalHook`.
pub const WAITING_EXTERNAL_HOOK: &str = "WaitingExternalHook";
/// The v1beta1 reason `WaitingForAvailableMachines`.
pub const WAITING_FOR_AVAILABLE_MACHINES: &str = "WaitingForAvailableMachines";
/// The v1beta1 reason `WaitingForControlPlane`.
pub const WAITING_FOR_CONTROL_PLANE: &str = "WaitingForControlPlane";
/// The v1beta1 reason `WaitingForControlPlaneAvailable`.
pub const WAITING_FOR_CONTROL_PLANE_AVAILABLE: &str = "WaitingForControlPlaneAvailable";
/// The v1beta1 reason `WaitingForControlPlaneProviderInitialized`.
pub const WAITING_FOR_CONTROL_PLANE_PROVIDER_INITIALIZED: &str = "WaitingForControlPlaneProviderInitialized";
/// The v1beta1 reason `WaitingForDataSecret`.
pub const WAITING_FOR_DATA_SECRET: &str = "WaitingForDataSecret";
/// The v1beta1 reason `WaitingForInfrastructure`.
pub const WAITING_FOR_INFRASTRUCTURE: &str = "WaitingForInfrastructure";
/// The v1beta1 reason `WaitingForMachineSet`.
pub const WAITING_FOR_MACHINE_SET: &str = "WaitingForMachineSet";
/// The v1beta1 reason `WaitingForNodeRef`.
pub const WAITING_FOR_NODE_REF: &str = "WaitingForNodeRef";
/// The v1beta1 reason `WaitingForRemediation`.
pub const WAITING_FOR_REMEDIATION: &str = "WaitingForRemediation";
/// The v1beta1 reason `WaitingForReplicasReady`.
pub const WAITING_FOR_REPLICAS_READY: &str = "WaitingForReplicasReady";
/// The v1beta1 reason `WaitingForVolumeDetach`.
pub const WAITING_FOR_VOLUME_DETACH: &str = "WaitingForVolumeDetach";
