//! Facts about a Machine that follow from what was read: shared by what is read next, the plan and the status. Pure.

use std::sync::Arc;

use windlass_api::Condition;
use windlass_api::core::{Cluster, Machine, MachineDeletionSpec};
use windlass_api::k8s::Node;
use windlass_api::{conditions, labels, owner};
use windlass_contract::{bootstrap, infra_machine};
use windlass_controller_runtime::Seen;

use super::observe::Observed;
use crate::shared::guards;
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

/// The failure domain of the Machine's spec: an infrastructure machine of an older provider may choose another one. What cannot be read
/// changes nothing; one that chooses none takes nothing over.
pub(crate) fn failure_domain(seen: &Observed) -> Option<String> {
    match &seen.infrastructure {
        Seen::Found(object) if is_provisioned(object) => {
            infra_machine::chosen_failure_domain(object.value()).map(str::to_owned)
        }
        Seen::Found(_) | Seen::NotFound | Seen::Failed(_) => seen.machine.spec.failure_domain.clone(),
    }
}

/// The Cluster's condition ControlPlaneInitialized, when it is True.
pub(crate) fn control_plane_initialized(cluster: &Cluster) -> Option<&Condition> {
    let status = cluster.status.as_ref()?;
    windlass_conditions::get(&status.conditions, conditions::CONTROL_PLANE_INITIALIZED)
        .filter(|condition| condition.status == "True")
}

/// Whether the workload cluster came up once. A restored backup has no status that tells. Before a control plane is initialized, only its
/// first Machine has a host: others wait for their bootstrap data until then. Hosts are compared only while the Machine is being deleted.
pub(crate) fn has_come_up(seen: &Observed) -> bool {
    let Seen::Found(cluster) = &seen.cluster else {
        return false;
    };
    let is_other_host = |machine: &Arc<Machine>| {
        machine.metadata.uid != seen.machine.metadata.uid && machine.spec.provider_id.is_some()
    };
    let has_joined = || provider_id(seen).is_some() && seen.control_plane_machines.iter().any(is_other_host);
    control_plane_initialized(cluster).is_some() || has_joined()
}

/// Whether the Machine was moved to another Cluster than the one whose Node it is: its Cluster owns it, or its MachineSet or an object that
/// it controls has the name that its label still has.
pub(crate) fn moved(seen: &Observed) -> Option<String> {
    let (metadata, spec) = (&seen.machine.metadata, &seen.machine.spec);
    let by_owner = guards::moved(metadata, &spec.cluster_name);
    let label = metadata.labels.as_ref().and_then(|all| all.get(labels::CLUSTER_NAME));
    let by_label = || {
        let label = label.filter(|label| **label != spec.cluster_name)?;
        let is_own = |object: &&Referenced| {
            let controller = owner::controller_of(object.metadata());
            controller.is_some_and(|owner| Some(&owner.uid) == metadata.uid.as_ref())
        };
        let objects = seen.bootstrap.iter().chain([&seen.infrastructure]);
        let mut own = objects.filter_map(Seen::found).filter(is_own);
        let of_set = seen.machine_set.as_ref().map(|set| &set.spec.cluster_name);
        let agrees = of_set == Some(label) || own.any(|object| object.label(labels::CLUSTER_NAME) == Some(label));
        agrees.then(|| guards::immutable(&spec.cluster_name, label))
    };
    by_owner.or_else(by_label)
}

/// The limits of the deletion's stages.
pub(crate) fn limits(seen: &Observed) -> MachineDeletionSpec {
    seen.machine.spec.deletion.clone().unwrap_or_default()
}

/// Why the stages that need a running Node, drain and volumes, are over, whatever is on the Node; none while they are not.
pub(crate) fn node_stages_end(seen: &Observed) -> Option<&'static str> {
    let status = seen.machine.status.as_ref();
    let deletion = status.and_then(|status| status.deletion.as_ref());
    if deletion.is_some_and(|times| times.wait_for_pre_terminate_hook_start_time.is_some()) {
        return Some("the pre-terminate hooks have begun");
    }
    match &seen.infrastructure {
        Seen::NotFound => Some("the infrastructure machine does not exist"),
        Seen::Found(infrastructure) if infrastructure.is_deleting() => {
            Some("the infrastructure machine is being deleted")
        }
        // What cannot be read may still run.
        Seen::Found(_) | Seen::Failed(_) => None,
    }
}

/// Whether a Node with the recorded name is still the Machine's. Names of hosts are used again: the Node of another machine has another
/// provider ID, or none yet.
pub(crate) fn is_node_of(node: &Node, seen: &Observed) -> bool {
    let own = provider_id(seen);
    let of_node = node.spec.as_ref().and_then(|spec| spec.provider_id.clone());
    if let (Some(own), Some(of_node)) = (own, of_node.filter(|id| !id.is_empty())) {
        return own == of_node;
    }
    let annotations = node.metadata.annotations.as_ref();
    let claimed = annotations.and_then(|all| all.get(windlass_api::annotations::NODE_MACHINE));
    claimed.is_some() && claimed == seen.machine.metadata.name.as_ref()
}
