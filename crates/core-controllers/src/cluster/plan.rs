//! What to do about a Cluster: pure. It becomes the owner of its infrastructure cluster and control plane, takes over the endpoint once, and goes in order: workers, control plane, infrastructure.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use windlass_api::core::{APIEndpoint, Machine, MachineDeployment, MachinePool, MachineSet};
use windlass_api::meta::MetaExt as _;
use windlass_api::{conditions, labels, reasons};
use windlass_cluster_cache::Workload;
use windlass_contract::infra_cluster;
use windlass_controller_runtime::{Blocked, Decision, Dynamic, EventType, Note, Seen, owner};
use windlass_pki::Purpose;

use super::facts::{endpoint, is_initialized, phase, usable_infrastructure};
use super::hook::{self, BeforeDelete, Question};
use super::observe::Observed;
use crate::shared::machines::controller;
use crate::shared::owners;
use crate::shared::read::{self, Referenced};

/// When a referenced object that could not be read is read again.
const UNREADABLE_AGAIN: Duration = Duration::from_secs(10);
/// When to look again while no attempt to connect to the workload cluster has ended.
const UNTRIED: Duration = Duration::from_secs(30);
/// How many objects of a kind a message names before it counts the rest.
const NAMED: usize = 3;

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    /// Make the Cluster an owner of an object it references, labelled with its name.
    Own(External),
    /// Bring the uid up to date in references to the Cluster on an object it references.
    RenewOwner(External),
    /// Take the endpoint over.
    SetEndpoint(APIEndpoint),
    /// Make the administrator's kubeconfig for this server.
    WriteKubeconfig(String),
    /// Record that extensions let the Cluster go.
    MarkOkToDelete,
    /// Delete an object that the Cluster references.
    DeleteExternal(External),
    /// Delete one of its descendants.
    Delete(Descendant),
    /// Let the Cluster go.
    RemoveFinalizer,
}

/// An object that a Cluster references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum External {
    /// `spec.infrastructureRef`
    Infrastructure,
    /// `spec.controlPlaneRef`
    ControlPlane,
}

/// A descendant that the Cluster deletes itself.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Descendant {
    /// MachineDeployment
    Deployment(Arc<MachineDeployment>),
    /// MachinePool
    Pool(Arc<MachinePool>),
    /// MachineSet
    Set(Arc<MachineSet>),
    /// Machine
    Machine(Arc<Machine>),
}

impl Descendant {
    fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::Deployment(object) => &object.metadata,
            Self::Pool(object) => &object.metadata,
            Self::Set(object) => &object.metadata,
            Self::Machine(object) => &object.metadata,
        }
    }
}

/// How far the deletion is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Deleting {
    /// The condition's reason.
    pub(crate) reason: &'static str,
    /// The condition's message.
    pub(crate) message: String,
}

/// The decision about one Cluster.
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
    /// The obstacle.
    pub(crate) blocked: Option<Blocked>,
}

/// Decides.
pub(crate) fn plan(seen: &Observed) -> Decision<Plan, Question> {
    let mut plan = Plan::default();
    if seen.deleting() {
        if hook::concerns(&seen.cluster) && !is_agreed(seen, &mut plan) {
            if seen.before_delete.is_none() {
                return Decision::Ask(Question::BeforeDelete);
            }
        } else {
            delete(seen, &mut plan);
        }
        announce_phase(seen, &mut plan);
        read_again(seen, &mut plan);
        return plan.into();
    }
    for (which, object) in [
        (External::Infrastructure, seen.infrastructure()),
        (External::ControlPlane, seen.control_plane()),
    ] {
        let Some(object) = object.filter(|object| !object.is_deleting()) else {
            continue;
        };
        if owners::is_stale(object.metadata(), &owner::owner_ref(&*seen.cluster)) {
            plan.notes.push(Note::new(format!(
                "{} {} names an earlier Cluster of this name as its owner",
                object.kind(),
                object.name()
            )));
            plan.actions.push(Action::RenewOwner(which));
        }
        if !is_owned(object, seen) {
            plan.notes.push(Note::new(format!(
                "{} {} gets this Cluster as its {}",
                object.kind(),
                object.name(),
                if seen.controls() { "controller" } else { "owner" }
            )));
            plan.actions.push(Action::Own(which));
        }
    }
    let (endpoint, taken) = endpoint(seen);
    if taken && let Some(endpoint) = endpoint {
        plan.notes.push(Note::new(format!(
            "the Cluster takes over the control plane endpoint {}",
            address(&endpoint)
        )));
        plan.actions.push(Action::SetEndpoint(endpoint));
    } else if let (Some(own), Some(object)) = (endpoint, seen.infrastructure())
        && let Some(other) = infra_cluster::endpoint(object.value()).filter(|other| *other != own)
    {
        plan.notes.push(Note::new(format!(
            "{} {} has another control plane endpoint by now ({}); the Cluster keeps its own",
            object.kind(),
            object.name(),
            address(&other)
        )));
    }
    kubeconfig(seen, &mut plan);
    announce(seen, &mut plan);
    announce_phase(seen, &mut plan);
    if matches!(seen.probe, Workload::NotTried(_)) && reports_a_connection(seen) {
        plan.requeue = Some(UNTRIED);
    }
    read_again(seen, &mut plan);
    plan.into()
}

