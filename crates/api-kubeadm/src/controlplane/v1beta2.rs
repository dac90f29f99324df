//! Version v1beta2 of the control plane group.

mod kubeadm_control_plane;
mod kubeadm_control_plane_template;

pub use kubeadm_control_plane::*;
pub use kubeadm_control_plane_template::*;
