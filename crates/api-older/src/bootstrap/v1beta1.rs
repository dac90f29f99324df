//! Version v1beta1 of the bootstrap group.
//!
//! Types whose fields are the same in the hub version come from there. Their schemas lose the lower bounds that only the hub version has.

pub(crate) mod convert;
mod convert_kubeadm;
mod convert_same;
mod convert_status;
mod kubeadm;
mod kubeadm_config;
mod kubeadm_config_template;
pub(crate) mod parts;

pub use kubeadm::*;
pub use kubeadm_config::*;
pub use kubeadm_config_template::*;
