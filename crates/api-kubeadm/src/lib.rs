//! The v1beta2 types of the kubeadm bootstrap and control plane providers.

pub mod bootstrap;
pub mod controlplane;
