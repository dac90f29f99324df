//! What to do about a Cluster: pure. It becomes the controller of its infrastructure cluster and control plane, takes over the
//! endpoint once, and goes in order: workers, control plane, infrastructure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api::core::APIEndpoint;
use windlass_api::meta::MetaExt as _;
use windlass_api::{labels, owner, reasons};
use windlass_contract::{control_plane, infra_cluster};
use windlass_kit::{Dynamic, ObjectKey, Seen};

use super::observe::Observed;
use crate::shared::read::{self, Referenced};

/// How long after the last success the remote connection probe still counts as good.
pub(crate) const GRACE_PERIOD: Duration = Duration::from_secs(50);
/// How many objects of a kind a message names before it counts the rest.
const NAMED: usize = 3;

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    /// Make the Cluster the controller of an object it references, labelled with its name.
    Own(External),
    /// Take the endpoint over.
    SetEndpoint(APIEndpoint),
    /// Delete an object that the Cluster references.
    DeleteExternal(External),
    /// Delete one of its descendants.
    Delete(Descendant, ObjectKey),
    /// Let the Cluster go.
    RemoveFinalizer,
    /// Say something.
    Announce {
        /// The event's reason.
        reason: &'static str,
        /// The event's text.
        message: String,
    },
}

/// An object that a Cluster references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum External {
    /// `spec.infrastructureRef`
    Infrastructure,
    /// `spec.controlPlaneRef`
    ControlPlane,
}

/// A kind of descendant that the Cluster deletes itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Descendant {
    /// MachineDeployment
    Deployment,
    /// MachineSet
    Set,
    /// Machine
    Machine,
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
        delete(seen, &mut plan);
        announce_phase(seen, &mut plan);
        return plan;
    }
    for (which, object) in [
        (External::Infrastructure, seen.infrastructure()),
        (External::ControlPlane, seen.control_plane()),
    ] {
        if let Some(object) = object
            && !object.is_deleting()
            && !is_owned(object, seen)
        {
            plan.notes.push(format!(
                "{} {} gets this Cluster as its controller",
                object.kind(),
                object.name()
            ));
            plan.actions.push(Action::Own(which));
        }
    }
    let (endpoint, taken) = endpoint(seen);
    if taken && let Some(endpoint) = endpoint {
        plan.notes.push("taking the control plane endpoint over".to_owned());
        plan.actions.push(Action::SetEndpoint(endpoint));
    } else if let (Some(own), Some(object)) = (endpoint, seen.infrastructure())
        && let Some(other) = infra_cluster::endpoint(object.value()).filter(|other| *other != own)
    {
        plan.notes.push(format!(
            "{} {} has another control plane endpoint by now ({}:{}); the Cluster keeps its own",
            object.kind(),
            object.name(),
            other.host.unwrap_or_default(),
            other.port.unwrap_or_default()
        ));
    }
    announce(seen, &mut plan);
    announce_phase(seen, &mut plan);
    plan.requeue = until_probe_is_stale(seen, now);
    plan
}

/// When the last successful probe stops counting, so that the condition turns although nothing happens.
fn until_probe_is_stale(seen: &Observed, now: Timestamp) -> Option<Duration> {
    if seen.probe.connected {
        return None;
    }
    let due = seen.probe.last_success?.checked_add(GRACE_PERIOD).ok()?;
    Duration::try_from(due.duration_since(now))
        .ok()
        .filter(|left| !left.is_zero())
        .map(|left| left + Duration::from_secs(1))
}

fn is_owned(object: &Dynamic, seen: &Observed) -> bool {
    owner::is_controlled_by(object.metadata(), seen.cluster.metadata.uid())
        && object.label(labels::CLUSTER_NAME) == seen.cluster.metadata.name.as_deref()
}

/// The endpoint of the Cluster, and whether it has to be taken over from one of the objects it references. The user's own word
/// stays; infrastructure comes before the control plane; neither counts before it says that it is ready.
pub(crate) fn endpoint(seen: &Observed) -> (Option<APIEndpoint>, bool) {
    if let Some(own) = seen
        .cluster
        .spec
        .control_plane_endpoint
        .clone()
        .filter(APIEndpoint::is_complete)
    {
        return (Some(own), false);
    }
    let infrastructure = usable_infrastructure(seen).and_then(|object| infra_cluster::endpoint(object.value()));
    let control_plane = seen.control_plane().filter(|object| is_initialized(object));
    let control_plane = control_plane.and_then(|object| control_plane::endpoint(object.value()));
    let found = infrastructure.or(control_plane);
    let taken = found.is_some();
    (found, taken)
}

/// The infrastructure cluster, when something may be taken over from it: it is there to stay, and it is provisioned, or was when
/// the Cluster looked before.
pub(crate) fn usable_infrastructure(seen: &Observed) -> Option<&Referenced> {
    let before = seen
        .cluster
        .status
        .as_ref()
        .and_then(|status| status.initialization.as_ref());
    let was = before.and_then(|done| done.infrastructure_provisioned) == Some(true);
    seen.infrastructure()
        .filter(|object| !object.is_deleting() && (was || is_provisioned(object)))
}

