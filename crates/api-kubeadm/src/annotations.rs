//! Annotation keys of the kubeadm control plane.

/// Skips CoreDNS in upgrades.
pub const SKIP_COREDNS: &str = "controlplane.cluster.x-k8s.io/skip-coredns";
/// Skips kube-proxy in upgrades.
pub const SKIP_KUBE_PROXY: &str = "controlplane.cluster.x-k8s.io/skip-kube-proxy";
/// The remediation in progress, as JSON.
pub const REMEDIATION_IN_PROGRESS: &str = "controlplane.cluster.x-k8s.io/remediation-in-progress";
/// The remediation that a Machine was created for, as JSON.
pub const REMEDIATION_FOR: &str = "controlplane.cluster.x-k8s.io/remediation-for";
/// The ClusterConfiguration that a Machine was created with, as JSON (written by older versions).
pub const KUBEADM_CLUSTER_CONFIGURATION: &str = "controlplane.cluster.x-k8s.io/kubeadm-cluster-configuration";
/// Pre-terminate hook of the control plane: it removes the etcd member before the infrastructure of the Machine is
/// deleted.
pub const PRE_TERMINATE_CLEANUP: &str = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup";
