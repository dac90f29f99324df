//! What to do about a MachinePool: pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Map, Value, json};
use windlass_api::core::{Machine, MachinePool};
use windlass_api::k8s::Node;
use windlass_api::meta::MetaExt as _;
use windlass_api::{labels, reasons};
use windlass_cluster_cache::Workload;
use windlass_contract::infra_machine;
use windlass_controller_runtime::{Blocked, Dynamic, EventType, Moment, Note, Seen, Until, owner};

use super::observe::Observed;
use super::{desired, facts};
use crate::shared::guards;
use crate::shared::machines::controller;
use crate::shared::owners;
use crate::shared::read::{self, Referenced};

/// When to look again while no attempt to connect to the workload cluster has ended: no event says that the first one failed.
const UNTRIED: Duration = Duration::from_secs(30);
/// Why no Machine is made: another one has its name.
pub(super) const NAME_TAKEN: &str = "NameTaken";
/// When to look again whether the name of a machine is free.
const TAKEN: Duration = Duration::from_mins(1);
/// How many Machines one reconcile makes at most. Their events wake the pool for the next ones.
const AT_ONCE: usize = 50;
/// How many names a message has before it counts the rest.
const NAMED: usize = 3;

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    /// Make the pool one of its Cluster: the label, and the owner once there is one.
    Join(Option<OwnerReference>),
    /// Become the controller of an object that the pool references, labelled with the Cluster's name.
    Own(External),
    /// Bring the uid up to date in references to the pool on an object that it references.
    RenewOwner(External),
    /// The same on a Machine.
    RenewMachineOwner(Arc<Machine>),
    /// Take over what bootstrap configuration and infrastructure report, as the parts of the spec that this controller writes.
    TakeOver(Value),
    /// Apply the Machine of a host.
    ApplyMachine {
        /// The desired Machine.
        machine: Box<Machine>,
        /// Whether there is none yet.
        is_new: bool,
    },
    /// Patch a Node.
    PatchNode {
        /// The Node's name.
        name: String,
        /// The merge patch.
        patch: Value,
    },
    /// Delete a Node.
    DeleteNode {
        /// The Node's name.
        name: String,
        /// Its uid: a Node that was registered again is another one.
        uid: Option<String>,
        /// Whether the plan goes no further until this succeeds.
        required: bool,
    },
    /// Delete an object that the pool references.
    Delete(External),
    /// Let the pool go.
    RemoveFinalizer,
}

/// An object that a MachinePool references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum External {
    /// `spec.template.spec.bootstrap.configRef`
    Bootstrap,
    /// `spec.template.spec.infrastructureRef`
    Infrastructure,
}

/// How far the deletion is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Deleting {
    /// The condition's reason.
    pub(crate) reason: &'static str,
    /// The condition's message.
    pub(crate) message: String,
}

/// The decision about one MachinePool.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Plan {
    /// Writes, in order.
    pub(crate) actions: Vec<Action>,
    /// Why.
    pub(crate) notes: Vec<Note>,
    /// How far the deletion is.
    pub(crate) deleting: Option<Deleting>,
    /// When to look again although nothing happens.
    pub(crate) requeue: Option<Duration>,
    /// What keeps the plan from going further.
    pub(crate) blocked: Option<Blocked>,
}

impl Plan {
    fn note(&mut self, message: impl Into<String>) {
        self.notes.push(Note::new(message));
    }
}

/// Decides.
pub(crate) fn plan(seen: &Observed, now: &Moment) -> Plan {
    let mut plan = Plan::default();
    if let Some(why) = guards::moved(&seen.pool.metadata, &seen.pool.spec.cluster_name) {
        if seen.deleting() {
            plan.deleting = Some(Deleting {
                reason: reasons::INTERNAL_ERROR,
                message: why.clone(),
            });
        }
        plan.blocked = Some(guards::blocked(&why));
        return plan;
    }
    if seen.deleting() {
        delete(seen, now, &mut plan);
        if !plan.actions.contains(&Action::RemoveFinalizer) {
            join(seen, &mut plan);
        }
        return plan;
    }
    join(seen, &mut plan);
    for (which, object) in externals(seen) {
        own(seen, which, object, &mut plan);
    }
    take_over(seen, &mut plan);
    machines(seen, &mut plan);
    nodes(seen, &mut plan);
    obstacle(seen, &mut plan);
    if matches!(seen.nodes, Workload::NotTried(_)) && !seen.pool.spec.provider_id_list.is_empty() {
        plan.requeue = Some(UNTRIED);
    }
    plan
}

