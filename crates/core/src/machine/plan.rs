//! What to do about a Machine: pure. Owners and labels on what it references, what it takes over from there, its Node, and the
//! order in which everything goes when it goes.

mod deletion;
mod node;

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_api::meta::MetaExt as _;
use windlass_api::owner;
use windlass_contract::{bootstrap, infra_machine};
use windlass_kit::{Dynamic, Seen};

use super::drain::Draining;
use super::observe::Observed;
use crate::shared::read::Referenced;

pub(crate) use deletion::{Deleting, Stage};

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    /// Make the Machine the controller of an object it references, labelled with the Cluster's name.
    Own(External),
    /// Take these fields over into the Machine's spec.
    TakeOver(Value),
    /// Merge this into the Node.
    PatchNode {
        /// The Node's name.
        name: String,
        /// The merge patch.
        patch: Value,
    },
    /// Say that the Machine has become that Node.
    AnnounceNode(String),
    /// Keep new Pods away from the Node.
    Cordon(String),
    /// Ask Pods to go.
    Evict(Vec<(String, String)>),
    /// Delete an object that the Machine references.
    Delete(External),
    /// Delete the Node.
    DeleteNode(String),
    /// Say something about a step of the deletion.
    Announce {
        /// The event's reason.
        reason: &'static str,
        /// The event's text.
        message: String,
    },
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

/// The decision about one Machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Plan {
    /// Writes, in order.
    pub(crate) actions: Vec<Action>,
    /// Why, in words.
    pub(crate) notes: Vec<String>,
    /// How far the deletion is.
    pub(crate) deleting: Option<Deleting>,
    /// When to look again although nothing happens.
    pub(crate) requeue: Option<Duration>,
}

/// Decides.
pub(crate) fn plan(seen: &Observed, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    if seen.deleting() {
        deletion::plan(seen, now, &mut plan);
        return plan;
    }
    for (which, object) in externals(seen) {
        if let Seen::Found(object) = object
            && !object.is_deleting()
            && !is_owned(object, seen)
        {
            plan.notes.push(format!(
                "{} {} gets this Machine as its controller",
                object.kind(),
                object.name()
            ));
            plan.actions.push(Action::Own(which));
        }
    }
    if let Some(spec) = take_over(seen) {
        plan.notes.push(format!("taking over {spec}"));
        plan.actions.push(Action::TakeOver(spec));
    }
    if let Seen::Found(node) = &seen.remote.node {
        let name = node.metadata.name.clone().unwrap_or_default();
        if let Some(patch) = node::patch(seen, node) {
            plan.actions.push(Action::PatchNode {
                name: name.clone(),
                patch,
            });
        }
        if seen
            .machine
            .status
            .as_ref()
            .is_none_or(|status| status.node_ref.is_none())
        {
            plan.actions.push(Action::AnnounceNode(name));
        }
    }
    plan.requeue = until_available(seen, now);
    plan
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
    owner::is_controlled_by(object.metadata(), seen.machine.metadata.uid())
        && object.label(windlass_api::labels::CLUSTER_NAME) == Some(seen.machine.spec.cluster_name.as_str())
}

/// The fields of the Machine's spec that its bootstrap configuration and infrastructure machine decide. All of them are named each
/// time: they belong to one field manager, and what it leaves out goes away.
fn take_over(seen: &Observed) -> Option<Value> {
    let machine = &seen.machine.spec;
    let data_secret = data_secret_name(seen);
    let provider_id = provider_id(seen);
    if data_secret == machine.bootstrap.data_secret_name && provider_id == machine.provider_id {
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
    Some(Value::Object(spec))
}

/// The name of the Secret with the bootstrap data, once there is one.
pub(crate) fn data_secret_name(seen: &Observed) -> Option<String> {
    let own = seen.machine.spec.bootstrap.data_secret_name.clone();
    let object = seen.bootstrap.as_ref().and_then(Seen::found);
    let created = object.filter(|object| bootstrap::data_secret_created(object.value(), object.contract));
    created
        .and_then(|object| bootstrap::data_secret_name(object.value()))
        .map(str::to_owned)
        .or(own)
}

/// Whether the infrastructure machine says, by its contract, that it is provisioned.
pub(crate) fn is_provisioned(infrastructure: &Referenced) -> bool {
    infra_machine::provisioned(infrastructure.value(), infrastructure.contract)
}

/// The provider's name for the machine, once it is provisioned.
pub(crate) fn provider_id(seen: &Observed) -> Option<String> {
    let own = seen.machine.spec.provider_id.clone();
    let provisioned = seen.infrastructure.found().filter(|object| is_provisioned(object));
    provisioned
        .and_then(|object| infra_machine::provider_id(object.value()))
        .map(str::to_owned)
        .or(own)
}

/// How long until a ready Machine counts as available.
fn until_available(seen: &Observed, now: Timestamp) -> Option<Duration> {
    let seconds = seen.machine.spec.min_ready_seconds.filter(|seconds| *seconds > 0)?;
    let conditions = &seen.machine.status.as_ref()?.conditions;
    let ready = windlass_conditions::get(conditions, "Ready").filter(|condition| condition.status == "True")?;
    let due = ready
        .last_transition_time
        .0
        .checked_add(Duration::from_secs(u64::try_from(seconds).unwrap_or_default()))
        .ok()?;
    Duration::try_from(due.duration_since(now))
        .ok()
        .filter(|left| !left.is_zero())
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

/// What draining would do now.
fn draining(seen: &Observed) -> Option<Draining> {
    let node = seen.node()?;
    let ready = node
        .status
        .iter()
        .flat_map(|s| s.conditions.iter().flatten())
        .find(|condition| condition.type_ == "Ready");
    let unreachable = ready.is_some_and(|condition| condition.status == "Unknown");
    Some(super::drain::classify(seen.remote.pods.found()?, unreachable))
}

impl windlass_kit::Plan for Plan {
    fn requeue(&self) -> Option<Duration> {
        self.requeue
    }
}
