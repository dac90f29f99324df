//! Finalizers of the kubeadm providers.

/// On KubeadmControlPlane.
pub const KUBEADM_CONTROL_PLANE: &str = "kubeadm.controlplane.cluster.x-k8s.io";
