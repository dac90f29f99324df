//! Labels, annotations, finalizers and names of field managers that topologies use.

/// Names the Cluster an object belongs to.
pub const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
/// Marks what a topology generated.
pub const OWNED: &str = "topology.cluster.x-k8s.io/owned";
/// Names the worker set in the topology.
pub const DEPLOYMENT_NAME: &str = "topology.cluster.x-k8s.io/deployment-name";
/// Marks control plane Machines.
pub const CONTROL_PLANE: &str = "cluster.x-k8s.io/control-plane";
/// The template an object was made from.
pub const CLONED_FROM_NAME: &str = "cluster.x-k8s.io/cloned-from-name";
/// Kind and group of that template.
pub const CLONED_FROM_GROUP_KIND: &str = "cluster.x-k8s.io/cloned-from-groupkind";
/// Postpones the upgrade of one worker set.
pub const DEFER_UPGRADE: &str = "topology.cluster.x-k8s.io/defer-upgrade";
/// Postpones the upgrade of one worker set and of all after it.
pub const HOLD_UPGRADE_SEQUENCE: &str = "topology.cluster.x-k8s.io/hold-upgrade-sequence";
/// How many worker sets are upgraded at once.
pub const UPGRADE_CONCURRENCY: &str = "topology.cluster.x-k8s.io/upgrade-concurrency";
/// The version the control plane is being brought to, while an upgrade runs.
pub const UPGRADE_STEP: &str = "topology.internal.cluster.x-k8s.io/upgrade-step";
/// An annotation with this prefix on the Cluster holds an upgrade back.
pub const BEFORE_UPGRADE_HOOK: &str = "before-upgrade.hook.cluster.cluster.x-k8s.io";
/// What `kubectl apply` notes on objects.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The field manager of generated objects.
pub const FIELD_MANAGER: &str = "capi-topology";
/// Group and version of core objects.
pub const CORE_API_VERSION: &str = "cluster.x-k8s.io/v1beta2";
