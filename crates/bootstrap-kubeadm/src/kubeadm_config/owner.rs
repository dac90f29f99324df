//! The object that a KubeadmConfig makes data for.

use std::sync::Arc;

use windlass_api::core::v1beta2::{ContractVersionedObjectReference, Machine, MachinePool};
use windlass_api::labels;
use windlass_api::meta::MetaExt as _;

/// A Machine, or a MachinePool whose machines all boot with the same data.
#[derive(Clone, Debug)]
pub(super) enum ConfigOwner {
    /// A Machine.
    Machine(Arc<Machine>),
    /// A MachinePool.
    Pool(Arc<MachinePool>),
}

impl ConfigOwner {
    /// Its name.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Machine(machine) => machine.metadata.name(),
            Self::Pool(pool) => pool.metadata.name(),
        }
    }

    /// The name of its Cluster.
    pub(super) fn cluster_name(&self) -> &str {
        match self {
            Self::Machine(machine) => &machine.spec.cluster_name,
            Self::Pool(pool) => &pool.spec.cluster_name,
        }
    }

    /// The Kubernetes version of what boots.
    pub(super) fn version(&self) -> Option<&str> {
        match self {
            Self::Machine(machine) => machine.spec.version.as_deref(),
            Self::Pool(pool) => pool.spec.template.spec.version.as_deref(),
        }
    }

    /// The bootstrap configuration that it names.
    pub(super) fn config_ref(&self) -> Option<&ContractVersionedObjectReference> {
        match self {
            Self::Machine(machine) => machine.spec.bootstrap.config_ref.as_ref(),
            Self::Pool(pool) => pool.spec.template.spec.bootstrap.config_ref.as_ref(),
        }
    }

    /// The data Secret that a Machine knows. That of a pool is made again when its config has forgotten it: its token may have ended.
    pub(super) fn data_secret_name(&self) -> Option<&str> {
        match self {
            Self::Machine(machine) => machine.spec.bootstrap.data_secret_name.as_deref(),
            Self::Pool(_) => None,
        }
    }

    /// Whether it is being deleted.
    pub(super) fn is_leaving(&self) -> bool {
        match self {
            Self::Machine(machine) => machine.metadata.is_deleting(),
            Self::Pool(pool) => pool.metadata.is_deleting(),
        }
    }

    /// Whether it is a Machine of the control plane.
    pub(super) fn is_control_plane(&self) -> bool {
        match self {
            Self::Machine(machine) => machine.metadata.label(labels::CONTROL_PLANE).is_some(),
            Self::Pool(_) => false,
        }
    }

    /// Whether it is a MachinePool: machines of it may join at any time.
    pub(super) fn is_pool(&self) -> bool {
        matches!(self, Self::Pool(_))
    }

    /// Whether all its machines have become Nodes.
    pub(super) fn has_joined(&self) -> bool {
        match self {
            Self::Machine(machine) => machine.status.as_ref().is_some_and(|status| status.node_ref.is_some()),
            Self::Pool(pool) => {
                let nodes = pool.status.as_ref().map_or(0, |status| status.node_refs.len());
                i32::try_from(nodes).ok() == Some(pool.spec.replicas.unwrap_or(1))
            }
        }
    }
}
