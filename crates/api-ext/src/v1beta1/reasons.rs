//! Reasons of the v1beta1 generation, together with those of the core.

pub use windlass_api::v1beta1::reasons::*;

/// The v1beta1 reason `BootstrapFailed`.
pub const BOOTSTRAP_FAILED: &str = "BootstrapFailed";
/// The v1beta1 reason `Bootstrapping`.
pub const BOOTSTRAPPING: &str = "Bootstrapping";
/// The v1beta1 reason `ContainerDeleted`.
pub const CONTAINER_DELETED: &str = "ContainerDeleted";
/// The v1beta1 reason `ContainerProvisioningFailed`.
pub const CONTAINER_PROVISIONING_FAILED: &str = "ContainerProvisioningFailed";
/// The v1beta1 reason `LoadBalancerProvisioningFailed`.
pub const LOAD_BALANCER_PROVISIONING_FAILED: &str = "LoadBalancerProvisioningFailed";
/// On DevMachine.
pub const WAITING_CONTROL_PLANE_INITIALIZED: &str = "WaitingControlPlaneInitialized";
/// The v1beta1 reason `WaitingForBootstrapData`.
pub const WAITING_FOR_BOOTSTRAP_DATA: &str = "WaitingForBootstrapData";
/// The v1beta1 reason `WaitingForClusterInfrastructure`.
pub const WAITING_FOR_CLUSTER_INFRASTRUCTURE: &str = "WaitingForClusterInfrastructure";
/// On DevMachine.
pub const WAITING_FOR_STARTUP_TIMEOUT: &str = "WaitingForStartupTimeout";
