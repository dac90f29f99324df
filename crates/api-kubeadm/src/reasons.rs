//! Reasons of conditions of the kubeadm kinds, together with those of the core.

pub use windlass_api::reasons::*;

/// On Machine (control plane).
pub const DOES_NOT_EXIST: &str = "DoesNotExist";
/// On Machine (control plane).
pub const FAILED: &str = "Failed";
/// On KubeadmControlPlane.
pub const HEALTH_UNKNOWN: &str = "HealthUnknown";
/// On KubeadmControlPlane, Machine (control plane).
pub const HEALTHY: &str = "Healthy";
/// On KubeadmControlPlane, Machine (control plane).
pub const NOT_HEALTHY: &str = "NotHealthy";
/// On Machine (control plane).
pub const NOT_SET: &str = "NotSet";
/// On Machine (control plane).
pub const PROVISIONING: &str = "Provisioning";
/// On Machine (control plane).
pub const RUNNING: &str = "Running";
/// On Machine (control plane).
pub const SET: &str = "Set";
/// On KubeadmControlPlane.
pub const WAITING_FOR_MACHINE_DELETION: &str = "WaitingForMachineDeletion";
