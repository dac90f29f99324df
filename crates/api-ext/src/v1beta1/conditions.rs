//! Condition types of the v1beta1 generation, together with those of the core.

pub use windlass_api::v1beta1::conditions::*;

/// The simulated API server runs (on DevMachine).
pub const API_SERVER_PROVISIONED: &str = "APIServerProvisioned";
/// The container has run the bootstrap data.
pub const BOOTSTRAP_EXEC_SUCCEEDED: &str = "BootstrapExecSucceeded";
/// The container exists.
pub const CONTAINER_PROVISIONED: &str = "ContainerProvisioned";
/// The simulated etcd member runs (on DevMachine).
pub const ETCD_PROVISIONED: &str = "EtcdProvisioned";
/// The load balancer container runs.
pub const LOAD_BALANCER_AVAILABLE: &str = "LoadBalancerAvailable";
/// The simulated Node has registered (on DevMachine).
pub const NODE_PROVISIONED: &str = "NodeProvisioned";
/// The simulated virtual machine runs (on DevMachine).
pub const VM_PROVISIONED: &str = "VMProvisioned";
