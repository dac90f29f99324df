//! Everything the DevMachine controller reads, as plain data. The only file of this controller that reads.

use std::sync::Arc;

use windlass_api::core::{Cluster, Machine};
use windlass_api::labels;
use windlass_api_ext::infrastructure::{DevCluster, DevMachine};
use windlass_kit::{Cx, ObjectKey};

use crate::backend::{Cloud, VmState};

/// What one pass over a DevMachine knows.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    /// The DevMachine.
    pub(crate) machine: Arc<DevMachine>,
    /// The Machine that owns it.
    pub(crate) owner: Option<Arc<Machine>>,
    /// The Cluster of the Machine.
    pub(crate) cluster: Option<Arc<Cluster>>,
    /// What the simulated cloud has of it.
    pub(crate) vm: Option<VmState>,
    /// Whether the simulated API server of the workload cluster answers.
    pub(crate) api_server_up: bool,
    /// Whether the workload cluster has a load balancer, whoever made it.
    pub(crate) balanced: bool,
    /// The DevCluster, to say what is missing there.
    pub(crate) infrastructure: Option<Arc<DevCluster>>,
}

impl Observed {
    /// Whether the DevMachine is being deleted.
    pub(crate) fn deleting(&self) -> bool {
        self.machine.metadata.deletion_timestamp.is_some()
    }

    /// Whether the machine belongs to the control plane.
    pub(crate) fn is_control_plane(&self) -> bool {
        let labels = self.owner.as_ref().and_then(|owner| owner.metadata.labels.as_ref());
        labels.is_some_and(|all| all.contains_key(labels::CONTROL_PLANE))
    }

    /// The name of the machine and its Node: the Machine's.
    pub(crate) fn name(&self) -> &str {
        let owner = self.owner.as_ref().and_then(|owner| owner.metadata.name.as_deref());
        owner.or(self.machine.metadata.name.as_deref()).unwrap_or_default()
    }

    /// The Cluster's key.
    pub(crate) fn cluster_key(&self) -> Option<ObjectKey> {
        let namespace = self.machine.metadata.namespace.as_deref()?;
        let label = self
            .machine
            .metadata
            .labels
            .as_ref()
            .and_then(|all| all.get(labels::CLUSTER_NAME));
        let name = self.owner.as_ref().map(|owner| &owner.spec.cluster_name).or(label)?;
        Some(ObjectKey::new(namespace, name))
    }
}

/// Reads everything.
pub(crate) fn observe(cx: &Cx, cloud: &Cloud, machine: Arc<DevMachine>) -> Observed {
    let namespace = machine.metadata.namespace.clone().unwrap_or_default();
    let owner = machine
        .metadata
        .owner_references
        .iter()
        .flatten()
        .find(|owner| owner.kind == "Machine")
        .and_then(|owner| cx.cache::<Machine>().get(&ObjectKey::new(&namespace, &owner.name)));
    let cluster = owner.as_ref().and_then(|owner| {
        cx.cache::<Cluster>()
            .get(&ObjectKey::new(&namespace, &owner.spec.cluster_name))
    });
    let mut seen = Observed {
        machine,
        owner,
        cluster,
        vm: None,
        api_server_up: false,
        balanced: false,
        infrastructure: None,
    };
    let reference = seen
        .cluster
        .as_ref()
        .and_then(|cluster| cluster.spec.infrastructure_ref.as_ref());
    if let Some(reference) = reference.filter(|reference| reference.kind == "DevCluster") {
        seen.infrastructure = cx
            .cache::<DevCluster>()
            .get(&ObjectKey::new(&namespace, &reference.name));
    }
    if let Some(key) = seen.cluster_key() {
        seen.vm = cloud.vm(&key, seen.name());
        seen.api_server_up = cloud.is_up(&key);
        seen.balanced = cloud.load_balancer(&key).is_some();
    }
    seen
}
