//! What a MachineDeployment is about to do with its Machines, for previews: the rules of the plan, without its steps.

use std::sync::Arc;

use windlass_api::annotations::PAUSED;
use windlass_api::core::{Machine, MachineDeployment, MachineSet};
use windlass_api::meta::MetaExt as _;
use windlass_controller_runtime::{Cx, Moment};
use windlass_runtime_client::Extensions;
use windlass_runtime_hooks::in_place::CanUpdateMachineSet;

use super::desired::find_new;
use super::settings::{self, Strategy};
use super::{in_place, observe, plan};
use crate::machine_set::in_deletion_order;
use crate::shared::numbers::len_i32;
use crate::shared::templates;

/// A Machine that is to be replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outdated {
    /// Its name.
    pub name: String,
    /// Why, one sentence each.
    pub reasons: Vec<String>,
}

/// What becomes of the Machines of a MachineDeployment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rollout {
    /// Machines wanted.
    pub replicas: i32,
    /// Machines that are up to date and stay.
    pub kept: Vec<String>,
    /// Machines that are replaced.
    pub outdated: Vec<Outdated>,
    /// Machines that go because there are more than wanted.
    pub removed: Vec<String>,
    /// How many are made beside those that replace others.
    pub added: i32,
    /// Machines more than wanted, and fewer, while it lasts.
    pub limits: (i32, i32),
    /// Machines are replaced when a user deletes them.
    pub on_delete: bool,
    /// Nothing is replaced while this is so.
    pub paused: bool,
    /// The handlers of extensions that may be able to update Machines in place.
    pub in_place: Vec<String>,
    /// Why the spec is not acted on.
    pub refused: Option<String>,
}

/// Looks at the Machines of a MachineDeployment as the controller does.
pub async fn rollout(cx: &Cx, extensions: &Extensions, deployment: Arc<MachineDeployment>, now: &Moment) -> Rollout {
    let seen = observe::observe(cx, deployment).await;
    let deployment = &seen.deployment;
    let new = find_new(deployment, &seen.sets, now);
    let is_new = |set: &MachineSet| new.is_some_and(|new| new.metadata.uid == set.metadata.uid);
    let mut out = Rollout {
        replicas: settings::replicas(deployment),
        limits: settings::limits(deployment),
        on_delete: settings::strategy(deployment) == Strategy::OnDelete,
        paused: deployment.spec.paused == Some(true) || deployment.metadata.annotation(PAUSED).is_some(),
        refused: settings::immovable(deployment),
        ..Rollout::default()
    };
    let mut staying: Vec<Arc<Machine>> = Vec::new();
    for set in &seen.sets {
        let machines = seen
            .machines_of(set)
            .iter()
            .filter(|machine| !machine.metadata.is_deleting());
        if is_new(set) {
            staying.extend(machines.cloned());
            continue;
        }
        let mut reasons = templates::differences(&set.spec.template, &deployment.spec.template);
        if reasons.is_empty() {
            reasons.push("MachineDeployment spec.rolloutAfter expired".to_owned());
        }
        out.outdated.extend(machines.map(|machine| Outdated {
            name: machine.metadata.name().to_owned(),
            reasons: reasons.clone(),
        }));
    }
    let total = len_i32(staying.len() + out.outdated.len());
    out.added = (out.replicas - total).max(0);
    let surplus = usize::try_from(total - out.replicas).unwrap_or_default();
    if surplus > 0
        && let Some(new) = new
    {
        let going = in_deletion_order(new, &staying).into_iter().take(surplus);
        out.removed = going.map(|machine| machine.metadata.name().to_owned()).collect();
    }
    staying.retain(|machine| !out.removed.iter().any(|name| name == machine.metadata.name()));
    out.kept = staying
        .iter()
        .map(|machine| machine.metadata.name().to_owned())
        .collect();
    let world = plan::world(&seen, new, "");
    let may_be_updated = !out.paused && !out.on_delete && !in_place::candidates(&seen, new, &world, now).is_empty();
    if may_be_updated {
        let handlers = extensions
            .handlers::<CanUpdateMachineSet>(deployment.metadata.namespace())
            .await;
        let named = handlers.iter().flatten().map(|handler| handler.name().to_owned());
        out.in_place = named.collect();
    }
    out.outdated.sort_by(|a, b| a.name.cmp(&b.name));
    out.kept.sort_unstable();
    out
}
