//! Facts about a Machine that follow from what was read: shared by what is read next, the plan and the status. Pure.

use windlass_api::Condition;
use windlass_api::conditions;
use windlass_api::core::{Cluster, MachineDeletionSpec};
use windlass_contract::{bootstrap, infra_machine};
use windlass_controller_runtime::Seen;

use super::observe::Observed;
use crate::shared::read::Referenced;

/// The name of the Secret with the bootstrap data, once there is one.
pub(crate) fn data_secret_name(seen: &Observed) -> Option<String> {
    let own = seen.machine.spec.bootstrap.data_secret_name.clone();
    let object = seen.bootstrap.as_ref().and_then(Seen::found);
    let created = object.filter(|object| bootstrap::data_secret_created(object.value(), object.contract));
    created
        .and_then(|object| bootstrap::data_secret_name(object.value()))
        .map(str::to_owned)
        .or(own)
}

/// Whether the infrastructure machine says, by its contract, that it is provisioned.
pub(crate) fn is_provisioned(infrastructure: &Referenced) -> bool {
    infra_machine::provisioned(infrastructure.value(), infrastructure.contract)
}

/// The provider's name for the machine, once it is provisioned.
pub(crate) fn provider_id(seen: &Observed) -> Option<String> {
    let own = seen.machine.spec.provider_id.clone();
    let provisioned = seen.infrastructure.found().filter(|object| is_provisioned(object));
    provisioned
        .and_then(|object| infra_machine::provider_id(object.value()))
        .map(str::to_owned)
        .or(own)
}

/// The Cluster's condition ControlPlaneInitialized, when it is True.
pub(crate) fn control_plane_initialized(cluster: &Cluster) -> Option<&Condition> {
    let status = cluster.status.as_ref()?;
    windlass_conditions::get(&status.conditions, conditions::CONTROL_PLANE_INITIALIZED)
        .filter(|condition| condition.status == "True")
}

/// The limits of the deletion's stages.
pub(crate) fn limits(seen: &Observed) -> MachineDeletionSpec {
    seen.machine.spec.deletion.clone().unwrap_or_default()
}
