//! The status of a DevMachinePool, from what was seen and decided: pure.

use jiff::Timestamp;
use windlass_api::kind::Conditioned as _;
use windlass_api_ext::infrastructure::DevMachinePoolStatus;
use windlass_api_ext::{conditions, reasons};
use windlass_conditions::{Builder, Draft};

use super::apply::Done;
use super::observe::{Observed, is_provisioned};
use super::plan::{Plan, provider_ids};

/// Computes the status. A pool that once had all its machines stays ready, as in Cluster API; the conditions tell how it is now.
pub(super) fn status(seen: &Observed, plan: &Plan, done: &Done, now: Timestamp) -> DevMachinePoolStatus {
    let before = seen.object.status.clone().unwrap_or_default();
    let generation = done.generation.or(seen.object.metadata.generation);
    let wanted = seen.replicas();
    let provisioned = seen.hosts.iter().filter(|host| is_provisioned(&host.object)).count();
    let is_complete = seen.pool.is_some()
        && plan.waiting.is_none()
        && seen.hosts.len() == wanted
        && provider_ids(seen).len() == wanted;
    let said = if seen.deleting() {
        Draft::no(
            reasons::DELETING,
            format!("Waiting for {} machines to be deleted", seen.hosts.len()),
        )
    } else if let Some(waiting) = &plan.waiting {
        Draft::no(reasons::NOT_READY, waiting.clone())
    } else if is_complete {
        Draft::yes(reasons::READY, "")
    } else {
        let message = format!(
            "{provisioned} machines are provisioned, of {} that exist; {wanted} are wanted",
            seen.hosts.len()
        );
        Draft::no(reasons::NOT_READY, message)
    };
    let ready = match said.status {
        windlass_conditions::Status::True => Draft::yes(reasons::READY, ""),
        _ => Draft::no(reasons::NOT_READY, format!("* ReplicasReady: {}", said.message)),
    };
    let mut all = Builder::new(seen.object.conditions(), generation, now);
    all.set(conditions::REPLICAS_READY, said);
    all.set(conditions::READY, ready);
    DevMachinePoolStatus {
        conditions: all.done(),
        infrastructure_machine_kind: Some("DevMachine".to_owned()),
        instances: Vec::new(),
        observed_generation: generation,
        ready: Some(before.ready == Some(true) || is_complete),
        replicas: i32::try_from(seen.hosts.len()).ok(),
    }
}
