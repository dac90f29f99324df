//! The conditions of the previous API generation, derived from the same facts as the current ones. The list has no keys, so one
//! writer keeps all of it: conditions of other controllers are restated here from what they report today.

use jiff::Timestamp;
use windlass_api::core::{MachineDeprecatedStatus, MachineStatus, MachineV1Beta1DeprecatedStatus, V1Beta1Condition};
use windlass_api::meta::MetaExt as _;
use windlass_api::v1beta1::{conditions as old_types, reasons as old_reasons};
use windlass_api::{Condition, conditions as types, labels, reasons};
use windlass_conditions::get;
use windlass_conditions::value::conditions_of;
use windlass_controller_runtime::Seen;

use crate::machine::facts::provider_id;
use crate::machine::observe::Observed;
use crate::machine::plan::{Plan, Progress, Stage};
use crate::shared::legacy::{Legacy, LegacyConditions, failures, summary};
use crate::shared::read::Referenced;

/// Conditions that others report under the same name in both generations.
const RESTATED: [&str; 6] = [
    "APIServerPodHealthy",
    "ControllerManagerPodHealthy",
    "EtcdMemberHealthy",
    "EtcdPodHealthy",
    "SchedulerPodHealthy",
    types::HEALTH_CHECK_SUCCEEDED,
];

/// The deprecated block.
pub(super) fn deprecated(
    seen: &Observed,
    plan: &Plan,
    status: &MachineStatus,
    before: &MachineStatus,
    now: Timestamp,
) -> MachineDeprecatedStatus {
    let old = before.deprecated.as_ref().and_then(|block| block.v1beta1.as_ref());
    let mut list = LegacyConditions::new(old.map_or(&[], |block| block.conditions.as_slice()), now);
    let own = |type_: &str| windlass_conditions::get(&status.conditions, type_);

    let is_deleted = |object: &Seen<Referenced>| seen.deleting() && matches!(object, Seen::NotFound);
    let bootstrap = match &seen.bootstrap {
        Some(object) if is_deleted(object) => Legacy::info(old_reasons::DELETED, ""),
        _ => stage(own(types::BOOTSTRAP_CONFIG_READY), "WaitingForDataSecret"),
    };
    // An object that says itself how it is keeps its own reason, also when all is well.
    let own_infrastructure = own(types::INFRASTRUCTURE_READY);
    let own_reason = own_infrastructure
        .filter(|_| has_own_condition(seen))
        .map(|condition| condition.reason.as_str());
    let infrastructure = if is_deleted(&seen.infrastructure) {
        Legacy::info(old_reasons::DELETED, "")
    } else {
        stage(own_infrastructure, own_reason.unwrap_or("WaitingForInfrastructure"))
    };
    list.set("BootstrapReady", &bootstrap);
    list.set_because("InfrastructureReady", &infrastructure, own_reason.unwrap_or_default());
    let node = node(seen, own(types::NODE_HEALTHY));
    if let Some(node) = &node {
        list.set("NodeHealthy", node);
    }
    let mut counted = vec![bootstrap, infrastructure];
    for type_ in RESTATED {
        let Some(condition) = windlass_conditions::get(&before.conditions, type_) else {
            continue;
        };
        if condition.status == "Unknown" {
            continue;
        }
        let state = restated(condition);
        list.set(type_, &state);
        if type_ == types::HEALTH_CHECK_SUCCEEDED {
            counted.push(state);
        }
    }
    if let Some(state) = owner_remediated(seen, before) {
        list.set(old_types::OWNER_REMEDIATED, &state);
        counted.push(state);
    }
    for (type_, state) in going(plan, old.map_or(&[], |block| block.conditions.as_slice())) {
        list.set(type_, &state);
        if type_ == old_types::DRAINING_SUCCEEDED {
            counted.push(state);
        }
    }
    list.set("Ready", &summary(&counted));
    let (failure_reason, failure_message) = failure(seen, before);
    MachineDeprecatedStatus {
        v1beta1: Some(MachineV1Beta1DeprecatedStatus {
            conditions: list.done(),
            failure_reason,
            failure_message,
        }),
    }
}

/// What a condition of others says, in the words of the older generation where it has some for a pod or an etcd member.
fn restated(condition: &Condition) -> Legacy {
    let message = condition.message.clone();
    let is_pod = condition.type_.ends_with("PodHealthy");
    let is_member = condition.type_ == "EtcdMemberHealthy";
    match (condition.status.as_str(), condition.reason.as_str()) {
        ("True", _) => Legacy::Good,
        (_, "Deleting") if is_pod || is_member => Legacy::info(old_reasons::DELETING, ""),
        (_, "Provisioning") if is_pod => Legacy::info("PodProvisioning", message),
        (_, "DoesNotExist") if is_pod => Legacy::error("PodMissing", message),
        (_, "Failed") if is_pod => Legacy::error("PodFailed", message),
        _ if is_member => Legacy::error("EtcdMemberUnhealthy", message),
        (_, reason) => Legacy::error(reason, message),
    }
}

