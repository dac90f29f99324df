//! Names that these controllers write and that the API crate does not know: field managers.

pub(crate) use windlass_api::{annotations, conditions, finalizers, labels};

/// Field managers.
pub(crate) mod managers {
    /// Records of ClusterResourceSets, and objects of workload clusters.
    pub(crate) const CLUSTER_RESOURCE_SET: &str = "capi-clusterresourceset";
    pub(crate) const CLUSTER_RESOURCE_SET_BINDING: &str = "capi-clusterresourcesetbinding";
    /// Stored versions of definitions, and objects that are written for them.
    pub(crate) const CRD_MIGRATION: &str = "capi-crdmigrator";
    /// The CA certificates of ExtensionConfigs, as Cluster API names it.
    pub(crate) const EXTENSION_CONFIG: &str = "capi-manager";
    pub(crate) const MACHINE_DEPLOYMENT: &str = "capi-machinedeployment";
    pub(crate) const MACHINE_SET: &str = "capi-machineset";
    /// Labels and annotations of bootstrap and infrastructure objects, after their creation.
    pub(crate) const MACHINE_SET_METADATA: &str = "capi-machineset-metadata";
    /// The condition OwnerRemediated of Machines.
    pub(crate) const MACHINE_SET_REMEDIATION: &str = "capi-machineset-remediation";
    /// The replicas of objects that leave them out. A manager of its own: the controllers' other applies would give them up.
    pub(crate) const REPLICAS: &str = "capi-replicas";
    pub(crate) const MACHINE_HEALTH_CHECK: &str = "capi-machinehealthcheck";
    /// Owner references of objects that are adopted. An apply gives up every field of its manager that it leaves out, so the
    /// manager that made an object cannot add its owner alone.
    pub(crate) const ADOPTION: &str = "capi-adoption";
    /// A MachinePool itself, and the owner of the objects that it references.
    pub(crate) const MACHINE_POOL: &str = "capi-machinepool";
    /// The label and the owner that make a MachinePool one of its Cluster.
    pub(crate) const MACHINE_POOL_MEMBERSHIP: &str = "capi-machinepool-membership";
    /// The Machines of MachinePools, as Cluster API names it.
    pub(crate) const MACHINE_POOL_MACHINES: &str = "machinepool-controller";
    /// What makes a Machine one of its Cluster: the label, and the owner reference of one that has no other owner. A MachineSet may adopt
    /// such a Machine later, as [`ADOPTION`].
    pub(crate) const MACHINE_MEMBERSHIP: &str = "capi-machine-membership";
}

/// What `kubectl apply` without server-side apply keeps on an object.
pub(crate) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Revisions that a set had before.
pub(crate) const REVISION_HISTORY: &str = "machinedeployment.clusters.x-k8s.io/revision-history";
