//! Which machines a DevMachinePool has: pure.

use std::sync::Arc;

use serde_json::{Value, json};
use windlass_api::core::{Machine, MachinePool};
use windlass_api::meta::MetaExt as _;
use windlass_api::{annotations as core_annotations, labels, owner};
use windlass_api_ext::annotations;
use windlass_api_ext::infrastructure::{DevMachine, InMemoryMachinePoolBackendSpec};
use windlass_controller_runtime::{Blocked, EventType, Note, Until, owner as owners};
use windlass_meta::{MAX_LABEL_LENGTH, SUFFIX_LENGTH, label_or_hash, truncate_name};

use super::observe::{Host, Observed, is_provisioned, provider_id};

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    /// Make a machine.
    Create(Box<Value>),
    /// Give a machine the labels and the owner that it lost.
    Adopt(Box<Value>),
    /// Delete a machine by its Machine.
    DeleteMachine(Arc<Machine>),
    /// Delete a machine that has no Machine.
    DeleteHost(Arc<DevMachine>),
    /// Write the provider IDs.
    List {
        /// Of the pool.
        pool: String,
        /// Of its machines.
        machines: Vec<String>,
    },
    /// Let the DevMachinePool go.
    RemoveFinalizer,
}

/// The decision about one DevMachinePool.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Plan {
    /// Writes, in order.
    pub(crate) actions: Vec<Action>,
    /// Why.
    pub(crate) notes: Vec<Note>,
    /// What the pool waits for before it makes machines.
    pub(crate) waiting: Option<String>,
    /// What keeps it from making machines.
    pub(crate) blocked: Option<Blocked>,
}

/// Decides.
pub(super) fn plan(seen: &Observed) -> Plan {
    let mut plan = Plan::default();
    if seen.deleting() {
        delete_all(seen, &mut plan);
        return plan;
    }
    let Some(pool) = &seen.pool else {
        return wait(
            plan,
            "Waiting for the MachinePool controller to set the owner reference",
        );
    };
    let spec = seen.object.spec.clone().unwrap_or_default();
    let Some(backend) = spec.backend.and_then(|backend| backend.in_memory) else {
        let message = "spec.backend.inMemory is not set; the in-memory backend is the only one that this provider runs";
        plan.blocked = Some(Blocked {
            reason: "InvalidSpec",
            message: message.to_owned(),
            until: Until::Event,
        });
        return wait(plan, message);
    };
    if pool.spec.template.spec.bootstrap.data_secret_name.is_none() {
        return wait(plan, "Waiting for the bootstrap data of the MachinePool");
    }
    adopt(seen, pool, &mut plan);
    for machine in &seen.dangling {
        let message = format!("Deleted Machine {}, as its DevMachine is gone", machine.metadata.name());
        plan.notes
            .push(Note::event(EventType::Normal, "SuccessfulDelete", message));
        plan.actions.push(Action::DeleteMachine(machine.clone()));
    }
    create(seen, pool, &backend, &mut plan);
    replace(seen, pool, &mut plan);
    list(seen, pool, &mut plan);
    plan
}

fn wait(mut plan: Plan, why: &str) -> Plan {
    plan.notes.push(Note::new(why));
    plan.waiting = Some(why.to_owned());
    plan
}

/// The deletion: Machines first, so that Nodes are drained. A machine without a Machine goes at once, as it will get none.
fn delete_all(seen: &Observed, plan: &mut Plan) {
    for host in &seen.hosts {
        plan.actions.extend(deletion(host, true));
    }
    if seen.hosts.is_empty() {
        plan.actions.push(Action::RemoveFinalizer);
    } else {
        plan.notes.push(Note::new(format!(
            "{} machines of the pool are still to be deleted",
            seen.hosts.len()
        )));
    }
}

/// How a machine is deleted. One that has no Machine yet is about to get one, unless the pool is being deleted.
fn deletion(host: &Host, is_pool_leaving: bool) -> Option<Action> {
    match &host.machine {
        Some(machine) if machine.metadata.is_deleting() => None,
        Some(machine) => Some(Action::DeleteMachine(machine.clone())),
        None if is_pool_leaving && !host.object.metadata.is_deleting() => Some(Action::DeleteHost(host.object.clone())),
        None => None,
    }
}

/// Whether a machine is on its way out.
fn is_going(host: &Host) -> bool {
    let machine = host.machine.as_ref();
    host.object.metadata.is_deleting() || machine.is_some_and(|machine| machine.metadata.is_deleting())
}

/// Whether a machine was made for the version of the pool. Without a version in the pool, every machine was.
fn is_current(host: &Host, pool: &MachinePool) -> bool {
    let want = pool.spec.template.spec.version.as_deref();
    want.is_none() || host.object.metadata.annotation(annotations::MACHINE_POOL_VERSION) == want
}

