//! Condition types of the dev provider, together with those of the core.

pub use windlass_api::conditions::*;

/// The simulated API server runs (on DevMachine).
pub const API_SERVER_PROVISIONED: &str = "APIServerProvisioned";
/// The container has run the bootstrap data (on DevMachine).
pub const BOOTSTRAP_COMPLETED: &str = "BootstrapCompleted";
/// The control groups of the container are set up (on DevMachine).
pub const CGROUPS_READY: &str = "CGroupsReady";
/// The container exists (on DevMachine).
pub const CONTAINER_PROVISIONED: &str = "ContainerProvisioned";
/// The simulated etcd member runs (on DevMachine).
pub const ETCD_PROVISIONED: &str = "EtcdProvisioned";
/// The load balancer container runs (on DevCluster).
pub const LOAD_BALANCER_AVAILABLE: &str = "LoadBalancerAvailable";
/// The simulated Node has registered (on DevMachine).
pub const NODE_PROVISIONED: &str = "NodeProvisioned";
/// The requested images are loaded into the container (on DevMachine).
pub const PRE_LOADED_IMAGES_READY: &str = "PreLoadedImagesReady";
/// All machines of the pool exist (on DevMachinePool).
pub const REPLICAS_READY: &str = "ReplicasReady";
/// The simulated virtual machine runs (on DevMachine).
pub const VM_PROVISIONED: &str = "VMProvisioned";
