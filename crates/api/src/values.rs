//! Words that appear as values of fields and in Secrets.

/// The type of Secrets made for a cluster.
pub const CLUSTER_SECRET_TYPE: &str = "cluster.x-k8s.io/secret";
/// The key of the content in a Secret made for a cluster: bootstrap data, kubeconfig.
pub const SECRET_VALUE_KEY: &str = "value";
/// The key of the format in a bootstrap data Secret.
pub const SECRET_FORMAT_KEY: &str = "format";

/// Taint: this Node has not been synced with its Machine yet; effect `NoSchedule`.
pub const NODE_UNINITIALIZED_TAINT: &str = "node.cluster.x-k8s.io/uninitialized";
/// Taint: this Node will be replaced by a newer one; effect `PreferNoSchedule`.
pub const NODE_OUTDATED_REVISION_TAINT: &str = "node.cluster.x-k8s.io/outdated-revision";

/// Strategy of a rollout: replace step by step.
pub const STRATEGY_ROLLING_UPDATE: &str = "RollingUpdate";
/// Strategy of a rollout: replace a Machine only after it was deleted by a user or another controller.
pub const STRATEGY_ON_DELETE: &str = "OnDelete";

/// Deletion order: any.
pub const DELETION_ORDER_RANDOM: &str = "Random";
/// Deletion order: the newest first.
pub const DELETION_ORDER_NEWEST: &str = "Newest";
/// Deletion order: the oldest first.
pub const DELETION_ORDER_OLDEST: &str = "Oldest";

/// Polarity of a gate: True is good.
pub const POLARITY_POSITIVE: &str = "Positive";
/// Polarity of a gate: False is good.
pub const POLARITY_NEGATIVE: &str = "Negative";

/// A taint is kept on the Node for as long as the Machine lives.
pub const TAINT_PROPAGATION_ALWAYS: &str = "Always";
/// A taint is set on the Node once, when it is initialized.
pub const TAINT_PROPAGATION_ON_INITIALIZATION: &str = "OnInitialization";

/// Address type: the host name that the machine gives itself.
pub const ADDRESS_HOSTNAME: &str = "Hostname";
/// Address type: reachable from outside the network.
pub const ADDRESS_EXTERNAL_IP: &str = "ExternalIP";
/// Address type: reachable within the network.
pub const ADDRESS_INTERNAL_IP: &str = "InternalIP";
/// Address type: a name that resolves to an external address.
pub const ADDRESS_EXTERNAL_DNS: &str = "ExternalDNS";
/// Address type: a name that resolves to an internal address.
pub const ADDRESS_INTERNAL_DNS: &str = "InternalDNS";

/// Where a variable of a class is defined when not by an extension.
pub const VARIABLE_FROM_INLINE: &str = "inline";
/// Suffix of template kinds.
pub const TEMPLATE_SUFFIX: &str = "Template";

/// Checks that a MachineSet makes before it creates a Machine, by the names that skip them.
pub mod preflight {
    /// All checks.
    pub const ALL: &str = "All";
    /// The kubeadm version fits the control plane's.
    pub const KUBEADM_VERSION_SKEW: &str = "KubeadmVersionSkew";
    /// The Kubernetes version fits the control plane's.
    pub const KUBERNETES_VERSION_SKEW: &str = "KubernetesVersionSkew";
    /// The control plane is not being changed.
    pub const CONTROL_PLANE_IS_STABLE: &str = "ControlPlaneIsStable";
    /// The control plane of the topology has the desired version.
    pub const CONTROL_PLANE_VERSION_SKEW: &str = "ControlPlaneVersionSkew";
}

/// Severities of v1beta1 conditions.
pub mod severity {
    /// Nothing works.
    pub const ERROR: &str = "Error";
    /// Something may not work.
    pub const WARNING: &str = "Warning";
    /// In progress.
    pub const INFO: &str = "Info";
    /// For conditions that are True.
    pub const NONE: &str = "";
}
