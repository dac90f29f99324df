//! Facts about Clusters that several controllers ask for.

use windlass_api::core::Cluster;

/// Whether the control plane of the Cluster is Machines of its own, without an object for all of them.
pub(crate) fn is_standalone(cluster: &Cluster) -> bool {
    cluster.spec.control_plane_ref.is_none() && cluster.spec.topology.is_none()
}
