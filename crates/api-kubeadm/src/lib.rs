//! The v1beta2 types of the kubeadm bootstrap and control plane providers.

pub mod annotations;
pub mod bootstrap;
pub mod conditions;
pub mod controlplane;
pub mod finalizers;
pub mod reasons;
pub mod v1beta1;
pub mod values;
