//! Reasons of the dev provider, together with those of the core.

pub use windlass_api::reasons::*;

/// On DevMachine.
pub const COMPLETED: &str = "Completed";
/// On DevMachine.
pub const FAILED: &str = "Failed";
/// On DevMachine.
pub const NOT_COMPLETED: &str = "NotCompleted";
/// On DevMachine.
pub const WAITING_CONTROL_PLANE_INITIALIZED: &str = "WaitingControlPlaneInitialized";
/// On DevMachine.
pub const WAITING_FOR_CGROUPS: &str = "WaitingForCGroups";
/// On DevMachine.
pub const WAITING_FOR_CONTAINER: &str = "WaitingForContainer";
/// On DevMachine.
pub const WAITING_FOR_CONTROL_PLANE_ENDPOINT: &str = "WaitingForControlPlaneEndpoint";
/// On DevMachine.
pub const WAITING_FOR_NODE_PROVISIONED: &str = "WaitingForNodeProvisioned";
/// On DevMachine.
pub const WAITING_FOR_PRELOADED_IMAGES: &str = "WaitingForPreloadedImages";
/// On DevMachine.
pub const WAITING_FOR_STARTUP_TIMEOUT: &str = "WaitingForStartupTimeout";
/// On DevMachine.
pub const WAITING_FOR_VM_PROVISIONED: &str = "WaitingForVMProvisioned";
