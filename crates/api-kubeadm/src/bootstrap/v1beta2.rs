//! Version v1beta2 of the bootstrap group.

mod kubeadm;
mod kubeadm_config;
mod kubeadm_config_template;

pub use kubeadm::*;
pub use kubeadm_config::*;
pub use kubeadm_config_template::*;
