//! Reasons of the v1beta1 generation, together with those of the core.

pub use windlass_api::v1beta1::reasons::*;

/// The v1beta1 reason `CertificatesCorrupted`.
pub const CERTIFICATES_CORRUPTED: &str = "CertificatesCorrupted";
/// The v1beta1 reason `CertificatesGenerationFailed`.
pub const CERTIFICATES_GENERATION_FAILED: &str = "CertificatesGenerationFailed";
/// The v1beta1 reason `ControlPlaneComponentsInspectionFailed`.
pub const CONTROL_PLANE_COMPONENTS_INSPECTION_FAILED: &str = "ControlPlaneComponentsInspectionFailed";
/// The v1beta1 reason `ControlPlaneComponentsUnhealthy`.
pub const CONTROL_PLANE_COMPONENTS_UNHEALTHY: &str = "ControlPlaneComponentsUnhealthy";
/// The v1beta1 reason `ControlPlaneComponentsUnknown`.
pub const CONTROL_PLANE_COMPONENTS_UNKNOWN: &str = "ControlPlaneComponentsUnknown";
/// The v1beta1 reason `DataSecretGenerationFailed`.
pub const DATA_SECRET_GENERATION_FAILED: &str = "DataSecretGenerationFailed";
/// The v1beta1 reason `EtcdClusterInspectionFailed`.
pub const ETCD_CLUSTER_INSPECTION_FAILED: &str = "EtcdClusterInspectionFailed";
/// The v1beta1 reason `EtcdClusterUnhealthy`.
pub const ETCD_CLUSTER_UNHEALTHY: &str = "EtcdClusterUnhealthy";
/// The v1beta1 reason `EtcdClusterUnknown`.
pub const ETCD_CLUSTER_UNKNOWN: &str = "EtcdClusterUnknown";
/// The v1beta1 reason `EtcdMemberUnhealthy`.
pub const ETCD_MEMBER_UNHEALTHY: &str = "EtcdMemberUnhealthy";
/// The v1beta1 reason `MachineGenerationFailed`.
pub const MACHINE_GENERATION_FAILED: &str = "MachineGenerationFailed";
/// The v1beta1 reason `MemberInspectionFailed`.
pub const MEMBER_INSPECTION_FAILED: &str = "MemberInspectionFailed";
/// The v1beta1 reason `PodFailed`.
pub const POD_FAILED: &str = "PodFailed";
/// The v1beta1 reason `PodInspectionFailed`.
pub const POD_INSPECTION_FAILED: &str = "PodInspectionFailed";
/// The v1beta1 reason `PodMissing`.
pub const POD_MISSING: &str = "PodMissing";
/// The v1beta1 reason `PodProvisioning`.
pub const POD_PROVISIONING: &str = "PodProvisioning";
/// The v1beta1 reason `RollingUpdateInProgress`.
pub const ROLLING_UPDATE_IN_PROGRESS: &str = "RollingUpdateInProgress";
/// The v1beta1 reason `WaitingForClusterInfrastructure`.
pub const WAITING_FOR_CLUSTER_INFRASTRUCTURE: &str = "WaitingForClusterInfrastructure";
/// The v1beta1 reason `WaitingForKubeadmInit`.
pub const WAITING_FOR_KUBEADM_INIT: &str = "WaitingForKubeadmInit";
