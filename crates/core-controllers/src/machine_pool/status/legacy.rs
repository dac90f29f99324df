//! The status of the previous API generation, derived from the same facts as the current one. The list of conditions has no keys, so one
//! writer keeps all of it.

use jiff::Timestamp;
use windlass_api::core::{MachinePoolStatus, MachinePoolV1Beta1DeprecatedStatus};
use windlass_api::meta::MetaExt as _;
use windlass_api::v1beta1::{conditions as types, reasons};
use windlass_controller_runtime::Seen;

use super::{Nodes, facts};
use crate::machine_pool::observe::Observed;
use crate::shared::legacy::{Legacy, LegacyConditions, failures, own_ready, summary};
use crate::shared::read::Referenced;

/// How many Nodes were ready.
pub(super) fn ready_replicas(before: &MachinePoolStatus) -> i32 {
    block(before).and_then(|old| old.ready_replicas).unwrap_or_default()
}

fn block(before: &MachinePoolStatus) -> Option<&MachinePoolV1Beta1DeprecatedStatus> {
    before.deprecated.as_ref()?.v1beta1.as_ref()
}

/// The deprecated block. A number that is 0 is left out, as in Cluster API.
pub(super) fn status(
    seen: &Observed,
    before: &MachinePoolStatus,
    nodes: Option<&Nodes>,
    replicas: Option<i32>,
    now: Timestamp,
) -> MachinePoolV1Beta1DeprecatedStatus {
    let old = block(before);
    let mut list = LegacyConditions::new(old.map_or(&[], |old| old.conditions.as_slice()), now);
    let (reason, message) = failure(seen, old);
    let bootstrap = match &seen.bootstrap {
        Some(object) => {
            let (done, kind) = (facts::is_bootstrapped(seen), "bootstrap config");
            let reference = seen.pool.spec.template.spec.bootstrap.config_ref.as_ref();
            let name = reference.map(|to| (to.kind.as_str(), to.name.as_str()));
            external(
                seen,
                object,
                done,
                reasons::WAITING_FOR_DATA_SECRET,
                kind,
                name.unwrap_or_default(),
            )
        }
        None if facts::is_bootstrapped(seen) => Legacy::Good,
        None => Legacy::info(reasons::WAITING_FOR_DATA_SECRET, ""),
    };
    let reference = &seen.pool.spec.template.spec.infrastructure_ref;
    let infrastructure = external(
        seen,
        &seen.infrastructure,
        facts::is_provisioned(seen),
        reasons::WAITING_FOR_INFRASTRUCTURE,
        "infra",
        (&reference.kind, &reference.name),
    );
    let mut built = MachinePoolV1Beta1DeprecatedStatus {
        failure_message: message,
        failure_reason: reason,
        ..MachinePoolV1Beta1DeprecatedStatus::default()
    };
    let machines = replicas_ready(seen, old, nodes, replicas, &mut built);
    list.set(types::BOOTSTRAP_READY, &bootstrap);
    list.set(types::INFRASTRUCTURE_READY, &infrastructure);
    list.set(types::REPLICAS_READY, &machines);
    list.set(types::READY, &summary(&[bootstrap, infrastructure, machines]));
    built.conditions = list.done();
    built
}

/// Counts the Nodes. While the workload cluster does not answer, what was known stays.
fn replicas_ready(
    seen: &Observed,
    old: Option<&MachinePoolV1Beta1DeprecatedStatus>,
    nodes: Option<&Nodes>,
    replicas: Option<i32>,
    built: &mut MachinePoolV1Beta1DeprecatedStatus,
) -> Legacy {
    let waiting = || Legacy::info(reasons::WAITING_FOR_REPLICAS_READY, "");
    let Some(nodes) = nodes else {
        let known = old.cloned().unwrap_or_default();
        built.ready_replicas = known.ready_replicas;
        built.available_replicas = known.available_replicas;
        built.unavailable_replicas = known.unavailable_replicas;
        let mut conditions = known.conditions.iter();
        let ready = conditions.find(|have| have.type_ == types::REPLICAS_READY);
        return ready.and_then(Legacy::read).unwrap_or_else(waiting);
    };
    let number = |number: i32| Some(number).filter(|number| *number != 0);
    let all = replicas.unwrap_or_default();
    built.ready_replicas = number(nodes.ready);
    built.available_replicas = number(nodes.available);
    built.unavailable_replicas = number(all - nodes.available);
    if facts::is_provisioned(seen) && nodes.ready == all && nodes.found == all {
        Legacy::Good
    } else {
        waiting()
    }
}

/// The own Ready of a referenced object, and where it has none whether the object is done.
fn external(
    seen: &Observed,
    object: &Seen<Referenced>,
    done: bool,
    waiting: &str,
    what: &str,
    (kind, name): (&str, &str),
) -> Legacy {
    let by_contract = || if done { Legacy::Good } else { Legacy::info(waiting, "") };
    match object {
        Seen::Found(found) => own_ready(found.value()).unwrap_or_else(by_contract),
        Seen::NotFound if seen.deleting() => Legacy::info(reasons::DELETED, ""),
        Seen::NotFound => {
            let message = format!("could not find {what} reference of kind {kind} with name {name}");
            Legacy::error(reasons::INCORRECT_EXTERNAL_REF, message)
        }
        Seen::Failed(_) => by_contract(),
    }
}

/// A failure that needs a user, as providers of the older contract report it, or that the infrastructure is gone. Nothing follows from it.
fn failure(seen: &Observed, old: Option<&MachinePoolV1Beta1DeprecatedStatus>) -> (Option<String>, Option<String>) {
    let reference = &seen.pool.spec.template.spec.infrastructure_ref;
    if seen.infrastructure.is_not_found() && facts::was_provisioned(seen) && !seen.deleting() {
        let message = format!(
            "MachinePool infrastructure resource {} {}/{} has been deleted after being ready",
            reference.kind,
            seen.pool.metadata.namespace(),
            reference.name
        );
        return (Some("InvalidConfiguration".to_owned()), Some(message));
    }
    failures(seen.bootstrap.iter().chain([&seen.infrastructure]), || {
        old.map(|old| (old.failure_reason.clone(), old.failure_message.clone()))
            .unwrap_or_default()
    })
}
