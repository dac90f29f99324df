//! Condition types of the v1beta1 generation, together with those of the core.

pub use windlass_api::v1beta1::conditions::*;

/// The API server pod runs.
pub const API_SERVER_POD_HEALTHY: &str = "APIServerPodHealthy";
/// The CA certificates of the cluster exist.
pub const CERTIFICATES_AVAILABLE: &str = "CertificatesAvailable";
/// The API server, controller manager and scheduler run on all control plane Machines.
pub const CONTROL_PLANE_COMPONENTS_HEALTHY: &str = "ControlPlaneComponentsHealthy";
/// The controller manager pod runs.
pub const CONTROLLER_MANAGER_POD_HEALTHY: &str = "ControllerManagerPodHealthy";
/// The Secret with the bootstrap data exists.
pub const DATA_SECRET_AVAILABLE: &str = "DataSecretAvailable";
/// The etcd cluster is healthy.
pub const ETCD_CLUSTER_HEALTHY: &str = "EtcdClusterHealthy";
/// The etcd member of the Machine is healthy.
pub const ETCD_MEMBER_HEALTHY: &str = "EtcdMemberHealthy";
/// The etcd pod runs.
pub const ETCD_POD_HEALTHY: &str = "EtcdPodHealthy";
/// All Machines match the current spec.
pub const MACHINES_SPEC_UP_TO_DATE: &str = "MachinesSpecUpToDate";
/// The scheduler pod runs.
pub const SCHEDULER_POD_HEALTHY: &str = "SchedulerPodHealthy";
