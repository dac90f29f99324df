//! Annotation keys, and values that go with them.

/// Pauses the reconciliation of an object. The value does not matter.
pub const PAUSED: &str = "cluster.x-k8s.io/paused";
/// On an InfraCluster: something else than its provider's controller manages it; the value names that system and is never
/// checked. Read it with [`is_externally_managed`](crate::is_externally_managed).
pub const MANAGED_BY: &str = "cluster.x-k8s.io/managed-by";
/// The name of the template that an object was cloned from.
pub const CLONED_FROM_NAME: &str = "cluster.x-k8s.io/cloned-from-name";
/// The `Kind.group` of the template that an object was cloned from.
pub const CLONED_FROM_GROUP_KIND: &str = "cluster.x-k8s.io/cloned-from-groupkind";
/// This Machine is to be deleted first.
pub const DELETE_MACHINE: &str = "cluster.x-k8s.io/delete-machine";
/// This MachineSet creates no Machines any more.
pub const DISABLE_MACHINE_CREATE: &str = "cluster.x-k8s.io/disable-machine-create";
/// This Machine is not remediated.
pub const SKIP_REMEDIATION: &str = "cluster.x-k8s.io/skip-remediation";
/// Marks a Machine as unhealthy by hand.
pub const REMEDIATE_MACHINE: &str = "cluster.x-k8s.io/remediate-machine";
/// The replicas of this MachinePool are decided elsewhere.
pub const REPLICAS_MANAGED_BY: &str = "cluster.x-k8s.io/replicas-managed-by";
/// The smallest number that the autoscaler may choose.
pub const AUTOSCALER_MIN_SIZE: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size";
/// The largest number that the autoscaler may choose.
pub const AUTOSCALER_MAX_SIZE: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size";
/// On a Node: the name of its Cluster.
pub const NODE_CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
/// On a Node: the namespace of its Cluster.
pub const NODE_CLUSTER_NAMESPACE: &str = "cluster.x-k8s.io/cluster-namespace";
/// On a Node: the name of its Machine.
pub const NODE_MACHINE: &str = "cluster.x-k8s.io/machine";
/// On a Node: the kind that controls its Machine.
pub const NODE_OWNER_KIND: &str = "cluster.x-k8s.io/owner-kind";
/// On a Node: the name of what controls its Machine.
pub const NODE_OWNER_NAME: &str = "cluster.x-k8s.io/owner-name";
/// On a Node: the label keys that came from its Machine.
pub const LABELS_FROM_MACHINE: &str = "cluster.x-k8s.io/labels-from-machine";
/// On a Node: the annotation keys that came from its Machine.
pub const ANNOTATIONS_FROM_MACHINE: &str = "cluster.x-k8s.io/annotations-from-machine";
/// On a Node: the taints that came from its Machine.
pub const TAINTS_FROM_MACHINE: &str = "cluster.x-k8s.io/taints-from-machine";
/// Machine annotations of this domain and below reach the Node.
pub const MANAGED_NODE_DOMAIN: &str = "node.cluster.x-k8s.io";
/// Fields that another version of the object does not have, as JSON.
pub const CONVERSION_DATA: &str = "cluster.x-k8s.io/conversion-data";
/// Delete this Machine without draining its Node.
pub const EXCLUDE_NODE_DRAINING: &str = "machine.cluster.x-k8s.io/exclude-node-draining";
/// Delete this Machine without waiting until volumes are detached.
pub const EXCLUDE_WAIT_FOR_NODE_VOLUME_DETACH: &str = "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach";
/// When the certificates of a control plane Machine expire (RFC 3339).
pub const CERTIFICATES_EXPIRY: &str = "machine.cluster.x-k8s.io/certificates-expiry";
/// Prefix of pre-drain hooks: the Node is drained only after all of them are removed.
pub const PRE_DRAIN_HOOK_PREFIX: &str = "pre-drain.delete.hook.machine.cluster.x-k8s.io";
/// Prefix of pre-terminate hooks: the infrastructure of the Machine is deleted only after all of them are removed.
pub const PRE_TERMINATE_HOOK_PREFIX: &str = "pre-terminate.delete.hook.machine.cluster.x-k8s.io";
/// Checks that a MachineSet leaves out before it creates a Machine, joined by commas.
pub const SKIP_PREFLIGHT_CHECKS: &str = "machineset.cluster.x-k8s.io/skip-preflight-checks";
/// The revision of a MachineSet or MachineDeployment (the group is spelled `clusters` here).
pub const REVISION: &str = "machinedeployment.clusters.x-k8s.io/revision";
/// The desired replicas of the MachineDeployment that owns a MachineSet.
pub const DESIRED_REPLICAS: &str = "machinedeployment.clusters.x-k8s.io/desired-replicas";
/// The most replicas that a MachineDeployment may have while it is rolled out.
pub const MAX_REPLICAS: &str = "machinedeployment.clusters.x-k8s.io/max-replicas";
/// Prefix of before-upgrade hooks: the control plane is upgraded only after all of them are removed.
pub const BEFORE_UPGRADE_HOOK_PREFIX: &str = "before-upgrade.hook.cluster.cluster.x-k8s.io";
/// Upgrade this part of the topology later.
pub const TOPOLOGY_DEFER_UPGRADE: &str = "topology.cluster.x-k8s.io/defer-upgrade";
/// Upgrade neither this part of the topology nor those after it.
pub const TOPOLOGY_HOLD_UPGRADE_SEQUENCE: &str = "topology.cluster.x-k8s.io/hold-upgrade-sequence";
/// How many MachineDeployments may be upgraded at once.
pub const TOPOLOGY_UPGRADE_CONCURRENCY: &str = "topology.cluster.x-k8s.io/upgrade-concurrency";
/// Set in dry runs of the topology controller.
pub const TOPOLOGY_DRY_RUN: &str = "topology.cluster.x-k8s.io/dry-run";
/// The version that the control plane is being upgraded to, in an upgrade of several steps.
pub const TOPOLOGY_UPGRADE_STEP: &str = "topology.internal.cluster.x-k8s.io/upgrade-step";
/// The class of this Cluster may be changed without checks.
pub const TOPOLOGY_UNSAFE_UPDATE_CLASS_NAME: &str = "unsafe.topology.cluster.x-k8s.io/disable-update-class-name-check";
/// The version of this Cluster may be changed without checks.
pub const TOPOLOGY_UNSAFE_UPDATE_VERSION: &str = "unsafe.topology.cluster.x-k8s.io/disable-update-version-check";
/// `namespace/name` of the Secret whose CA goes into an ExtensionConfig.
pub const INJECT_CA_FROM_SECRET: &str = "runtime.cluster.x-k8s.io/inject-ca-from-secret";
/// Hooks that still have to be called, joined by commas.
pub const PENDING_HOOKS: &str = "runtime.cluster.x-k8s.io/pending-hooks";
/// The hooks before deletion have agreed.
pub const OK_TO_DELETE: &str = "runtime.cluster.x-k8s.io/ok-to-delete";
/// This object is being updated in place.
pub const UPDATE_IN_PROGRESS: &str = "in-place-updates.internal.cluster.x-k8s.io/update-in-progress";
/// This Machine has moved to another MachineSet, which has not noticed yet.
pub const PENDING_ACKNOWLEDGE_MOVE: &str = "in-place-updates.internal.cluster.x-k8s.io/pending-acknowledge-move";
/// Machines whose move this MachineSet has noticed.
pub const ACKNOWLEDGED_MOVE: &str = "in-place-updates.internal.cluster.x-k8s.io/acknowledged-move";
/// The MachineSet that this one gives its Machines to.
pub const MOVE_MACHINES_TO_MACHINE_SET: &str = "in-place-updates.internal.cluster.x-k8s.io/move-machines-to-machineset";
/// The MachineSets that this one takes Machines from.
pub const RECEIVE_MACHINES_FROM_MACHINE_SETS: &str =
    "in-place-updates.internal.cluster.x-k8s.io/receive-machines-from-machinesets";
/// The generation of a CRD whose stored objects have been migrated.
pub const CRD_MIGRATION_OBSERVED_GENERATION: &str = "crd-migration.cluster.x-k8s.io/observed-generation";
/// Blocks `clusterctl move` of the object.
pub const BLOCK_MOVE: &str = "clusterctl.cluster.x-k8s.io/block-move";
/// Deleted because it was moved: leave the infrastructure alone.
pub const DELETE_FOR_MOVE: &str = "clusterctl.cluster.x-k8s.io/delete-for-move";
/// Do not check that the name of this CRD follows the contract.
pub const SKIP_CRD_NAME_PREFLIGHT_CHECK: &str = "clusterctl.cluster.x-k8s.io/skip-crd-name-preflight-check";
