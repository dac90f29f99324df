//! Names that these controllers read and write: labels, annotations, finalizers, field managers, condition types.

/// Labels.
pub(crate) mod labels {
    pub(crate) const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
    pub(crate) const CONTROL_PLANE: &str = "cluster.x-k8s.io/control-plane";
    pub(crate) const DEPLOYMENT_NAME: &str = "cluster.x-k8s.io/deployment-name";
    pub(crate) const SET_NAME: &str = "cluster.x-k8s.io/set-name";
    pub(crate) const TEMPLATE_HASH: &str = "machine-template-hash";
    pub(crate) const TOPOLOGY_OWNED: &str = "topology.cluster.x-k8s.io/owned";
}

/// Annotations.
pub(crate) mod annotations {
    pub(crate) const CLONED_FROM_GROUP_KIND: &str = "cluster.x-k8s.io/cloned-from-groupkind";
    pub(crate) const CLONED_FROM_NAME: &str = "cluster.x-k8s.io/cloned-from-name";
    pub(crate) const DELETE_MACHINE: &str = "cluster.x-k8s.io/delete-machine";
    pub(crate) const DESIRED_REPLICAS: &str = "machinedeployment.clusters.x-k8s.io/desired-replicas";
    pub(crate) const DISABLE_MACHINE_CREATE: &str = "cluster.x-k8s.io/disable-machine-create";
    pub(crate) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
    pub(crate) const MAX_REPLICAS: &str = "machinedeployment.clusters.x-k8s.io/max-replicas";
    pub(crate) const PAUSED: &str = "cluster.x-k8s.io/paused";
    pub(crate) const REMEDIATE_MACHINE: &str = "cluster.x-k8s.io/remediate-machine";
    pub(crate) const REVISION: &str = "machinedeployment.clusters.x-k8s.io/revision";
    pub(crate) const REVISION_HISTORY: &str = "machinedeployment.clusters.x-k8s.io/revision-history";
    pub(crate) const SKIP_PREFLIGHT_CHECKS: &str = "machineset.cluster.x-k8s.io/skip-preflight-checks";
    pub(crate) const SKIP_REMEDIATION: &str = "cluster.x-k8s.io/skip-remediation";
    pub(crate) const UPDATE_IN_PROGRESS: &str = "in-place-updates.internal.cluster.x-k8s.io/update-in-progress";
    pub(crate) const UPGRADE_STEP: &str = "topology.internal.cluster.x-k8s.io/upgrade-step";
    pub(crate) const CONVERSION_DATA: &str = "cluster.x-k8s.io/conversion-data";
}

/// Finalizers.
pub(crate) mod finalizers {
    pub(crate) const MACHINE: &str = "machine.cluster.x-k8s.io";
    pub(crate) const MACHINE_DEPLOYMENT: &str = "cluster.x-k8s.io/machinedeployment";
    pub(crate) const MACHINE_SET: &str = "cluster.x-k8s.io/machineset";
    pub(crate) const MACHINE_SET_TOPOLOGY: &str = "machineset.topology.cluster.x-k8s.io";
}

/// Field managers.
pub(crate) mod managers {
    pub(crate) const MACHINE_DEPLOYMENT: &str = "capi-machinedeployment";
    pub(crate) const MACHINE_SET: &str = "capi-machineset";
    pub(crate) const MACHINE_SET_REMEDIATION: &str = "capi-machineset-remediation";
    pub(crate) const MACHINE_HEALTH_CHECK: &str = "capi-machinehealthcheck";
}

/// Condition types.
pub(crate) mod conditions {
    pub(crate) const AVAILABLE: &str = "Available";
    pub(crate) const DELETING: &str = "Deleting";
    pub(crate) const HEALTH_CHECK_SUCCEEDED: &str = "HealthCheckSucceeded";
    pub(crate) const MACHINES_READY: &str = "MachinesReady";
    pub(crate) const MACHINES_UP_TO_DATE: &str = "MachinesUpToDate";
    pub(crate) const NODE_HEALTHY: &str = "NodeHealthy";
    pub(crate) const NODE_READY: &str = "NodeReady";
    pub(crate) const OWNER_REMEDIATED: &str = "OwnerRemediated";
    pub(crate) const PAUSED: &str = "Paused";
    pub(crate) const READY: &str = "Ready";
    pub(crate) const REMEDIATING: &str = "Remediating";
    pub(crate) const REMEDIATION_ALLOWED: &str = "RemediationAllowed";
    pub(crate) const ROLLING_OUT: &str = "RollingOut";
    pub(crate) const SCALING_DOWN: &str = "ScalingDown";
    pub(crate) const SCALING_UP: &str = "ScalingUp";
    pub(crate) const UP_TO_DATE: &str = "UpToDate";
}
