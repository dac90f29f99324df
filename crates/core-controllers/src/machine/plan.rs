//! What to do about a Machine: pure. Owners and labels on what it references, what it takes over from there, its Node, and the
//! order in which everything goes when it goes.

mod deletion;
mod in_place;
mod node;
mod taints;

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Value, json};
use windlass_api::core::Machine;
use windlass_api::{conditions, labels, reasons};
use windlass_cluster_cache::Workload;
use windlass_controller_runtime::{Blocked, Decision, Dynamic, EventType, Moment, Note, ObjectKey, Seen, owner};

use super::apply::Done;
use super::facts::{control_plane_initialized, data_secret_name, failure_domain, moved, provider_id};
use super::in_place::Question;
use super::observe::Observed;
use crate::shared::guards;
use crate::shared::machines::condition;
use crate::shared::read::Referenced;

pub(crate) use deletion::{Deleting, Progress, Stage};

/// When to look again while no attempt to connect to the workload cluster has ended.
const UNTRIED: Duration = Duration::from_secs(30);

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    /// Make the Machine the controller of an object it references, labelled with the Cluster's name.
    Own(External),
    /// Give the Machine its Cluster's label, and this owner.
    Join(Option<OwnerReference>),
    /// Take these fields over into the Machine's spec.
    TakeOver(Value),
    /// Merge this into the Node.
    PatchNode {
        /// The Node's name.
        name: String,
        /// The merge patch.
        patch: Value,
    },
    /// Keep new Pods away from the Node.
    Cordon(String),
    /// Ask Pods to go.
    Evict {
        /// The Pods.
        pods: Vec<ObjectKey>,
        /// Their grace period in seconds, when not their own.
        grace_period: Option<u32>,
    },
    /// Delete an object that the Machine references.
    Delete {
        /// Which one.
        which: External,
        /// Its kind.
        kind: String,
    },
    /// Delete the Node.
    DeleteNode {
        /// The Node's name.
        name: String,
        /// Its uid: a Node that was registered again is another one.
        uid: Option<String>,
        /// Whether the Machine stays until this succeeds.
        required: bool,
    },
    /// Take the mark of an update in place away from the Machine, or from an object that it references.
    Unmark(Option<External>),
    /// Take the hook of the update in place away from the Machine's pending hooks.
    EndHook,
    /// Let the Machine go.
    RemoveFinalizer,
}

/// An object that a Machine references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum External {
    /// `spec.bootstrap.configRef`
    Bootstrap,
    /// `spec.infrastructureRef`
    Infrastructure,
}

/// How far an update in place is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Updating {
    /// The condition's reason.
    pub(crate) reason: &'static str,
    /// The condition's message.
    pub(crate) message: String,
}

/// The decision about one Machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Plan {
    /// Writes, in order.
    pub(crate) actions: Vec<Action>,
    /// Why.
    pub(crate) notes: Vec<Note>,
    /// How far the deletion is.
    pub(crate) deleting: Option<Deleting>,
    /// How far an update in place is, when there is more to say than that it is under way.
    pub(crate) updating: Option<Updating>,
    /// When to look again although nothing happens.
    pub(crate) requeue: Option<Duration>,
    /// What keeps the deletion, or an update in place, from going further.
    pub(crate) blocked: Option<Blocked>,
}

/// Decides.
pub(crate) fn plan(seen: &Observed, now: &Moment) -> Decision<Plan, Question> {
    let mut plan = Plan::default();
    if seen.deleting() {
        if deletion::plan(seen, now, &mut plan) {
            patch_node(seen, &mut plan);
        }
        if !plan.actions.contains(&Action::RemoveFinalizer) && moved(seen).is_none() {
            join(seen, &mut plan);
        }
        return plan.into();
    }
    if let Some(why) = moved(seen) {
        plan.blocked = Some(guards::blocked(&why));
        return plan.into();
    }
    for (which, object) in externals(seen) {
        if let Seen::Found(object) = object
            && !object.is_deleting()
            && !is_owned(object, seen)
        {
            plan.notes.push(Note::new(format!(
                "{} {} gets this Machine as its controller",
                object.kind(),
                object.name()
            )));
            plan.actions.push(Action::Own(which));
        }
    }
    join(seen, &mut plan);
    if let Some(spec) = take_over(seen) {
        plan.notes
            .push(Note::new(format!("the Machine's spec takes over {spec}")));
        plan.actions.push(Action::TakeOver(spec));
    }
    patch_node(seen, &mut plan);
    if matches!(seen.remote, Workload::NotTried(_)) && reports_on_node(seen) {
        plan.requeue = Some(UNTRIED);
    }
    match in_place::plan(seen, &mut plan) {
        Some(question) => Decision::Ask(question),
        None => plan.into(),
    }
}

/// Makes the Machine one of its Cluster, also while it is being deleted: what the Cluster and its Nodes do wakes it by its label.
fn join(seen: &Observed, plan: &mut Plan) {
    if let Some(join) = membership(seen) {
        plan.notes.push(Note::new(format!(
            "the Machine joins Cluster {}",
            seen.machine.spec.cluster_name
        )));
        plan.actions.push(join);
    }
}

/// Gives the Machine the label and the owner that it lacks. What it got once it keeps: a field manager gives up what it leaves out.
fn membership(seen: &Observed) -> Option<Action> {
    let metadata = &seen.machine.metadata;
    let label = metadata.labels.as_ref().and_then(|all| all.get(labels::CLUSTER_NAME));
    let is_labelled = label == Some(&seen.machine.spec.cluster_name);
    let owner = seen.cluster.found().map(|cluster| owner::owner_ref(&**cluster));
    let has = |owner: &OwnerReference| {
        let mut all = metadata.owner_references.iter().flatten();
        all.any(|have| have.uid == owner.uid && have.api_version == owner.api_version)
    };
    let (is_owned, owner) = match owner {
        Some(owner) if has(&owner) => (true, Some(owner)),
        Some(owner) if is_standalone(&seen.machine) => (false, Some(owner)),
        _ => (true, None),
    };
    (!is_labelled || !is_owned).then_some(Action::Join(owner))
}

