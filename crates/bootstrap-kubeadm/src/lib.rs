//! The kubeadm bootstrap provider: makes the data with which a machine becomes a node.

mod kubeadm_config;
mod workload;

pub use kubeadm_config::{DEFAULT_TOKEN_TTL, Done, KubeadmConfigController, Observed, Plan};
pub use workload::{OnChange, WorkloadClusters};
