//! Version v1beta1 of the control plane group.

mod convert;
mod convert_status;
mod kubeadm_control_plane;
mod kubeadm_control_plane_template;
mod rollout;

pub use kubeadm_control_plane::*;
pub use kubeadm_control_plane_template::*;
pub use rollout::*;
