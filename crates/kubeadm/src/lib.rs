//! Kubeadm configuration formats and cloud-init rendering.
