//! Names that others read: condition types, reasons, annotations, field managers.

/// Field manager of what this controller wants of Machines, KubeadmConfigs and infrastructure machines.
pub const MANAGER: &str = "capi-kubeadmcontrolplane";
/// Field manager of labels and annotations on KubeadmConfigs and infrastructure machines.
pub const METADATA_MANAGER: &str = "capi-kubeadmcontrolplane-metadata";
/// Field manager of the status of KubeadmControlPlanes.
pub const STATUS_MANAGER: &str = "capi-kubeadmcontrolplane-status";
/// Field manager of the conditions that this controller sets on Machines.
pub const MACHINE_STATUS_MANAGER: &str = "capi-kubeadmcontrolplane-machine-status";
/// Field manager of Secrets.
pub const SECRETS_MANAGER: &str = "kcp-manager";
/// Keeps a control plane until its Machines are gone.
pub const FINALIZER: &str = "kubeadm.controlplane.cluster.x-k8s.io";
/// Keeps a Machine until its infrastructure is gone.
pub const MACHINE_FINALIZER: &str = "machine.cluster.x-k8s.io";

pub use windlass_api::annotations::PRE_TERMINATE_HOOK_PREFIX as PRE_TERMINATE_PREFIX;
/// Our hook: the etcd member has to leave before the Machine does.
pub use windlass_api_kubeadm::annotations::PRE_TERMINATE_CLEANUP as PRE_TERMINATE_HOOK;
/// On the control plane: a Machine was deleted to be replaced.
pub const REMEDIATION_IN_PROGRESS: &str = "controlplane.cluster.x-k8s.io/remediation-in-progress";
/// On a Machine: it replaces one that was remediated.
pub const REMEDIATION_FOR: &str = "controlplane.cluster.x-k8s.io/remediation-for";
/// On the control plane: leave CoreDNS alone.
pub const SKIP_COREDNS: &str = "controlplane.cluster.x-k8s.io/skip-coredns";
/// On the control plane: leave kube-proxy alone.
pub const SKIP_KUBE_PROXY: &str = "controlplane.cluster.x-k8s.io/skip-kube-proxy";
/// On a Machine: delete this one first.
pub const DELETE_MACHINE: &str = "cluster.x-k8s.io/delete-machine";
/// On a Machine: a user asks for its replacement.
pub const REMEDIATE_MACHINE: &str = "cluster.x-k8s.io/remediate-machine";
/// On a Cluster: the version its topology is going to next.
pub const UPGRADE_STEP: &str = "topology.internal.cluster.x-k8s.io/upgrade-step";
/// On a KubeadmConfig: when the certificates of its node expire.
pub const CERTIFICATES_EXPIRY: &str = "machine.cluster.x-k8s.io/certificates-expiry";
/// Which template an object was made from.
pub const CLONED_FROM_NAME: &str = "cluster.x-k8s.io/cloned-from-name";
/// The kind of template an object was made from.
pub const CLONED_FROM_GROUP_KIND: &str = "cluster.x-k8s.io/cloned-from-groupkind";

/// Marks control plane Machines.
pub const CONTROL_PLANE_LABEL: &str = "cluster.x-k8s.io/control-plane";
/// Which control plane a Machine is part of.
pub const CONTROL_PLANE_NAME_LABEL: &str = "cluster.x-k8s.io/control-plane-name";
/// Label and taint key of control plane Nodes.
pub const NODE_ROLE: &str = "node-role.kubernetes.io/control-plane";
/// Taint key of unreachable Nodes.
pub const NODE_UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// Condition types that this controller sets on Machines.
pub mod machine {
    /// The specification of the Machine is what the control plane asks for.
    pub const UP_TO_DATE: &str = "UpToDate";
    /// kubeadm finished with label and taint of the Node.
    pub const NODE_LABELS: &str = "NodeKubeadmLabelsAndTaintsSet";
    /// The API server's pod.
    pub const API_SERVER: &str = "APIServerPodHealthy";
    /// The controller manager's pod.
    pub const CONTROLLER_MANAGER: &str = "ControllerManagerPodHealthy";
    /// The scheduler's pod.
    pub const SCHEDULER: &str = "SchedulerPodHealthy";
    /// etcd's pod.
    pub const ETCD_POD: &str = "EtcdPodHealthy";
    /// The etcd member.
    pub const ETCD_MEMBER: &str = "EtcdMemberHealthy";
    /// The owner's answer to a failed health check.
    pub const OWNER_REMEDIATED: &str = "OwnerRemediated";
    /// The verdict of the health check.
    pub const HEALTH_CHECK_SUCCEEDED: &str = "HealthCheckSucceeded";
    /// Ready for use.
    pub const READY: &str = "Ready";
    /// Ready for long enough.
    pub const AVAILABLE: &str = "Available";
    /// Going away.
    pub const DELETING: &str = "Deleting";

    /// The components that every control plane Machine runs.
    pub const COMPONENTS: [&str; 3] = [API_SERVER, CONTROLLER_MANAGER, SCHEDULER];
}

/// Condition types of the control plane.
pub mod control_plane {
    /// The control plane can be used.
    pub const AVAILABLE: &str = "Available";
    /// The first Machine came up.
    pub const INITIALIZED: &str = "Initialized";
    /// All authorities exist.
    pub const CERTIFICATES: &str = "CertificatesAvailable";
    /// etcd as a whole.
    pub const ETCD: &str = "EtcdClusterHealthy";
    /// The other components as a whole.
    pub const COMPONENTS: &str = "ControlPlaneComponentsHealthy";
    /// All Machines are ready.
    pub const MACHINES_READY: &str = "MachinesReady";
    /// All Machines are as asked for.
    pub const MACHINES_UP_TO_DATE: &str = "MachinesUpToDate";
    /// Machines are being replaced because the specification changed.
    pub const ROLLING_OUT: &str = "RollingOut";
    /// Machines are missing.
    pub const SCALING_UP: &str = "ScalingUp";
    /// Machines are too many.
    pub const SCALING_DOWN: &str = "ScalingDown";
    /// Machines are being replaced because they are unhealthy.
    pub const REMEDIATING: &str = "Remediating";
    /// The control plane is going away.
    pub const DELETING: &str = "Deleting";
    /// The authorities of the cluster are being rotated.
    pub const ROTATING: &str = "RotatingAuthorities";
}

/// The readiness gates of every control plane Machine, in order.
pub fn readiness_gates(managed_etcd: bool) -> Vec<&'static str> {
    let mut gates = vec![
        machine::NODE_LABELS,
        machine::API_SERVER,
        machine::CONTROLLER_MANAGER,
        machine::SCHEDULER,
    ];
    if managed_etcd {
        gates.extend([machine::ETCD_POD, machine::ETCD_MEMBER]);
    }
    gates
}