/// Gives machines what they lost: they are found by labels, and collected by their owner.
fn adopt(seen: &Observed, pool: &MachinePool, plan: &mut Plan) {
    let uid = seen.object.metadata.uid();
    for host in seen.hosts.iter().filter(|host| !is_going(host)) {
        let meta = &host.object.metadata;
        let is_labelled = meta.label(labels::CLUSTER_NAME) == Some(pool.spec.cluster_name.as_str())
            && meta.label(labels::MACHINE_POOL_NAME) == Some(label_or_hash(pool.metadata.name()).as_str());
        if !is_labelled || !owner::is_owned_by(meta, uid) {
            let mut desired = identity(seen, pool, meta.name());
            desired["metadata"]["uid"] = json!(meta.uid);
            plan.actions.push(Action::Adopt(Box::new(desired)));
        }
    }
}

/// Makes the machines that are missing. Those that are being deleted count until they are gone.
fn create(seen: &Observed, pool: &MachinePool, backend: &InMemoryMachinePoolBackendSpec, plan: &mut Plan) {
    let current = seen.hosts.iter().filter(|host| is_current(host, pool)).count();
    let missing = seen.replicas().saturating_sub(current);
    for suffix in seen.suffixes.iter().take(missing) {
        let name = truncate_name(pool.metadata.name(), MAX_LABEL_LENGTH - SUFFIX_LENGTH - 1);
        let name = format!("{name}-{suffix}");
        let mut desired = identity(seen, pool, &name);
        desired["spec"] = json!({ "backend": { "inMemory": backend } });
        if let Some(version) = &pool.spec.template.spec.version {
            desired["metadata"]["annotations"] = json!({ (annotations::MACHINE_POOL_VERSION): version });
        }
        let message = format!("Created DevMachine {name}");
        plan.notes
            .push(Note::event(EventType::Normal, "SuccessfulCreate", message));
        plan.actions.push(Action::Create(Box::new(desired)));
    }
}

/// What makes a DevMachine one of the pool.
fn identity(seen: &Observed, pool: &MachinePool, name: &str) -> Value {
    json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
        "kind": "DevMachine",
        "metadata": {
            "name": name,
            "namespace": seen.object.metadata.namespace,
            "labels": {
                (labels::CLUSTER_NAME): pool.spec.cluster_name,
                (labels::MACHINE_POOL_NAME): label_or_hash(pool.metadata.name()),
            },
            // Its controller will be its Machine.
            "ownerReferences": [owners::owner_ref(&*seen.object)],
        },
    })
}

/// Deletes machines of another version and machines too many. As many as the pool wants stay provisioned.
fn replace(seen: &Observed, pool: &MachinePool, plan: &mut Plan) {
    let mut staying: Vec<&Host> = seen.hosts.iter().filter(|host| !is_going(host)).collect();
    staying.sort_by_key(|host| {
        let meta = &host.object.metadata;
        let machine = host.machine.as_ref();
        let is_marked =
            machine.is_some_and(|machine| machine.metadata.has_annotation(core_annotations::DELETE_MACHINE));
        (
            !is_marked,
            is_provisioned(&host.object),
            meta.created(),
            meta.name().to_owned(),
        )
    });
    let (current, outdated): (Vec<&Host>, Vec<&Host>) = staying.iter().partition(|host| is_current(host, pool));
    let wanted = seen.replicas();
    let provisioned = staying.iter().filter(|host| is_provisioned(&host.object)).count();
    let mut spare = provisioned.saturating_sub(wanted);
    let mut going = Vec::new();
    for host in outdated {
        let is_needed = is_provisioned(&host.object);
        if is_needed && spare == 0 {
            continue;
        }
        spare -= usize::from(is_needed);
        going.push((host, "it has another version than the pool"));
    }
    let excess = current.len().saturating_sub(wanted);
    going.extend(
        current
            .into_iter()
            .take(excess)
            .map(|host| (host, "the pool has too many")),
    );
    for (host, why) in going {
        let Some(action) = deletion(host, false) else { continue };
        let message = format!(
            "Deleted the Machine of DevMachine {}, as {why}",
            host.object.metadata.name()
        );
        plan.notes
            .push(Note::event(EventType::Normal, "SuccessfulDelete", message));
        plan.actions.push(action);
    }
}

/// Keeps the provider IDs, as the contract has them.
fn list(seen: &Observed, pool: &MachinePool, plan: &mut Plan) {
    let machines = provider_ids(seen);
    let name = format!("dev:////{}-dmp-{}", pool.spec.cluster_name, seen.object.metadata.name());
    let spec = seen.object.spec.clone().unwrap_or_default();
    if machines != spec.provider_id_list || spec.provider_id.as_deref() != Some(name.as_str()) {
        plan.actions.push(Action::List { pool: name, machines });
    }
}

/// The provider IDs of the machines, in order.
pub(super) fn provider_ids(seen: &Observed) -> Vec<String> {
    let ids = seen.hosts.iter().filter_map(|host| provider_id(&host.object));
    let mut ids: Vec<String> = ids.map(str::to_owned).collect();
    ids.sort();
    ids
}

impl windlass_controller_runtime::Plan for Plan {
    fn notes(&self) -> &[Note] {
        &self.notes
    }

    fn blocked(&self) -> Option<Blocked> {
        self.blocked.clone()
    }
}
