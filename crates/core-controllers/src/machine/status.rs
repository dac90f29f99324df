//! The status of a Machine, from what was seen and decided: pure.

mod conditions;
mod legacy;
mod node;

use k8s_openapi::api::core::v1::NodeSystemInfo as KubernetesNodeInfo;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use windlass_api::core::{
    MachineDeletionStatus, MachineInitializationStatus, MachineNodeReference, MachineStatus, NodeSystemInfo,
};
use windlass_contract::infra_machine;
use windlass_controller_runtime::{Moment, Seen};

use super::facts::{data_secret_name, is_provisioned, provider_id};
use super::observe::Observed;
use super::plan::{Plan, Progress, Stage};
use crate::shared::in_place;

/// Computes the status that this controller owns. Conditions of other controllers are left out: they are theirs to apply.
pub(crate) fn status(seen: &Observed, plan: &Plan, now: &Moment) -> MachineStatus {
    let before = seen.machine.status.clone().unwrap_or_default();
    let infrastructure = seen.infrastructure.found();
    let provisioned = before
        .initialization
        .as_ref()
        .and_then(|done| done.infrastructure_provisioned)
        == Some(true)
        // A provider may report that before it has written the ID.
        || infrastructure.is_some_and(|object| {
            is_provisioned(object) && !object.is_deleting() && infra_machine::provider_id(object.value()).is_some()
        });
    let bootstrapped = before
        .initialization
        .as_ref()
        .and_then(|done| done.bootstrap_data_secret_created)
        == Some(true)
        || data_secret_name(seen).is_some();
    let node_ref = seen
        .node()
        .and_then(|node| node.metadata.name.clone())
        .map(|name| MachineNodeReference { name })
        .or_else(|| before.node_ref.clone());
    let failure_domain = infrastructure
        .and_then(|object| infra_machine::failure_domain(object.value()))
        .map(str::to_owned)
        .or_else(|| before.failure_domain.clone())
        .or_else(|| seen.machine.spec.failure_domain.clone());
    let mut status = MachineStatus {
        addresses: infrastructure.map_or_else(
            || before.addresses.clone(),
            |object| infra_machine::addresses(object.value()),
        ),
        certificates_expiry_date: certificates_expiry(seen, &before),
        deletion: deletion(&before, plan, now),
        failure_domain,
        initialization: (bootstrapped || provisioned).then(|| MachineInitializationStatus {
            bootstrap_data_secret_created: bootstrapped.then_some(true),
            infrastructure_provisioned: provisioned.then_some(true),
        }),
        node_info: seen
            .node()
            .and_then(|node| node.status.as_ref()?.node_info.as_ref())
            .map(node_info)
            .or_else(|| before.node_info.clone()),
        node_ref,
        observed_generation: seen.machine.metadata.generation,
        ..MachineStatus::default()
    };
    let phase = phase(seen, &status);
    status.last_updated = if before.phase.as_deref() == Some(phase) {
        before.last_updated.clone()
    } else {
        Some(Time(now.now()))
    };
    status.phase = Some(phase.to_owned());
    status.conditions = conditions::conditions(seen, plan, &status, now);
    status.deprecated = Some(legacy::deprecated(seen, plan, &status, &before, now.now()));
    status
}

/// Where in its life the Machine is.
fn phase(seen: &Observed, status: &MachineStatus) -> &'static str {
    let done = status.initialization.as_ref();
    let bootstrapped = done.and_then(|done| done.bootstrap_data_secret_created) == Some(true);
    let provisioned = done.and_then(|done| done.infrastructure_provisioned) == Some(true);
    if seen.deleting() {
        "Deleting"
    } else if in_place::is_under_way(&seen.machine) {
        "Updating"
    } else if status.node_ref.is_some() && provisioned {
        "Running"
    } else if provider_id(seen).is_some() {
        "Provisioned"
    } else if bootstrapped && !provisioned {
        "Provisioning"
    } else {
        "Pending"
    }
}

/// When the certificates on a control plane machine expire, as the Machine itself, or else its bootstrap or infrastructure object
/// annotates it. What was reported is taken back only when all of them are read and none says it.
fn certificates_expiry(seen: &Observed, before: &MachineStatus) -> Option<Time> {
    let annotation = windlass_api::annotations::CERTIFICATES_EXPIRY;
    let own = seen.machine.metadata.annotations.as_ref();
    let own = own.and_then(|all| all.get(annotation)).map(String::as_str);
    let sources = || seen.bootstrap.iter().chain([&seen.infrastructure]);
    let annotated = || {
        let objects = sources().filter_map(Seen::found);
        objects.into_iter().find_map(|object| object.annotation(annotation))
    };
    let unread = || sources().any(|source| source.failure().is_some());
    match own.or_else(annotated) {
        Some(text) => text
            .parse()
            .ok()
            .map(Time)
            .or_else(|| before.certificates_expiry_date.clone()),
        None if unread() => before.certificates_expiry_date.clone(),
        None => None,
    }
}

/// Start times of the stages of the deletion: set when a stage is begun, kept after it.
fn deletion(before: &MachineStatus, plan: &Plan, now: &Moment) -> Option<MachineDeletionStatus> {
    let Some(deleting) = plan.deleting.as_ref() else {
        return before.deletion.clone();
    };
    let mut times = before.deletion.clone().unwrap_or_default();
    let at = |time: &mut Option<Time>, begun: bool| {
        if time.is_none() && begun {
            *time = Some(Time(now.now()));
        }
    };
    let waits = |stage| deleting.progress(stage) == Some(Progress::Pending);
    at(&mut times.wait_for_pre_drain_hook_start_time, waits(Stage::PreDrain));
    at(&mut times.node_drain_start_time, deleting.has_begun(Stage::Drain));
    at(
        &mut times.wait_for_node_volume_detach_start_time,
        deleting.has_begun(Stage::Volumes),
    );
    at(
        &mut times.wait_for_pre_terminate_hook_start_time,
        waits(Stage::PreTerminate),
    );
    (times != MachineDeletionStatus::default()).then_some(times)
}

fn node_info(info: &KubernetesNodeInfo) -> NodeSystemInfo {
    NodeSystemInfo {
        architecture: info.architecture.clone(),
        boot_id: info.boot_id.clone(),
        container_runtime_version: info.container_runtime_version.clone(),
        kernel_version: info.kernel_version.clone(),
        kube_proxy_version: info.kube_proxy_version.clone(),
        kubelet_version: info.kubelet_version.clone(),
        machine_id: info.machine_id.clone(),
        operating_system: info.operating_system.clone(),
        os_image: info.os_image.clone(),
        swap: info.swap.as_ref().map(|swap| windlass_api::core::NodeSwapStatus {
            capacity: swap.capacity,
        }),
        system_uuid: info.system_uuid.clone(),
    }
}