/// A kind that comes is an event. But an object that could not be read for another reason may not be there at all, and then no event
/// ever comes about it.
fn read_again(seen: &Observed, plan: &mut Plan) {
    let objects = [&seen.infrastructure, &seen.control_plane];
    if objects.into_iter().flatten().any(|object| object.failure().is_some()) {
        let next = plan.requeue.map_or(UNREADABLE_AGAIN, |next| next.min(UNREADABLE_AGAIN));
        plan.requeue = Some(next);
    }
}

/// Makes the kubeconfig of a Cluster whose control plane has no object that does it. One that is there stays as it is.
fn kubeconfig(seen: &Observed, plan: &mut Plan) {
    let (Some(credentials), Some(endpoint)) = (&seen.credentials, endpoint(seen).0) else {
        return;
    };
    if credentials.kubeconfig {
        return;
    }
    let name = seen.cluster.metadata.name.as_deref().unwrap_or_default();
    let authority = Purpose::ClusterCa.secret_name(name);
    let lack = match &credentials.authority {
        Seen::Found(material) if !material.key.is_empty() => None,
        Seen::Found(_) => Some(format!("Secret {authority} has no private key: a user has to bring it")),
        Seen::NotFound => Some(format!("it waits for Secret {authority}")),
        Seen::Failed(why) => Some(why.clone()),
    };
    match lack {
        None => plan
            .actions
            .push(Action::WriteKubeconfig(format!("https://{}", address(&endpoint)))),
        // A change of the Secret wakes the Cluster.
        Some(why) => plan.notes.push(Note::new(format!(
            "Secret {} is not made: {why}",
            Purpose::Kubeconfig.secret_name(name)
        ))),
    }
}

fn address(endpoint: &APIEndpoint) -> String {
    let host = endpoint.host.as_deref().unwrap_or_default();
    if host.contains(':') && !host.starts_with('[') {
        return format!("[{host}]:{}", endpoint.port.unwrap_or_default());
    }
    format!("{host}:{}", endpoint.port.unwrap_or_default())
}

/// Whether the Cluster's condition RemoteConnectionProbe still repeats what an earlier process has seen. No event says that the first
/// attempt to connect has failed.
fn reports_a_connection(seen: &Observed) -> bool {
    let status = seen.cluster.status.as_ref();
    status.is_some_and(|status| windlass_conditions::is_true(&status.conditions, conditions::REMOTE_CONNECTION_PROBE))
}

/// Whether the object names the Cluster as its owner, in the role and version that it has now, and carries its name.
fn is_owned(object: &Dynamic, seen: &Observed) -> bool {
    let want = owner::owner_ref(&*seen.cluster);
    let is_named = |have: &OwnerReference| {
        have.uid == want.uid
            && have.api_version == want.api_version
            && (have.controller == Some(true)) == seen.controls()
    };
    object.metadata().owner_references.iter().flatten().any(is_named)
        && object.label(labels::CLUSTER_NAME) == seen.cluster.metadata.name.as_deref()
}

/// An event when a phase begins whose status is written at once. Earlier ones may be over before they are written, and would
/// be repeated by each attempt until then.
fn announce_phase(seen: &Observed, plan: &mut Plan) {
    let phase = phase(seen);
    let before = seen.cluster.status.as_ref().and_then(|status| status.phase.as_deref());
    if matches!(phase, "Provisioned" | "Deleting") && before != Some(phase) {
        let name = seen.cluster.metadata.name.as_deref().unwrap_or_default();
        let message = format!("Cluster {name} is {phase}");
        plan.notes.push(Note::fact(phase, message));
    }
}

/// Events of what changes now.
fn announce(seen: &Observed, plan: &mut Plan) {
    let name = seen.cluster.metadata.name.as_deref().unwrap_or_default();
    let before = seen.cluster.status.clone().unwrap_or_default();
    let done = before.initialization.unwrap_or_default();
    let mut say = |reason, message: String| plan.notes.push(Note::fact(reason, message));
    if done.infrastructure_provisioned != Some(true) && usable_infrastructure(seen).is_some() {
        say(
            "InfrastructureReady",
            format!("Cluster {name} InfrastructureProvisioned is now True"),
        );
    }
    if done.control_plane_initialized != Some(true) && seen.control_plane().is_some_and(is_initialized) {
        say(
            "ControlPlaneInitialized",
            format!("Cluster {name} ControlPlaneInitialized is now True"),
        );
    }
}

