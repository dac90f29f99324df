//! The status of a DevCluster: pure.

use jiff::Timestamp;
use windlass_api::conditions::READY;
use windlass_api_ext::infrastructure::{DevClusterInitializationStatus, DevClusterStatus};
use windlass_conditions::{Status, carried, condition};
use windlass_controller_runtime::Triage as _;

use super::apply::Done;
use super::observe::Observed;

/// The status. It has the condition Ready only while the cloud refuses what the plan needs. A Cluster mirrors that condition.
pub(super) fn status(seen: &Observed, done: &Done, now: Timestamp) -> DevClusterStatus {
    let before = seen.object.status.clone().unwrap_or_default();
    let provisioned = done.provisioned || before.initialization.and_then(|done| done.provisioned) == Some(true);
    let failed = done.failed.as_ref().filter(|_| done.is_reported);
    let ready = failed.map(|error| {
        let generation = seen.object.metadata.generation;
        let new = condition(READY, Status::False, error.reason(), error.to_string(), now, generation);
        carried(&before.conditions, new)
    });
    DevClusterStatus {
        initialization: provisioned.then_some(DevClusterInitializationStatus {
            provisioned: Some(true),
        }),
        conditions: ready.into_iter().collect(),
        ..DevClusterStatus::default()
    }
}
