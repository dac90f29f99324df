//! What to do about one MachineSet. Pure: everything, names included, is decided here.

mod in_place;
mod preflight;
mod remediate;
mod scale;
mod sync;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use windlass_api::core::Machine;
use windlass_api::meta::MetaExt as _;
use windlass_conditions::Draft;
use windlass_controller_runtime::{Blocked, MetadataChange, Note, Seen, Until};

use crate::machine_set::desired;
use crate::machine_set::observed::Observed;
use crate::shared::guards;
use crate::shared::keys::{finalizers, labels};
use crate::shared::machines::controller;
use crate::shared::numbers::len_i32;

/// What keeps Machines from being made is looked at again after this time: a repair path, as events wake the set earlier.
const BLOCKED_AGAIN: Duration = Duration::from_secs(15);

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Writes the replicas that the set leaves out, so that its scale can be read and written.
    SetReplicas(Box<Value>),
    /// Makes the Cluster an owner of the set, and labels the set with its name: sets of their own only.
    AdoptSet,
    /// Makes the Cluster an owner of a template.
    AdoptTemplate {
        /// apiVersion, kind and name of the template, and the owner to add.
        patch: Box<Value>,
    },
    /// Takes over a Machine without a controller.
    AdoptMachine(Arc<Machine>),
    /// Makes a Machine, then what it refers to.
    CreateMachine(Box<NewMachine>),
    /// Makes an object that a Machine refers to and that is missing because a creation was interrupted.
    Complete {
        /// The whole object.
        object: Box<Value>,
    },
    /// Applies a Machine, in place.
    UpdateMachine(Box<Machine>),
    /// Brings the limits of its deletion to a Machine that is being deleted, and changes nothing else of it.
    ChangeDeletion {
        /// The Machine.
        machine: Arc<Machine>,
        /// The merge patch.
        patch: Box<Value>,
    },
    /// Applies labels and annotations of an object that a Machine refers to, and takes lost ones away.
    UpdateClone {
        /// apiVersion, kind, namespace, name and uid.
        object: Box<Value>,
        /// What changes.
        change: MetadataChange,
    },
    /// Says on a Machine how far its replacement is.
    SayRemediation {
        /// The Machine.
        machine: Arc<Machine>,
        /// The condition OwnerRemediated; `None` takes it back.
        verdict: Option<Draft>,
    },
    /// Gives a Machine to another MachineSet, where it is updated in place.
    MoveMachine {
        /// The Machine.
        machine: Arc<Machine>,
        /// The merge patch.
        patch: Box<Value>,
    },
    /// Begins the update of a Machine in place.
    BeginUpdate(Box<Beginning>),
    /// Deletes a Machine.
    DeleteMachine(Arc<Machine>),
    /// Lets the set go.
    RemoveFinalizer,
}

impl Action {
    /// Whether it is left out once another action has failed.
    pub(crate) fn waits_for_success(&self) -> bool {
        matches!(self, Self::CreateMachine(_) | Self::RemoveFinalizer)
    }
}

/// A Machine to be made, with what it refers to (still without the Machine as owner).
#[derive(Clone, Debug, PartialEq)]
pub struct NewMachine {
    /// The Machine.
    pub machine: Machine,
    /// The objects that it refers to.
    pub clones: Vec<Value>,
}

/// What an update of a Machine in place begins with, in the order in which it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Beginning {
    /// The Machine as it is.
    pub machine: Arc<Machine>,
    /// The objects that it refers to, as the new template wants them. They come first: a webhook may refuse them.
    pub objects: Vec<Value>,
    /// The Machine as the new template wants it.
    pub desired: Machine,
    /// A merge patch of the Machine: from then on, its controller calls the extension.
    pub patch: Value,
}

/// What keeps missing Machines from being made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// Preflight checks failed.
    Preflight(Vec<String>),
    /// The bootstrap template cannot be cloned.
    Bootstrap(String),
    /// The infrastructure template cannot be cloned.
    Infrastructure(String),
    /// Something could not be read or computed.
    Other(String),
    /// The spec has a value that must not be acted on.
    Refused(String),
}

impl Obstacle {
    /// The obstacle as the driver sees it.
    fn blocked(&self) -> Blocked {
        let (reason, message) = match self {
            Self::Preflight(found) => ("PreflightCheckFailed", found.join("; ")),
            Self::Bootstrap(why) => ("BootstrapTemplateCloningFailed", why.clone()),
            Self::Infrastructure(why) => ("InfrastructureTemplateCloningFailed", why.clone()),
            Self::Other(why) => ("MachineCreationFailed", why.clone()),
            Self::Refused(why) => return guards::blocked(why),
        };
        Blocked {
            reason,
            message,
            until: Until::After(BLOCKED_AGAIN),
        }
    }
}