/// OwnerRemediated, in the words of the older generation. A MachineSet is done when it deletes the Machine; a control plane, when the Machine is
/// replaced.
fn owner_remediated(seen: &Observed, before: &MachineStatus) -> Option<Legacy> {
    let condition = get(&before.conditions, types::OWNER_REMEDIATED)?;
    let is_of_control_plane = seen.machine.metadata.label(labels::CONTROL_PLANE).is_some();
    Some(match (condition.status.as_str(), condition.reason.as_str()) {
        ("False", reasons::MACHINE_DELETING) if is_of_control_plane => {
            Legacy::warning(old_reasons::REMEDIATION_IN_PROGRESS, "")
        }
        ("True", _) | ("False", reasons::MACHINE_DELETING) => Legacy::Good,
        ("False", reasons::INTERNAL_ERROR) => Legacy::error(old_reasons::REMEDIATION_FAILED, condition.message.clone()),
        ("False", reasons::WAITING_FOR_REMEDIATION) => Legacy::warning(old_reasons::WAITING_FOR_REMEDIATION, ""),
        ("False", _) => Legacy::warning(old_reasons::WAITING_FOR_REMEDIATION, condition.message.clone()),
        _ => return None,
    })
}

/// A failure that needs a user: the infrastructure machine is gone, or an object says so. While an object cannot be read, what was known stays.
fn failure(seen: &Observed, before: &MachineStatus) -> (Option<String>, Option<String>) {
    let done = before.initialization.as_ref();
    let was_provisioned = done.and_then(|done| done.infrastructure_provisioned) == Some(true);
    if seen.infrastructure.is_not_found() && was_provisioned && !seen.deleting() {
        let message = format!(
            "Machine infrastructure resource {} {}/{} has been deleted after provisioning was completed",
            seen.machine.spec.infrastructure_ref.kind,
            seen.machine.metadata.namespace(),
            seen.machine.spec.infrastructure_ref.name
        );
        return (Some("InvalidConfiguration".to_owned()), Some(message));
    }
    failures(seen.bootstrap.iter().chain([&seen.infrastructure]), || {
        let old = before.deprecated.as_ref().and_then(|block| block.v1beta1.as_ref());
        old.map(|old| (old.failure_reason.clone(), old.failure_message.clone()))
            .unwrap_or_default()
    })
}

/// The conditions of the deletion. Stages that are skipped, or were passed before, leave their condition as it is.
fn going(plan: &Plan, old: &[V1Beta1Condition]) -> Vec<(&'static str, Legacy)> {
    let Some(deleting) = &plan.deleting else {
        return Vec::new();
    };
    let hook = || Legacy::info(old_reasons::WAITING_EXTERNAL_HOOK, "");
    let drain = || {
        if deleting.is_failed() {
            Legacy::warning(old_reasons::DRAINING_FAILED, deleting.message.clone())
        } else {
            Legacy::info(old_reasons::DRAINING, deleting.message.clone())
        }
    };
    let volumes = || {
        let message = "Waiting for node volumes to be detached";
        Legacy::info(old_reasons::WAITING_FOR_VOLUME_DETACH, message)
    };
    let all: [(&'static str, Stage, &dyn Fn() -> Legacy); 4] = [
        (old_types::PRE_DRAIN_DELETE_HOOK_SUCCEEDED, Stage::PreDrain, &hook),
        (old_types::DRAINING_SUCCEEDED, Stage::Drain, &drain),
        (old_types::VOLUME_DETACH_SUCCEEDED, Stage::Volumes, &volumes),
        (
            old_types::PRE_TERMINATE_DELETE_HOOK_SUCCEEDED,
            Stage::PreTerminate,
            &hook,
        ),
    ];
    all.into_iter()
        .filter_map(|(type_, stage, pending)| {
            let before = || Legacy::read(old.iter().find(|condition| condition.type_ == type_)?);
            let state = match deleting.progress(stage) {
                Some(Progress::Done) => Legacy::Good,
                Some(Progress::Pending) => pending(),
                Some(Progress::Skipped) | None => before()?,
            };
            Some((type_, state))
        })
        .collect()
}

/// Whether the infrastructure machine has a condition of its own to mirror.
fn has_own_condition(seen: &Observed) -> bool {
    let Seen::Found(found) = &seen.infrastructure else {
        return false;
    };
    conditions_of(found.value()).is_ok_and(|list| get(&list, types::READY).is_some())
}

/// A stage of provisioning: done, or under way.
fn stage(condition: Option<&Condition>, waiting: &str) -> Legacy {
    match condition {
        Some(condition) if condition.status == "True" => Legacy::Good,
        Some(condition) => Legacy::info(waiting, condition.message.clone()),
        None => Legacy::info(waiting, ""),
    }
}

fn node(seen: &Observed, healthy: Option<&Condition>) -> Option<Legacy> {
    if provider_id(seen).is_none() {
        return Some(Legacy::info("WaitingForNodeRef", ""));
    }
    if seen.deleting() {
        return Some(Legacy::info("Deleting", ""));
    }
    let healthy = healthy?;
    Some(match healthy.status.as_str() {
        "True" => Legacy::Good,
        "False" => Legacy::warning("NodeConditionsFailed", healthy.message.clone()),
        _ => Legacy::warning(
            "NodeProvisioning",
            "Waiting for a node with matching ProviderID to exist",
        ),
    })
}
