//! The KubeadmConfig controller.
