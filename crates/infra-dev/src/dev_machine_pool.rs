//! The DevMachinePool controller: the machines of a MachinePool, with the in-memory backend.
//!
//! Each machine is a DevMachine, which the DevMachine controller simulates once the MachinePool controller has made a Machine for it.
//! Machines of another version than the pool's are replaced: new ones come first, and an old one goes when as many are provisioned as the
//! pool wants. A machine goes by the deletion of its Machine, so that its Node is drained. Machines with the annotation
//! `cluster.x-k8s.io/delete-machine` go first.
//!
//! The contract is that of Cluster API v1.14: `spec.providerIDList`, `status.replicas`, `status.ready` and
//! `status.infrastructureMachineKind`.

mod apply;
mod observe;
mod plan;
mod status;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::Value;
use windlass_api::core::{Machine, MachinePool};
use windlass_api::kind::ApiKind as _;
use windlass_api::meta::MetaExt as _;
use windlass_api::owner;
use windlass_api_ext::finalizers;
use windlass_api_ext::infrastructure::{DevMachine, DevMachinePool};
use windlass_controller_runtime::{
    Controller, ControllerEntry, Cx, Decision, Moment, NoQuestion, ObjectKey, Part as _, Watch,
};

use apply::Done;
use observe::Observed;
use plan::{Action, Plan};

/// Reconciles DevMachinePools.
#[derive(Debug)]
struct DevMachinePools;

/// The controller, to run.
pub fn entry() -> ControllerEntry {
    ControllerEntry::of(DevMachinePools)
}

impl Controller for DevMachinePools {
    type Kind = DevMachinePool;
    type Observed = Observed;
    type Question = NoQuestion;
    type Plan = Plan;
    type Done = Done;
    const NAME: &'static str = "devmachinepool";
    const MANAGER: &'static str = crate::dev_machine::MANAGER;
    const STATUS_MANAGER: &'static str = "capd-manager-status";
    const FINALIZER: Option<&'static str> = Some(finalizers::DEV_MACHINE_POOL);

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::map::<MachinePool>(|_, old, new| new.or(old).and_then(of_pool).into_iter().collect()),
            Watch::map::<DevMachine>(host_changed),
            Watch::map::<Machine>(machine_changed),
        ]
    }

    async fn observe(&self, cx: &Cx, object: Arc<DevMachinePool>) -> Observed {
        observe::observe(cx, object)
    }

    fn plan(&self, seen: &Observed, _: &Moment) -> Decision<Plan, NoQuestion> {
        plan::plan(seen).into()
    }

    async fn apply(&self, cx: &Cx, seen: &Observed, plan: &Plan) -> Done {
        apply::apply(cx, seen, plan).await
    }

    fn status(&self, seen: &Observed, plan: &Plan, done: &Done, now: &Moment) -> Option<Value> {
        let released = plan.actions.contains(&Action::RemoveFinalizer) && done.failed.is_none();
        (!released).then(|| status::status(seen, plan, done, now.now()).to_json())
    }
}

/// The DevMachinePool that a MachinePool references.
fn of_pool(pool: &MachinePool) -> Option<ObjectKey> {
    let reference = &pool.spec.template.spec.infrastructure_ref;
    let is_ours = reference.kind == DevMachinePool::KIND && reference.api_group == DevMachinePool::GROUP;
    is_ours.then(|| ObjectKey::new(pool.metadata.namespace(), reference.name.as_str()))
}

/// Machines come, go, become provisioned and learn their provider IDs.
fn host_changed(_: &Cx, old: Option<&DevMachine>, new: Option<&DevMachine>) -> Vec<ObjectKey> {
    let facts = |host: &DevMachine| {
        (
            observe::is_provisioned(host),
            observe::provider_id(host).map(str::to_owned),
            host.metadata.is_deleting(),
            host.metadata.labels.clone(),
            host.metadata.owner_references.clone(),
        )
    };
    if let (Some(old), Some(new)) = (old, new)
        && facts(old) == facts(new)
    {
        return Vec::new();
    }
    let owners = [old, new].into_iter().flatten().filter_map(|host| {
        let owner = owner::owner_of_kind(&host.metadata, DevMachinePool::GROUP, DevMachinePool::KIND)?;
        Some(ObjectKey::new(host.metadata.namespace(), owner.name.as_str()))
    });
    owners.collect()
}

/// A Machine that is being deleted, or is to be deleted first.
fn machine_changed(cx: &Cx, old: Option<&Machine>, new: Option<&Machine>) -> Vec<ObjectKey> {
    let facts = |machine: &Machine| {
        let first = windlass_api::annotations::DELETE_MACHINE;
        (machine.metadata.is_deleting(), machine.metadata.has_annotation(first))
    };
    if let (Some(old), Some(new)) = (old, new)
        && facts(old) == facts(new)
    {
        return Vec::new();
    }
    let pool = new.or(old).and_then(|machine| {
        let owner = owner::owner_of_kind(&machine.metadata, MachinePool::GROUP, MachinePool::KIND)?;
        let key = ObjectKey::new(machine.metadata.namespace(), owner.name.as_str());
        cx.cache::<MachinePool>().get(&key)
    });
    pool.and_then(|pool| of_pool(&pool)).into_iter().collect()
}