/// Everything to be done, in order, and why something is not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Writes, in order.
    pub actions: Vec<Action>,
    /// Why.
    pub notes: Vec<Note>,
    /// Why Machines that are missing are not made.
    pub obstacle: Option<Obstacle>,
    /// What keeps the plan from going further.
    pub blocked: Option<Blocked>,
}

/// Decides.
pub(crate) fn plan(seen: &Observed) -> Plan {
    let mut plan = Plan::default();
    if seen.set.metadata.is_deleting() {
        delete(seen, &mut plan);
        return plan;
    }
    if let Some(why) = refused(seen) {
        plan.blocked = Some(guards::blocked(&why));
        plan.obstacle = Some(Obstacle::Refused(why));
        return plan;
    }
    if seen.awaits_replicas() {
        // Its change comes as an event, and everything else follows from the number.
        set_replicas(seen, &mut plan);
        return plan;
    }
    match &seen.cluster {
        Seen::Found(_) => {}
        Seen::NotFound => {
            let name = &seen.set.spec.cluster_name;
            let why = format!("spec.clusterName: Cluster {name} does not exist");
            plan.blocked = Some(Blocked::failed("CannotPlan", why));
            return plan;
        }
        Seen::Failed(why) => {
            plan.blocked = Some(Blocked::failed("CannotPlan", why.as_str()));
            return plan;
        }
    }
    sync::owners(seen, &mut plan);
    sync::machines(seen, &mut plan);
    in_place::begin(seen, &mut plan);
    let checks = preflight::run(seen);
    remediate::remediate(seen, &checks, &mut plan);
    scale::scale(seen, checks, &mut plan);
    if let Some(obstacle) = &plan.obstacle {
        let blocked = obstacle.blocked();
        plan.notes
            .push(Note::new(format!("missing Machines are not made: {}", blocked.message)));
        plan.blocked = Some(blocked);
    }
    plan
}

fn set_replicas(seen: &Observed, plan: &mut Plan) {
    if seen.deployment.is_some() {
        plan.notes
            .push(Note::new("spec.replicas is not set; its MachineDeployment sets it"));
        return;
    }
    let all = seen.machines.iter().chain(&seen.orphans);
    let living = all.filter(|machine| !machine.metadata.is_deleting());
    let before = Some(len_i32(living.count())).filter(|count| *count > 0);
    let replicas = desired::default_replicas(&seen.set.metadata, before);
    let note = format!("spec.replicas is not set and becomes {replicas}");
    plan.notes.push(Note::new(note));
    let patch = desired::replicas_patch(&seen.set.metadata, replicas);
    plan.actions.push(Action::SetReplicas(Box::new(patch)));
}

/// Why the spec must not be acted on: Machines would be lost.
fn refused(seen: &Observed) -> Option<String> {
    let set = &seen.set;
    let of_deployment = seen.deployment.as_ref().and_then(Seen::found);
    of_deployment
        .and_then(|deployment| guards::moved(&deployment.metadata, &set.spec.cluster_name))
        .or_else(|| guards::moved(&set.metadata, &set.spec.cluster_name))
}

fn delete(seen: &Observed, plan: &mut Plan) {
    let finalizer = seen.set.metadata.finalizers.iter().flatten();
    let ours = finalizer.clone().any(|name| name == finalizers::MACHINE_SET);
    for machine in seen.machines.iter().filter(|machine| !machine.metadata.is_deleting()) {
        scale::delete(machine, "the MachineSet is being deleted", plan);
    }
    if seen.machines.is_empty() && ours {
        plan.actions.push(Action::RemoveFinalizer);
    }
}

/// Whether the set stands alone, without a MachineDeployment.
fn is_standalone(seen: &Observed) -> bool {
    controller(&seen.set.metadata).is_none() && seen.set.metadata.label(labels::MACHINE_DEPLOYMENT_NAME).is_none()
}

pub(crate) use desired::replicas as desired_replicas;
pub(crate) use scale::in_deletion_order;

impl windlass_controller_runtime::Plan for Plan {
    fn notes(&self) -> &[Note] {
        &self.notes
    }

    fn blocked(&self) -> Option<Blocked> {
        self.blocked.clone()
    }
}

#[cfg(test)]
mod tests;
