//! The order of conditions, for readers.

use std::cmp::Ordering;

use crate::Condition;

/// Known types in order. Other types (those of readiness and availability gates) go to the place of `GATES`.
const ORDER: [&str; 38] = [
    "Available",
    "Ready",
    "UpToDate",
    "RemoteConnectionProbe",
    "BootstrapConfigReady",
    "InfrastructureReady",
    "ControlPlaneInitialized",
    "ControlPlaneAvailable",
    "WorkersAvailable",
    "CertificatesAvailable",
    "Initialized",
    "EtcdClusterHealthy",
    "ControlPlaneComponentsHealthy",
    "NodeHealthy",
    "NodeReady",
    "NodeKubeadmLabelsAndTaintsSet",
    "EtcdPodHealthy",
    "EtcdMemberHealthy",
    "APIServerPodHealthy",
    "ControllerManagerPodHealthy",
    "SchedulerPodHealthy",
    "HealthCheckSucceeded",
    "OwnerRemediated",
    "TopologyReconciled",
    "Updating",
    "RollingOut",
    "Remediating",
    "ScalingDown",
    "ScalingUp",
    "MachinesReady",
    "ControlPlaneMachinesReady",
    "WorkerMachinesReady",
    "MachinesUpToDate",
    "ControlPlaneMachinesUpToDate",
    "WorkerMachinesUpToDate",
    GATES,
    "Paused",
    "Deleting",
];

/// The place of other types.
const GATES: &str = "";

fn rank(type_: &str) -> usize {
    let place = |wanted| ORDER.iter().position(|t| *t == wanted);
    place(type_).or_else(|| place(GATES)).unwrap_or(ORDER.len())
}

/// Compares two types: by the list, with other types by name between the aggregated ones and Paused.
pub fn compare_types(a: &str, b: &str) -> Ordering {
    rank(a).cmp(&rank(b)).then_with(|| a.cmp(b))
}

/// Sorts conditions.
pub fn sort(conditions: &mut [Condition]) {
    conditions.sort_by(|a, b| compare_types(&a.type_, &b.type_));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_first_others_by_name_paused_and_deleting_last() {
        let mut types = [
            "Deleting",
            "Zeta",
            "Paused",
            "ScalingUp",
            "Ready",
            "Alpha",
            "MachinesReady",
            "Available",
            "WorkerMachinesUpToDate",
        ];
        types.sort_by(|a, b| compare_types(a, b));
        assert_eq!(
            types,
            [
                "Available",
                "Ready",
                "ScalingUp",
                "MachinesReady",
                "WorkerMachinesUpToDate",
                "Alpha",
                "Zeta",
                "Paused",
                "Deleting"
            ]
        );
    }
}
