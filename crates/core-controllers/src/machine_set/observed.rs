//! Everything the MachineSet controller looks at before it decides.

use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_api::core::{Cluster, Machine, MachineDeployment, MachineSet};
use windlass_api::meta::MetaExt as _;
use windlass_controller_runtime::{Dynamic, Seen};

use crate::shared::preflight::{ControlPlaneFacts, PreflightChecks};

/// What was read for one MachineSet.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The object itself.
    pub set: Arc<MachineSet>,
    /// Its Cluster.
    pub cluster: Seen<Arc<Cluster>>,
    /// The Machines that it controls, by name.
    pub machines: Vec<Arc<Machine>>,
    /// Machines that match its selector and have no controller.
    pub orphans: Vec<Arc<Machine>>,
    /// The template of bootstrap objects; `None` when Machines bring their data Secret.
    pub bootstrap_template: Option<Seen<Arc<Dynamic>>>,
    /// The template of infrastructure objects.
    pub infrastructure_template: Seen<Arc<Dynamic>>,
    /// Bootstrap object of each Machine, by the Machine's name; only for Machines that reference one.
    pub bootstrap: BTreeMap<String, Seen<Arc<Dynamic>>>,
    /// Infrastructure object of each Machine, by the Machine's name.
    pub infrastructure: BTreeMap<String, Seen<Arc<Dynamic>>>,
    /// The control plane of the Cluster; `None` when the Cluster names none.
    pub(crate) control_plane: Option<Seen<ControlPlaneFacts>>,
    /// The MachineDeployment that controls the set; `None` for a set of its own.
    pub deployment: Option<Seen<Arc<MachineDeployment>>>,
    /// The set that gets the Machines which this one has too many; `None` when it deletes them.
    pub target: Option<Seen<Arc<MachineSet>>>,
    /// The set has the highest revision of its MachineDeployment, or has none.
    pub is_current: bool,
    /// The checks before Machines are made that the manager runs.
    pub checks: PreflightChecks,
    /// Random suffixes, one for each Machine that may have to be made.
    pub suffixes: Vec<String>,
}

impl Observed {
    /// Whether the number of replicas is not known yet. Nothing else is decided or reported before.
    pub(crate) fn awaits_replicas(&self) -> bool {
        self.set.spec.replicas.is_none() && !self.set.metadata.is_deleting()
    }
}
