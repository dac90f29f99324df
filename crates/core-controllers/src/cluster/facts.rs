//! Facts about a Cluster that follow from what was read: shared by what is read next, the plan and the status. Pure.

use windlass_api::core::{APIEndpoint, ClusterInitializationStatus, ClusterStatus};
use windlass_contract::{control_plane, infra_cluster};

use super::observe::Observed;
use crate::shared::clusters::is_standalone;
use crate::shared::read::Referenced;

/// The endpoint of the Cluster, and whether it has to be taken over from one of the objects it references. The user's own word
/// stays; infrastructure comes before the control plane; neither counts before it says that it is ready.
pub(crate) fn endpoint(seen: &Observed) -> (Option<APIEndpoint>, bool) {
    if let Some(own) = seen
        .cluster
        .spec
        .control_plane_endpoint
        .clone()
        .filter(APIEndpoint::is_complete)
    {
        return (Some(own), false);
    }
    let infrastructure = usable_infrastructure(seen).and_then(|object| infra_cluster::endpoint(object.value()));
    let control_plane = seen.control_plane().filter(|object| is_initialized(object));
    let control_plane = control_plane.and_then(|object| control_plane::endpoint(object.value()));
    let found = infrastructure.or(control_plane);
    let taken = found.is_some();
    (found, taken)
}

/// The infrastructure cluster, when something may be taken over from it: it is there to stay, and it is provisioned, or was when
/// the Cluster looked before.
pub(crate) fn usable_infrastructure(seen: &Observed) -> Option<&Referenced> {
    let before = seen
        .cluster
        .status
        .as_ref()
        .and_then(|status| status.initialization.as_ref());
    let was = before.and_then(|done| done.infrastructure_provisioned) == Some(true);
    seen.infrastructure()
        .filter(|object| !object.is_deleting() && (was || is_provisioned(object)))
}

/// Whether the infrastructure cluster says, by its contract, that it is provisioned.
pub(crate) fn is_provisioned(object: &Referenced) -> bool {
    infra_cluster::provisioned(object.value(), object.contract)
}

/// Whether the control plane says, by its contract, that it answered once.
pub(crate) fn is_initialized(object: &Referenced) -> bool {
    control_plane::initialized(object.value(), object.contract)
}

/// One-way signals: what was provisioned once stays so.
pub(crate) fn initialization(seen: &Observed, before: &ClusterStatus) -> ClusterInitializationStatus {
    let done = before.initialization.clone().unwrap_or_default();
    let unmanaged = seen.cluster.spec.infrastructure_ref.is_none() && seen.cluster.spec.topology.is_none();
    let provisioned =
        done.infrastructure_provisioned == Some(true) || unmanaged || usable_infrastructure(seen).is_some();
    let standalone = is_standalone(&seen.cluster)
        && seen
            .control_plane_machines
            .iter()
            .any(|m| m.status.as_ref().is_some_and(|s| s.node_ref.is_some()));
    let initialized =
        done.control_plane_initialized == Some(true) || standalone || seen.control_plane().is_some_and(is_initialized);
    ClusterInitializationStatus {
        control_plane_initialized: initialized.then_some(true),
        infrastructure_provisioned: provisioned.then_some(true),
    }
}

/// Where in its life the Cluster is.
pub(crate) fn phase(seen: &Observed) -> &'static str {
    let spec = &seen.cluster.spec;
    let before = seen.cluster.status.clone().unwrap_or_default();
    let provisioned = initialization(seen, &before).infrastructure_provisioned == Some(true);
    if seen.deleting() {
        "Deleting"
    } else if provisioned && endpoint(seen).0.is_some() {
        "Provisioned"
    } else if spec.infrastructure_ref.is_some() || spec.control_plane_ref.is_some() {
        "Provisioning"
    } else {
        "Pending"
    }
}
