//! Everything the MachineDeployment controller looks at before it decides.

use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_api::core::{Cluster, Machine, MachineDeployment, MachineSet};
use windlass_api::meta::MetaExt as _;
use windlass_controller_runtime::{Dynamic, Seen};
use windlass_runtime_client::in_place::InPlace;

/// What was read for one MachineDeployment.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The object itself.
    pub deployment: Arc<MachineDeployment>,
    /// Its Cluster.
    pub cluster: Seen<Arc<Cluster>>,
    /// The MachineSets that it controls, by name.
    pub sets: Vec<Arc<MachineSet>>,
    /// MachineSets that match its selector and have no controller.
    pub orphans: Vec<Arc<MachineSet>>,
    /// The Machines of each set, by the set's uid.
    pub machines: BTreeMap<String, Vec<Arc<Machine>>>,
    /// The template of bootstrap objects; `None` when Machines bring their data Secret.
    pub bootstrap_template: Option<Seen<Arc<Dynamic>>>,
    /// The template of infrastructure objects.
    pub infrastructure_template: Seen<Arc<Dynamic>>,
    /// Whether Machines of old sets can be updated in place, by name of the set; `None` until the plan asks.
    pub in_place: Option<BTreeMap<String, InPlace>>,
    /// Random suffix for a MachineSet that may have to be made.
    pub suffix: String,
}

impl Observed {
    /// Whether the number of replicas is not known yet. Nothing else is decided or reported before.
    pub(crate) fn awaits_replicas(&self) -> bool {
        self.deployment.spec.replicas.is_none() && !self.deployment.metadata.is_deleting()
    }

    /// The Machines of one set.
    pub(crate) fn machines_of(&self, set: &MachineSet) -> &[Arc<Machine>] {
        self.machines.get(set.metadata.uid()).map_or(&[], Vec::as_slice)
    }

    /// The Machines of all sets.
    pub(crate) fn all_machines(&self) -> Vec<Arc<Machine>> {
        self.sets
            .iter()
            .flat_map(|set| self.machines_of(set))
            .cloned()
            .collect()
    }
}
