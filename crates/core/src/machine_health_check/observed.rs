//! Everything the MachineHealthCheck controller looks at before it decides.

use std::sync::Arc;

use windlass_api::core::{Cluster, Machine, MachineHealthCheck};
use windlass_api::k8s::Node;
use windlass_kit::{Dynamic, Seen};

/// What was read for one MachineHealthCheck.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The object itself.
    pub check: Arc<MachineHealthCheck>,
    /// Its Cluster.
    pub cluster: Seen<Arc<Cluster>>,
    /// The Machines to be checked, by name.
    pub targets: Vec<Target>,
    /// The template of remediation requests; `None` when owners replace Machines themselves.
    pub request_template: Option<Seen<Arc<Dynamic>>>,
}

/// A Machine to be checked.
#[derive(Clone, Debug)]
pub struct Target {
    /// The Machine.
    pub machine: Arc<Machine>,
    /// Its Node; `None` when the Machine has none yet. Failed when there is no connection to the workload cluster.
    pub node: Option<Seen<Arc<Node>>>,
    /// The remediation request made for it; `None` when there is no template for requests.
    pub request: Option<Seen<Arc<Dynamic>>>,
}