/// Whether the Machine belongs to its Cluster alone. One that was made by a MachineSet, MachinePool or control plane says so in a label, also
/// after it lost its owner.
fn is_standalone(machine: &Machine) -> bool {
    let metadata = &machine.metadata;
    let made = [
        labels::MACHINE_SET_NAME,
        labels::MACHINE_POOL_NAME,
        labels::CONTROL_PLANE_NAME,
    ];
    let is_made = metadata
        .labels
        .iter()
        .flatten()
        .any(|(key, _)| made.contains(&key.as_str()));
    let other_cluster = owner::owner_of_kind(metadata, "cluster.x-k8s.io", "Cluster")
        .is_some_and(|owner| owner.name != machine.spec.cluster_name);
    owner::controller_of(metadata).is_none() && !is_made && !other_cluster
}

/// Keeps the Node's metadata and taints. What a deletion does comes before it, and does not depend on it.
fn patch_node(seen: &Observed, plan: &mut Plan) {
    if let Some(remote) = seen.remote.up()
        && !remote.rivals.is_empty()
    {
        let id = super::facts::provider_id(seen).unwrap_or_default();
        let why = format!(
            "unexpectedly found more than one Node matching the providerID {id}: {}",
            remote.rivals.join(", ")
        );
        plan.notes
            .push(Note::event(EventType::Warning, "FailedSetNodeRef", why));
    }
    let Some(node) = seen.node() else { return };
    let name = node.metadata.name.clone().unwrap_or_default();
    let status = seen.machine.status.as_ref();
    if status.is_none_or(|status| status.node_ref.is_none()) {
        plan.notes.push(Note::fact("SuccessfulSetNodeRef", name.as_str()));
    }
    if let Some(patch) = node::patch(seen, node) {
        if node::becomes_interruptible(&patch) {
            let reason = "SuccessfulSetInterruptibleNodeLabel";
            plan.notes.push(Note::event(EventType::Normal, reason, name.as_str()));
        }
        plan.actions.push(Action::PatchNode { name, patch });
    }
}

/// Whether the Machine's conditions still repeat what a connection has shown before. No event says that the first attempt to connect
/// has failed.
fn reports_on_node(seen: &Observed) -> bool {
    let initialized = seen
        .cluster
        .found()
        .and_then(|cluster| control_plane_initialized(cluster));
    initialized.is_some()
        && condition(&seen.machine, conditions::NODE_READY).is_some_and(|have| have.reason != reasons::CONNECTION_DOWN)
}

/// The referenced objects and what was seen of them.
fn externals(seen: &Observed) -> impl Iterator<Item = (External, &Seen<Referenced>)> {
    let bootstrap = seen.bootstrap.as_ref().map(|object| (External::Bootstrap, object));
    bootstrap
        .into_iter()
        .chain([(External::Infrastructure, &seen.infrastructure)])
}

/// Whether the Machine already controls the object and the object carries the Cluster's name.
fn is_owned(object: &Dynamic, seen: &Observed) -> bool {
    let want = owner::controller_ref(&*seen.machine);
    owner::controller_of(object.metadata())
        .is_some_and(|one| one.uid == want.uid && one.api_version == want.api_version)
        && object.label(labels::CLUSTER_NAME) == Some(seen.machine.spec.cluster_name.as_str())
}

/// The fields of the Machine's spec that its bootstrap configuration and infrastructure machine decide. All of them are named each
/// time: they belong to one field manager, and what it leaves out goes away.
fn take_over(seen: &Observed) -> Option<Value> {
    let machine = &seen.machine.spec;
    let data_secret = data_secret_name(seen);
    let provider_id = provider_id(seen);
    let failure_domain = failure_domain(seen);
    let stays = failure_domain.is_none() || failure_domain == machine.failure_domain;
    if data_secret == machine.bootstrap.data_secret_name && provider_id == machine.provider_id && stays {
        return None;
    }
    let mut spec = serde_json::Map::new();
    if seen.bootstrap.is_some()
        && let Some(name) = data_secret
    {
        spec.insert("bootstrap".to_owned(), json!({ "dataSecretName": name }));
    }
    if let Some(id) = provider_id {
        spec.insert("providerID".to_owned(), json!(id));
    }
    if let Some(domain) = failure_domain {
        spec.insert("failureDomain".to_owned(), json!(domain));
    }
    Some(Value::Object(spec))
}

/// Whether the Machine carries an annotation.
fn annotated(seen: &Observed, key: &str) -> bool {
    seen.machine
        .metadata
        .annotations
        .as_ref()
        .is_some_and(|all| all.contains_key(key))
}

/// The hooks of a stage: annotations whose key starts with its prefix.
fn hooks(seen: &Observed, prefix: &str) -> Vec<String> {
    let all = seen.machine.metadata.annotations.iter().flatten();
    all.filter(|(key, _)| key.starts_with(prefix))
        .map(|(key, _)| key.clone())
        .collect()
}

impl Plan {
    /// The same after its writes: what they did is part of what the status says of a deletion.
    pub(crate) fn after(&self, done: &Done) -> Self {
        Self {
            deleting: self.deleting.as_ref().map(|deleting| deleting.after(done)),
            ..self.clone()
        }
    }
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
