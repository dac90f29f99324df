//! The MachinePools of a topology.

use std::collections::BTreeSet;

use super::{Plan, version_change};
use crate::current::{WorkerSet, is_deleting};
use crate::desired::{Input, Pool};
use crate::error::Error;
use crate::model::name_of;

impl Plan {
    /// The MachinePools, after the MachineDeployments.
    pub(super) fn pools(&mut self, input: Input<'_>, pools: Vec<Pool>) {
        let have = &input.current.machine_pools;
        let wanted: BTreeSet<&str> = pools.iter().map(|pool| pool.name.as_str()).collect();
        let about = |name: &str| format!("pool {name}");
        for (name, pool) in have {
            if !wanted.contains(name.as_str()) && !is_deleting(&pool.object) {
                // What it refers to goes with it.
                self.about(&about(name), |plan| plan.remove(name, pool));
            }
        }
        for pool in pools {
            let name = pool.name.clone();
            self.about(&about(&name), |plan| plan.pool(have.get(&name), pool));
        }
    }

    fn pool(&mut self, have: Option<&WorkerSet>, pool: Pool) {
        let name = name_of(&pool.object);
        let Some(have) = have else {
            if pool.step.on_hold() {
                self.notes.push(format!(
                    "MachinePool for {:?} is made when the control plane has its new version",
                    pool.name
                ));
                return;
            }
            for object in [pool.infrastructure, pool.bootstrap] {
                self.ensure(None, object, "");
                self.part(None);
            }
            self.ensure(None, pool.object, "");
            return;
        };
        if is_deleting(&have.object) {
            self.wait_until_gone(&name);
            return;
        }
        if pool.step.on_hold() {
            self.notes
                .push(format!("{name} is left as it is until its turn to be upgraded"));
            return;
        }
        let parts = [
            (&have.infrastructure, pool.infrastructure),
            (&have.bootstrap, pool.bootstrap),
        ];
        if let Some((_, lost)) = parts.iter().find(|(have, _)| have.is_none()) {
            // A new one would be other machines.
            let why = format!("does not exist, and {name} is left as it is; restore it or delete the MachinePool");
            self.left.push(Error::new(name_of(lost), "", why));
            return;
        }
        for (have, want) in parts {
            self.ensure(have.as_deref(), want, "");
        }
        let versions = version_change(Some(&have.object), &pool.object, "/spec/template/spec/version");
        self.ensure(Some(&have.object), pool.object, &versions);
    }
}