/// The referenced objects and what was seen of them.
fn externals(seen: &Observed) -> impl Iterator<Item = (External, &Seen<Referenced>)> {
    let bootstrap = seen.bootstrap.as_ref().map(|object| (External::Bootstrap, object));
    bootstrap
        .into_iter()
        .chain([(External::Infrastructure, &seen.infrastructure)])
}

/// Gives the pool the label and the owner that it lacks.
fn join(seen: &Observed, plan: &mut Plan) {
    let metadata = &seen.pool.metadata;
    let is_labelled = metadata.label(labels::CLUSTER_NAME) == Some(seen.pool.spec.cluster_name.as_str());
    let owner = seen.cluster.found().map(|cluster| owner::owner_ref(&**cluster));
    let has = |owner: &OwnerReference| {
        let mut all = metadata.owner_references.iter().flatten();
        all.any(|have| have.uid == owner.uid && have.api_version == owner.api_version)
    };
    if !is_labelled || owner.as_ref().is_some_and(|owner| !has(owner)) {
        plan.note(format!("the pool joins Cluster {}", seen.pool.spec.cluster_name));
        plan.actions.push(Action::Join(owner));
    }
}

/// Becomes the controller of a referenced object that is there to stay.
fn own(seen: &Observed, which: External, object: &Seen<Referenced>, plan: &mut Plan) {
    let Some(object) = object.found().filter(|object| !object.is_deleting()) else {
        return;
    };
    let want = owner::controller_ref(&*seen.pool);
    if owners::is_stale(object.metadata(), &want) {
        plan.note(format!(
            "{} {} names an earlier MachinePool of this name as its owner",
            object.kind(),
            object.name()
        ));
        plan.actions.push(Action::RenewOwner(which));
    }
    let is_owned = owner::controller_of(object.metadata())
        .is_some_and(|have| have.uid == want.uid && have.api_version == want.api_version);
    let is_labelled = object.label(labels::CLUSTER_NAME) == Some(seen.pool.spec.cluster_name.as_str());
    if !is_owned || !is_labelled {
        plan.note(format!(
            "{} {} gets this MachinePool as its controller",
            object.kind(),
            object.name()
        ));
        plan.actions.push(Action::Own(which));
    }
}

/// Takes over the data Secret and the provider IDs. Both are named each time: they belong to one field manager, and what it leaves out goes
/// away.
fn take_over(seen: &Observed, plan: &mut Plan) {
    let have = &seen.pool.spec;
    let (data_secret, ids) = (facts::data_secret_name(seen), facts::provider_ids(seen));
    if data_secret == have.template.spec.bootstrap.data_secret_name && ids == have.provider_id_list {
        return;
    }
    if ids != have.provider_id_list {
        let counts = (have.provider_id_list.len(), ids.len());
        plan.note(format!("the machines change from {} to {}", counts.0, counts.1));
    }
    let mut spec = Map::new();
    if seen.bootstrap.is_some()
        && let Some(name) = data_secret
    {
        let template = json!({ "spec": { "bootstrap": { "dataSecretName": name } } });
        spec.insert("template".to_owned(), template);
    }
    spec.insert("providerIDList".to_owned(), json!(ids));
    plan.actions.push(Action::TakeOver(Value::Object(spec)));
}

