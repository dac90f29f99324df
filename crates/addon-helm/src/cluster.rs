//! The fields of Clusters that both controllers read. Pure.

use windlass_api::core::Cluster;

/// Whether the control plane of a Cluster is initialized. Unset counts as no.
pub(crate) fn is_initialized(cluster: &Cluster) -> bool {
    let status = cluster.status.as_ref();
    let initialization = status.and_then(|status| status.initialization.as_ref());
    initialization.and_then(|initialization| initialization.control_plane_initialized) == Some(true)
}
