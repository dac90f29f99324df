//! Labels, annotations and names of field managers that topologies use.

pub use windlass_api::annotations::{
    BEFORE_UPGRADE_HOOK_PREFIX as BEFORE_UPGRADE_HOOK, CLONED_FROM_GROUP_KIND, CLONED_FROM_NAME, CONVERSION_DATA,
    PENDING_HOOKS, TOPOLOGY_DEFER_UPGRADE as DEFER_UPGRADE, TOPOLOGY_DRY_RUN as DRY_RUN,
    TOPOLOGY_HOLD_UPGRADE_SEQUENCE as HOLD_UPGRADE_SEQUENCE, TOPOLOGY_UPGRADE_CONCURRENCY as UPGRADE_CONCURRENCY,
    TOPOLOGY_UPGRADE_STEP as UPGRADE_STEP,
};
pub use windlass_api::codec::LAST_APPLIED;
pub use windlass_api::labels::{
    CLUSTER_NAME, CONTROL_PLANE, TOPOLOGY_MACHINE_DEPLOYMENT_NAME as DEPLOYMENT_NAME,
    TOPOLOGY_MACHINE_POOL_NAME as POOL_NAME, TOPOLOGY_OWNED as OWNED,
};

/// The field manager of generated objects.
pub const FIELD_MANAGER: &str = "capi-topology";
/// Group and version of core objects.
pub const CORE_API_VERSION: &str = "cluster.x-k8s.io/v1beta2";
/// Finalizers of a MachineDeployment that belongs to a topology.
pub const MACHINE_DEPLOYMENT_FINALIZERS: [&str; 2] = [
    windlass_api::finalizers::MACHINE_DEPLOYMENT,
    windlass_api::finalizers::MACHINE_DEPLOYMENT_TOPOLOGY,
];