/// Keeps a Machine for each host. A host that is going gets none, and one whose name another Machine has waits for that name.
fn machines(seen: &Observed, plan: &mut Plan) {
    if seen.infrastructure.found().is_none_or(|object| object.is_deleting()) {
        return;
    }
    let Some(Seen::Found(hosts)) = &seen.hosts else { return };
    let want = owner::controller_ref(&*seen.pool);
    let by_host: BTreeMap<&str, &Arc<Machine>> = seen
        .machines
        .iter()
        .map(|machine| (machine.spec.infrastructure_ref.name.as_str(), machine))
        .collect();
    let by_name: BTreeMap<&str, &Arc<Machine>> = seen
        .machines
        .iter()
        .map(|machine| (machine.metadata.name(), machine))
        .collect();
    let nodes = facts::nodes_by_id(seen).unwrap_or_default();
    let (mut taken, mut new) = (Vec::new(), 0);
    for host in hosts {
        let existing = by_host.get(host.name()).or_else(|| by_name.get(host.name())).copied();
        if existing.is_some_and(|machine| is_foreign(machine, &seen.pool, host)) {
            taken.push(host.name());
            continue;
        }
        let is_going = existing.map_or(host.is_deleting(), |machine| machine.metadata.is_deleting());
        if is_going {
            continue;
        }
        if let Some(machine) = existing.filter(|machine| owners::is_stale(&machine.metadata, &want)) {
            plan.note(format!(
                "Machine {} names an earlier MachinePool of this name",
                machine.metadata.name()
            ));
            plan.actions.push(Action::RenewMachineOwner(machine.clone()));
        }
        let node = infra_machine::provider_id(host.value()).and_then(|id| nodes.get(id));
        let node: Option<&Node> = node.map(|node| &***node);
        let desired = desired::machine(&seen.pool, host, existing.map(|machine| &**machine), node);
        if existing.is_none() {
            new += 1;
            if new > AT_ONCE {
                continue;
            }
            plan.note(format!("{} {} gets a Machine", host.kind(), host.name()));
        }
        plan.actions.push(Action::ApplyMachine {
            machine: Box::new(desired),
            is_new: existing.is_none(),
        });
    }
    if !taken.is_empty() {
        let names = windlass_conditions::listed(&taken, NAMED);
        let message = format!(
            "Machines of other owners have the names of machines of this pool: {names}. Rename or delete those Machines"
        );
        plan.notes
            .push(Note::event(EventType::Warning, "FailedCreate", message.as_str()));
        plan.blocked = Some(Blocked {
            reason: NAME_TAKEN,
            message,
            // Another Machine of the namespace may belong to any Cluster.
            until: Until::After(TAKEN),
        });
    }
}

/// Whether a Machine with the name of a host is another owner's, or another host's.
fn is_foreign(machine: &Machine, pool: &MachinePool, host: &Dynamic) -> bool {
    let reference = &machine.spec.infrastructure_ref;
    let is_of_host = reference.name == host.name() && reference.kind == host.kind();
    let is_ours = |owner: &OwnerReference| owner.uid == pool.metadata.uid() || facts::is_former(owner, pool);
    !is_of_host || controller(&machine.metadata).is_some_and(|owner| !is_ours(owner))
}

/// Deletes the Nodes whose machines are gone, and marks the others. The Nodes of Machines are kept by the controller of Machines.
fn nodes(seen: &Observed, plan: &mut Plan) {
    for node in facts::retired(seen) {
        let name = node.metadata.name().to_owned();
        plan.note(format!(
            "Node {name} is deleted, as its provider ID is no longer listed"
        ));
        plan.actions.push(delete_node(node, true));
    }
    announce_nodes(seen, plan);
    // Whether the provider has objects for single machines is not known while its own object is not seen.
    if facts::has_machines(seen) || seen.infrastructure.found().is_none() {
        return;
    }
    for node in facts::nodes(seen).into_iter().flatten() {
        if desired::is_foreign(node, &seen.pool, &seen.neighbours) {
            plan.note(format!(
                "Node {} has another owner, and is left alone",
                node.metadata.name()
            ));
            continue;
        }
        if let Some(patch) = desired::node_patch(&seen.pool, node) {
            plan.actions.push(Action::PatchNode {
                name: node.metadata.name().to_owned(),
                patch,
            });
        }
    }
}

/// An event when the Nodes of the pool change.
fn announce_nodes(seen: &Observed, plan: &mut Plan) {
    let Some(nodes) = facts::nodes(seen) else { return };
    let status = seen.pool.status.as_ref();
    let before = status.into_iter().flat_map(|status| &status.node_refs);
    let before: BTreeSet<_> = before.map(|reference| (&reference.name, &reference.uid)).collect();
    let is_new = |node: &&&Arc<Node>| !before.contains(&(&node.metadata.name, &node.metadata.uid));
    let new: Vec<&str> = nodes.iter().filter(is_new).map(|node| node.metadata.name()).collect();
    if !new.is_empty() {
        let names = windlass_conditions::listed(&new, NAMED);
        plan.notes.push(Note::fact("SuccessfulSetNodeRefs", names));
    }
}

fn delete_node(node: &Node, required: bool) -> Action {
    Action::DeleteNode {
        name: node.metadata.name().to_owned(),
        uid: node.metadata.uid.clone(),
        required,
    }
}

