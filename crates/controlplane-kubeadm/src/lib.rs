//! The KubeadmControlPlane controller and etcd member management.
