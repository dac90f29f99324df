//! The status of a Cluster, from what was seen and decided: pure.

mod conditions;
mod legacy;

use windlass_api::core::{ClusterInitializationStatus, ClusterReplicasStatus, ClusterStatus, FailureDomain, Machine};
use windlass_api::versions::added_up;
use windlass_contract::{control_plane, infra_cluster};
use windlass_controller_runtime::{Moment, Seen};

use super::facts::{initialization, phase, usable_infrastructure};
use super::observe::Observed;
use super::plan::Plan;
use crate::shared::machines::{is_true, versions};

/// Computes the status that this controller owns; TopologyReconciled is the topology controller's.
pub(crate) fn status(seen: &Observed, plan: &Plan, now: &Moment) -> ClusterStatus {
    let before = seen.cluster.status.clone().unwrap_or_default();
    let initialization = initialization(seen, &before);
    let mut status = ClusterStatus {
        // Who applies an empty object owns it: the server could not remove it when its last field goes, which may be another manager's, and
        // would refuse that write.
        control_plane: control_plane_replicas(seen, &before)
            .filter(|counts| *counts != ClusterReplicasStatus::default()),
        workers: workers(seen),
        failure_domains: failure_domains(seen, &before),
        observed_generation: seen.cluster.metadata.generation,
        phase: Some(phase(seen).to_owned()),
        initialization: (initialization != ClusterInitializationStatus::default()).then_some(initialization),
        ..ClusterStatus::default()
    };
    status.conditions = conditions::conditions(seen, plan, &status, now);
    status.deprecated = Some(legacy::deprecated(seen, &status, &before, now.now()));
    status
}

/// Leaves the steps of the initialization as they were. Who acts on them expects the endpoint, which could not be written.
pub(crate) fn hold_back(seen: &Observed, status: &mut ClusterStatus) {
    let before = seen.cluster.status.clone().unwrap_or_default();
    status.initialization = before.initialization;
    if before.phase.is_some() {
        status.phase = before.phase;
    }
}

/// Numbers of the control plane: from its object, or counted where there is none.
fn control_plane_replicas(seen: &Observed, before: &ClusterStatus) -> Option<ClusterReplicasStatus> {
    let by_object = seen.cluster.spec.control_plane_ref.is_some() || seen.cluster.spec.topology.is_some();
    if !by_object {
        let machines: Vec<&Machine> = seen.control_plane_machines.iter().map(|machine| &**machine).collect();
        return (!machines.is_empty()).then(|| counted(&machines));
    }
    let object = match seen.control_plane.as_ref()? {
        Seen::Found(object) => object,
        Seen::NotFound => return None,
        // What was reported before stays; the topology controller applies its part with a manager of its own.
        Seen::Failed(_) => {
            let known = before.control_plane.clone()?;
            let upgrade_plan = Vec::new();
            return Some(ClusterReplicasStatus { upgrade_plan, ..known });
        }
    };
    let (value, contract) = (object.value(), object.contract);
    Some(ClusterReplicasStatus {
        desired_replicas: control_plane::replicas(value),
        replicas: control_plane::status_replicas(value),
        ready_replicas: control_plane::ready_replicas(value),
        available_replicas: control_plane::available_replicas(value, contract),
        up_to_date_replicas: control_plane::up_to_date_replicas(value, contract),
        versions: control_plane::status_versions(value),
        // The topology controller applies it with a manager of its own.
        upgrade_plan: Vec::new(),
    })
}

fn count(machines: &[&Machine], type_: &str) -> Option<i32> {
    i32::try_from(machines.iter().filter(|machine| is_true(machine, type_)).count()).ok()
}

fn counted(machines: &[&Machine]) -> ClusterReplicasStatus {
    let all = i32::try_from(machines.len()).ok();
    ClusterReplicasStatus {
        desired_replicas: all,
        replicas: all,
        ready_replicas: count(machines, "Ready"),
        available_replicas: count(machines, "Available"),
        up_to_date_replicas: count(machines, "UpToDate"),
        versions: versions(machines.iter().copied()),
        upgrade_plan: Vec::new(),
    }
}

/// Numbers of the workers: MachineDeployments, MachinePools, MachineSets and Machines of the Cluster's own, added up.
fn workers(seen: &Observed) -> Option<ClusterReplicasStatus> {
    let mut parts: Vec<ClusterReplicasStatus> = Vec::new();
    for deployment in &seen.deployments {
        let status = deployment.status.clone().unwrap_or_default();
        parts.push(ClusterReplicasStatus {
            desired_replicas: deployment.spec.replicas,
            replicas: status.replicas,
            ready_replicas: status.ready_replicas,
            available_replicas: status.available_replicas,
            up_to_date_replicas: status.up_to_date_replicas,
            versions: status.versions,
            upgrade_plan: Vec::new(),
        });
    }
    for pool in &seen.pools {
        let status = pool.status.clone().unwrap_or_default();
        parts.push(ClusterReplicasStatus {
            desired_replicas: pool.spec.replicas,
            replicas: status.replicas,
            ready_replicas: status.ready_replicas,
            available_replicas: status.available_replicas,
            up_to_date_replicas: status.up_to_date_replicas,
            versions: status.versions,
            upgrade_plan: Vec::new(),
        });
    }
    for set in &seen.sets {
        let status = set.status.clone().unwrap_or_default();
        parts.push(ClusterReplicasStatus {
            desired_replicas: set.spec.replicas,
            replicas: status.replicas,
            ready_replicas: status.ready_replicas,
            available_replicas: status.available_replicas,
            up_to_date_replicas: status.up_to_date_replicas,
            versions: status.versions,
            upgrade_plan: Vec::new(),
        });
    }
    let alone = seen
        .worker_machines
        .iter()
        .map(|machine| &**machine)
        .filter(|machine| seen.owns(&machine.metadata));
    let alone: Vec<&Machine> = alone.collect();
    if !alone.is_empty() {
        parts.push(counted(&alone));
    }
    let sum = |field: fn(&ClusterReplicasStatus) -> Option<i32>| parts.iter().filter_map(field).reduce(|a, b| a + b);
    let total = ClusterReplicasStatus {
        desired_replicas: sum(|part| part.desired_replicas),
        replicas: sum(|part| part.replicas),
        ready_replicas: sum(|part| part.ready_replicas),
        available_replicas: sum(|part| part.available_replicas),
        up_to_date_replicas: sum(|part| part.up_to_date_replicas),
        versions: added_up(parts.iter().flat_map(|part| part.versions.iter().cloned())),
        upgrade_plan: Vec::new(),
    };
    (total != ClusterReplicasStatus::default()).then_some(total)
}

/// Failure domains, as the infrastructure reports them once it is provisioned.
fn failure_domains(seen: &Observed, before: &ClusterStatus) -> Vec<FailureDomain> {
    let Some(object) = usable_infrastructure(seen) else {
        return before.failure_domains.clone();
    };
    infra_cluster::failure_domains(object.value(), object.contract)
}