/// What keeps the pool from being provisioned and needs a person.
fn obstacle(seen: &Observed, plan: &mut Plan) {
    let template = &seen.pool.spec.template.spec;
    if template.bootstrap.config_ref.is_none() && template.bootstrap.data_secret_name.is_none() {
        plan.blocked.get_or_insert_with(|| {
            guards::blocked(
                "neither spec.template.spec.bootstrap.configRef nor spec.template.spec.bootstrap.dataSecretName is set: set one of them",
            )
        });
    }
    let hosts = seen.hosts.as_ref().and_then(Seen::failure);
    let failed = externals(seen).find_map(|(_, object)| object.failure()).or(hosts);
    if let Some(why) = failed {
        plan.blocked.get_or_insert_with(|| Blocked::failed("CannotPlan", why));
    }
}

/// The next step of the deletion: the referenced objects first, then the Nodes.
fn delete(seen: &Observed, now: &Moment, plan: &mut Plan) {
    let waiting: Vec<Deleting> = externals(seen)
        .filter_map(|(which, object)| external(which, object, plan))
        .collect();
    let mut deleting = match waiting.into_iter().next() {
        Some(waiting) => waiting,
        None => release(seen, now, plan),
    };
    if let Some(blocked) = &plan.blocked {
        deleting = Deleting {
            reason: reasons::INTERNAL_ERROR,
            message: blocked.message.clone(),
        };
    }
    plan.note(format!("the deletion is at {}: {}", deleting.reason, deleting.message));
    plan.deleting = Some(deleting);
}

/// Deletes a referenced object, and says what is waited for.
fn external(which: External, object: &Seen<Referenced>, plan: &mut Plan) -> Option<Deleting> {
    let reason = match which {
        External::Bootstrap => reasons::WAITING_FOR_BOOTSTRAP_DELETION,
        External::Infrastructure => reasons::WAITING_FOR_INFRASTRUCTURE_DELETION,
    };
    let message = match object {
        Seen::NotFound => return None,
        Seen::Failed(why) => {
            plan.blocked = Some(Blocked::failed("CannotPlan", why.as_str()));
            why.clone()
        }
        Seen::Found(found) => {
            if !found.is_deleting() {
                plan.actions.push(Action::Delete(which));
            }
            read::waits_for(found)
        }
    };
    Some(Deleting { reason, message })
}

/// Deletes the Nodes that are left, and lets the pool go. Until the time for that is over, the pool waits for a workload cluster that does not
/// answer, and for Nodes that cannot be deleted.
fn release(seen: &Observed, now: &Moment, plan: &mut Plan) -> Deleting {
    let status = seen.pool.status.as_ref();
    let has_nodes = status.is_some_and(|status| !status.node_refs.is_empty());
    let passed = has_passed(seen, now);
    // A process that has just started waits for its first attempt to connect: "not tried yet" is not "not there".
    let waits = !passed || matches!(seen.nodes, Workload::NotTried(_));
    if let (Some(why), true) = (seen.nodes.unknown(), has_nodes && waits)
        && !seen.cluster.is_not_found()
    {
        plan.requeue = Some(UNTRIED);
        return Deleting {
            reason: reasons::DELETING_NODE,
            message: format!("Waiting for the workload cluster to answer, to delete the Nodes of the pool: {why}"),
        };
    }
    for node in facts::named(seen) {
        plan.actions.push(delete_node(node, !passed));
    }
    plan.actions.push(Action::RemoveFinalizer);
    Deleting {
        reason: reasons::DELETION_COMPLETED,
        message: "Deletion completed".to_owned(),
    }
}

/// Whether the time to delete Nodes is over, counted from the beginning of the deletion. 0 means no limit.
fn has_passed(seen: &Observed, now: &Moment) -> bool {
    let deletion = seen.pool.spec.template.spec.deletion.as_ref();
    let seconds = deletion.and_then(|deletion| deletion.node_deletion_timeout_seconds);
    let Some(seconds) = seconds.filter(|seconds| *seconds > 0) else {
        return false;
    };
    let since = seen.pool.metadata.deletion_timestamp.as_ref();
    since.is_some_and(|since| now.elapsed(since.0, SignedDuration::from_secs(i64::from(seconds))))
}

impl windlass_controller_runtime::Plan for Plan {
    fn notes(&self) -> &[Note] {
        &self.notes
    }

    fn requeue(&self) -> Option<Duration> {
        self.requeue
    }

    fn blocked(&self) -> Option<Blocked> {
        self.blocked.clone()
    }
}
