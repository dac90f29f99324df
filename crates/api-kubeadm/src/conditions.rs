//! Condition types of the kubeadm kinds, together with those of the core.

pub use windlass_api::conditions::*;

/// The API server pod runs (on Machine (control plane)).
pub const API_SERVER_POD_HEALTHY: &str = "APIServerPodHealthy";
/// The CA certificates of the cluster exist (on KubeadmConfig, KubeadmControlPlane).
pub const CERTIFICATES_AVAILABLE: &str = "CertificatesAvailable";
/// The API server, controller manager and scheduler run on all control plane Machines (on KubeadmControlPlane).
pub const CONTROL_PLANE_COMPONENTS_HEALTHY: &str = "ControlPlaneComponentsHealthy";
/// The controller manager pod runs (on Machine (control plane)).
pub const CONTROLLER_MANAGER_POD_HEALTHY: &str = "ControllerManagerPodHealthy";
/// The Secret with the bootstrap data exists (on KubeadmConfig).
pub const DATA_SECRET_AVAILABLE: &str = "DataSecretAvailable";
/// The etcd cluster is healthy (on KubeadmControlPlane).
pub const ETCD_CLUSTER_HEALTHY: &str = "EtcdClusterHealthy";
/// The etcd member of the Machine is healthy (on Machine (control plane)).
pub const ETCD_MEMBER_HEALTHY: &str = "EtcdMemberHealthy";
/// The etcd pod runs (on Machine (control plane)).
pub const ETCD_POD_HEALTHY: &str = "EtcdPodHealthy";
/// kubeadm init has completed on the first control plane Machine (on KubeadmControlPlane).
pub const INITIALIZED: &str = "Initialized";
/// The Node has the labels and taints that kubeadm sets on control plane nodes (on Machine (control plane)).
pub const NODE_KUBEADM_LABELS_AND_TAINTS_SET: &str = "NodeKubeadmLabelsAndTaintsSet";
/// The scheduler pod runs (on Machine (control plane)).
pub const SCHEDULER_POD_HEALTHY: &str = "SchedulerPodHealthy";
