//! Everything the MachineHealthCheck controller looks at before it decides.

use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_api::core::{Cluster, Machine, MachineHealthCheck};
use windlass_api::k8s::Node;
use windlass_cluster_cache::Workload;
use windlass_controller_runtime::{Dynamic, Seen};

/// What was read for one MachineHealthCheck.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The object itself.
    pub check: Arc<MachineHealthCheck>,
    /// Its Cluster.
    pub cluster: Seen<Arc<Cluster>>,
    /// The Machines to be checked, by name.
    pub targets: Vec<Target>,
    /// The Nodes of the targets, by name.
    pub nodes: Workload<BTreeMap<String, Arc<Node>>>,
    /// The template of remediation requests; `None` when owners replace Machines themselves.
    pub request_template: Option<Seen<Arc<Dynamic>>>,
}

/// A Machine to be checked.
#[derive(Clone, Debug)]
pub struct Target {
    /// The Machine.
    pub machine: Arc<Machine>,
    /// The remediation request made for it; `None` when there is no template for requests.
    pub request: Option<Seen<Arc<Dynamic>>>,
}

impl Target {
    /// The name of the Node that the Machine became; `None` when it has none yet.
    pub(crate) fn node_name(&self) -> Option<&str> {
        let node = self.machine.status.as_ref()?.node_ref.as_ref()?;
        Some(&node.name)
    }
}
