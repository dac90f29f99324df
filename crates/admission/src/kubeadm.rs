//! Bootstrap and control plane by kubeadm.

pub mod config;
pub mod control_plane;