/// Whether the infrastructure cluster says, by its contract, that it is provisioned.
pub(crate) fn is_provisioned(object: &Referenced) -> bool {
    infra_cluster::provisioned(object.value(), object.contract)
}

/// Whether the control plane says, by its contract, that it answered once.
pub(crate) fn is_initialized(object: &Referenced) -> bool {
    control_plane::initialized(object.value(), object.contract)
}

/// An event when a phase begins whose status is written at once. Earlier ones may be over before they are written, and would
/// be told again by each attempt until then.
fn announce_phase(seen: &Observed, plan: &mut Plan) {
    let phase = super::status::phase(seen);
    let before = seen.cluster.status.as_ref().and_then(|status| status.phase.as_deref());
    if matches!(phase, "Provisioned" | "Deleting") && before != Some(phase) {
        let name = seen.cluster.metadata.name.as_deref().unwrap_or_default();
        let message = format!("Cluster {name} is {phase}");
        plan.actions.push(Action::Announce { reason: phase, message });
    }
}

/// Events of what changes now.
fn announce(seen: &Observed, plan: &mut Plan) {
    let name = seen.cluster.metadata.name.as_deref().unwrap_or_default();
    let before = seen.cluster.status.clone().unwrap_or_default();
    let done = before.initialization.unwrap_or_default();
    let mut say = |reason, message| plan.actions.push(Action::Announce { reason, message });
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
            plan.actions.push(Action::Announce {
                reason: "Deleted",
                message,
            });
            plan.actions.push(Action::RemoveFinalizer);
            Deleting {
                reason: reasons::DELETION_COMPLETED,
                message: "Deletion completed".to_owned(),
            }
        });
    plan.notes.push(deleting.message.clone());
    plan.deleting = Some(deleting);
}

fn workers(seen: &Observed, plan: &mut Plan) -> Option<Deleting> {
    let deployments: Vec<&ObjectMeta> = seen.deployments.iter().map(|object| &object.metadata).collect();
    let sets: Vec<&ObjectMeta> = seen.sets.iter().map(|object| &object.metadata).collect();
    let machines: Vec<&ObjectMeta> = seen.worker_machines.iter().map(|object| &object.metadata).collect();
    for (kind, objects) in [
        (Descendant::Deployment, &deployments),
        (Descendant::Set, &sets),
        (Descendant::Machine, &machines),
    ] {
        for metadata in objects
            .iter()
            .filter(|metadata| metadata.deletion_timestamp.is_none() && seen.owns(metadata))
        {
            plan.actions.push(Action::Delete(kind, key(metadata)));
        }
    }
    let lines: Vec<String> = [
        ("MachineDeployments", &deployments),
        ("MachineSets", &sets),
        ("Worker Machines", &machines),
    ]
    .into_iter()
    .filter(|(_, objects)| !objects.is_empty())
    .map(|(what, objects)| format!("* {what}: {}", named(objects)))
    .collect();
    (!lines.is_empty()).then(|| Deleting {
        reason: reasons::WAITING_FOR_WORKERS_DELETION,
        message: lines.join("\n"),
    })
}

/// Control plane Machines without a control plane object go after the workers.
fn standalone_control_plane(seen: &Observed, plan: &mut Plan) -> Option<Deleting> {
    let machines: Vec<&ObjectMeta> = seen
        .control_plane_machines
        .iter()
        .map(|object| &object.metadata)
        .collect();
    for metadata in machines
        .iter()
        .filter(|metadata| metadata.deletion_timestamp.is_none() && seen.owns(metadata))
    {
        plan.actions.push(Action::Delete(Descendant::Machine, key(metadata)));
    }
    let message = format!("* Control plane Machines: {}", named(&machines));
    (!machines.is_empty()).then_some(Deleting {
        reason: reasons::WAITING_FOR_CONTROL_PLANE_DELETION,
        message,
    })
}

fn external(object: &Seen<Referenced>, which: External, reason: &'static str, plan: &mut Plan) -> Option<Deleting> {
    match object {
        Seen::NotFound => None,
        Seen::Failed(why) => {
            plan.notes.push(why.clone());
            Some(Deleting {
                reason: reasons::INTERNAL_ERROR,
                message: why.clone(),
            })
        }
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

fn key(metadata: &ObjectMeta) -> ObjectKey {
    let part = |text: &Option<String>| text.clone().unwrap_or_default();
    ObjectKey {
        namespace: part(&metadata.namespace),
        name: part(&metadata.name),
    }
}

fn named(objects: &[&ObjectMeta]) -> String {
    let mut names: Vec<&str> = objects.iter().filter_map(|metadata| metadata.name.as_deref()).collect();
    names.sort_unstable();
    windlass_conditions::listed(&names, NAMED)
}

impl windlass_kit::Plan for Plan {
    fn requeue(&self) -> Option<Duration> {
        self.requeue
    }
}