/// Whether extensions let the Cluster go. It says so in the condition if they do not, and records that they do.
fn is_agreed(seen: &Observed, plan: &mut Plan) -> bool {
    let why = match &seen.before_delete {
        None => return false,
        Some(BeforeDelete::Unserved) => return true,
        Some(BeforeDelete::Agreed) => {
            plan.notes.push(Note::new("all extensions agree to the deletion"));
            plan.actions.push(Action::MarkOkToDelete);
            return true;
        }
        Some(BeforeDelete::Blocked(seconds, why)) => {
            plan.requeue = Some(Duration::from_secs(u64::try_from(*seconds).unwrap_or_default()));
            why
        }
        Some(BeforeDelete::Failed(why)) => {
            plan.blocked = Some(Blocked::failed("HookFailed", why.as_str()));
            why
        }
    };
    let colon = if why.is_empty() { "" } else { ": " };
    let message = format!("Waiting for BeforeClusterDelete hook{colon}{why}");
    plan.notes.push(Note::new(message.clone()));
    plan.deleting = Some(Deleting {
        reason: reasons::WAITING_FOR_BEFORE_DELETE_HOOK,
        message,
    });
    false
}

/// The next step of the deletion: each stage waits until nothing of it is left.
fn delete(seen: &Observed, plan: &mut Plan) {
    let deleting = workers(seen, plan)
        .or_else(|| {
            let reason = reasons::WAITING_FOR_CONTROL_PLANE_DELETION;
            external(seen.control_plane.as_ref()?, External::ControlPlane, reason, plan)
        })
        .or_else(|| standalone_control_plane(seen, plan))
        .or_else(|| {
            let reason = reasons::WAITING_FOR_INFRASTRUCTURE_DELETION;
            external(seen.infrastructure.as_ref()?, External::Infrastructure, reason, plan)
        })
        .unwrap_or_else(|| {
            let name = seen.cluster.metadata.name.as_deref().unwrap_or_default();
            let message = format!("Cluster {name} has been deleted");
            plan.notes.push(Note::event(EventType::Normal, "Deleted", message));
            plan.actions.push(Action::RemoveFinalizer);
            Deleting {
                reason: reasons::DELETION_COMPLETED,
                message: "Deletion completed".to_owned(),
            }
        });
    let note = format!(
        "the deletion is at {}: {}",
        deleting.reason,
        deleting.message.replace('\n', " ")
    );
    plan.notes.push(Note::new(note));
    plan.deleting = Some(deleting);
}

fn workers(seen: &Observed, plan: &mut Plan) -> Option<Deleting> {
    let mut lines = Vec::new();
    for (what, objects) in [
        (
            "MachineDeployments",
            descendants(&seen.deployments, Descendant::Deployment),
        ),
        ("MachineSets", descendants(&seen.sets, Descendant::Set)),
        ("MachinePools", descendants(&seen.pools, Descendant::Pool)),
        (
            "Worker Machines",
            descendants(&seen.worker_machines, Descendant::Machine),
        ),
    ] {
        if !objects.is_empty() {
            lines.push(format!("* {what}: {}", named(&objects)));
        }
        delete_own(seen, objects, plan);
    }
    (!lines.is_empty()).then(|| Deleting {
        reason: reasons::WAITING_FOR_WORKERS_DELETION,
        message: lines.join("\n"),
    })
}

/// Control plane Machines without a control plane object go after the workers.
fn standalone_control_plane(seen: &Observed, plan: &mut Plan) -> Option<Deleting> {
    let machines = descendants(&seen.control_plane_machines, Descendant::Machine);
    let message = format!("* Control plane Machines: {}", named(&machines));
    let deleting = (!machines.is_empty()).then_some(Deleting {
        reason: reasons::WAITING_FOR_CONTROL_PLANE_DELETION,
        message,
    });
    delete_own(seen, machines, plan);
    deleting
}

fn descendants<K>(objects: &[Arc<K>], descendant: fn(Arc<K>) -> Descendant) -> Vec<Descendant> {
    objects.iter().cloned().map(descendant).collect()
}

/// Deletes those that belong to the Cluster itself, and those that have lost their owner; the others' owners delete them.
fn delete_own(seen: &Observed, objects: Vec<Descendant>, plan: &mut Plan) {
    let own = objects.into_iter().filter(|object| {
        let metadata = object.metadata();
        metadata.deletion_timestamp.is_none() && (seen.owns(metadata) || controller(metadata).is_none())
    });
    plan.actions.extend(own.map(Action::Delete));
}

fn external(object: &Seen<Referenced>, which: External, reason: &'static str, plan: &mut Plan) -> Option<Deleting> {
    match object {
        Seen::NotFound => None,
        Seen::Failed(why) => Some(Deleting {
            reason: reasons::INTERNAL_ERROR,
            message: why.clone(),
        }),
        Seen::Found(found) => {
            if !found.is_deleting() {
                plan.actions.push(Action::DeleteExternal(which));
            }
            Some(Deleting {
                reason,
                message: read::waits_for(found),
            })
        }
    }
}

fn named(objects: &[Descendant]) -> String {
    let mut names: Vec<&str> = objects.iter().map(|object| object.metadata().name()).collect();
    names.sort_unstable();
    windlass_conditions::listed(&names, NAMED)
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
